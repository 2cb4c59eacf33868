"""Pieces of sentences that are put together from words."""

from experiments.wording.sentences import capital, join_words


def test_a_list_has_its_and_before_the_last_word_only():
    assert [join_words("abc"[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]


def test_a_capital_changes_the_first_letter_and_no_other():
    assert capital("held-out R²") == "Held-out R²" and capital("") == ""
