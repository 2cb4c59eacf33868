"""A table of text in HTML."""

from experiments.viewer.html_table import Html, html_table


def test_all_text_of_a_table_is_escaped_except_what_is_html_already():
    table = html_table(["", "a<b"], [("x&y", [Html("<i>z</i>"), "1 < 2"])], "runs")
    assert "<td></td><th>a&lt;b</th>" in table and 'class="runs"' in table
    assert "<th>x&amp;y</th><td><i>z</i></td><td>1 &lt; 2</td>" in table


def test_a_table_without_heads_has_no_line_for_them():
    assert html_table([], [("a", ["b"])]) == "<table><tbody><tr><th>a</th><td>b</td></tr></tbody></table>"
