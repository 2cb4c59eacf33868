from app.kernel_pages.formula import tex


def test_a_quotient_is_a_fraction_and_letters_keep_their_indices():
    assert tex("w <- w - lr (m / (1 - b1^t)) / (sqrt(v) + eps)")[0] == [
        r"w \leftarrow w - \frac{\eta\,\left(\frac{m}{1 - b_{1}^{t}}\right)}{\sqrt{v} + \epsilon}"
    ]
    assert tex("w_v <- w_v - rate g_v")[0] == [r"w_{v} \leftarrow w_{v} - \eta\,g_{v}"]


def test_statements_beside_each_other_are_several_and_what_follows_them_is_a_remark():
    statements, remarks = tex("dw = x^T dz          db = sum over samples of dz          x (n, i), dw (i, o)")
    assert statements == [r"dw = x^{\top}\,dz", r"db = \sum_{\text{samples}} dz"]
    assert remarks == ["x (n, i), dw (i, o)"]


def test_a_name_of_several_letters_stands_upright_so_that_it_reads_as_no_product_of_them():
    assert tex("W <- W + stride D")[0] == [r"W \leftarrow W + \mathrm{stride}\,D"]


def test_a_letter_right_before_a_bracket_is_a_function_and_with_a_space_a_factor():
    assert tex("y = s(z)")[0] == [r"y = s\left(z\right)"]
    assert tex("y = s (z)")[0] == [r"y = s\,\left(z\right)"]


def test_what_is_said_in_words_is_not_set():
    for text in (
        "out_i <- high[r] if bit i is set, else low[r]",
        "y = x w + b,  or  max(0, x w + b) with relu",
        "y = a (x",
        "y = a)",
        "y = |x",
        "y =",
        "",
        "u <- m u + g\nu <- m (u + g)        ahead: Nesterov's",
    ):
        assert tex(text) == ([], []), text
