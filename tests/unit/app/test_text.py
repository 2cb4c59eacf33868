"""Text from elsewhere on our pages."""

from app.browser.text import flowing, sentence


def test_code_in_a_message_is_code_and_all_else_is_as_it_was_written():
    said = sentence('line 7 is not Python (never closed): `ops.append(f"F{warm *`')
    assert said == 'Line 7 is not Python (never closed)\\: `ops.append(f"F{warm *`.'
    assert sentence("a * b and `x`") == r"A \* b and `x`."


def test_a_single_backtick_is_no_mark():
    assert sentence("a ` b [x](y)") == r"A \` b \[x\](y)."


def test_a_sentence_begins_with_a_capital_unless_with_a_name():
    assert sentence("micro-batches in flight") == "Micro-batches in flight."
    assert sentence("easgd has a centre") == "easgd has a centre." and sentence("--slow is for ranks")[0] == "-"


def test_paragraphs_flow_and_pictures_keep_their_lines():
    text = "SGD: a step.\n\nIt is\nshort: so\nw: it.\n    w <- w\n    - g\nSo it\nends.\nSource: Robbins,\n1951."
    told = "SGD: a step.\n\nIt is short: so w: it.\n    w <- w\n    - g\nSo it ends.\nSource: Robbins, 1951."
    assert flowing(text) == told
