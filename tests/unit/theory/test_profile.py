"""Profiles come from tables, and tables may be wrong."""

import pytest

from tests.quotes import quote
from theory.profile import Profile, load, ranges, read

TABLE = """layer,forward,backward,activations,weights
conv,0.5,1.0,1000,20
dense,0.25,0.5,10,4000
"""


def test_a_table_becomes_a_profile():
    profile = read(TABLE.splitlines())
    assert profile == Profile((0.5, 0.25), (1.0, 0.5), (1000, 10), (20, 4000), ("conv", "dense"))
    assert profile.times == (1.5, 0.75)
    assert profile.sizes() == (1040, 8010)
    assert profile.sizes(chunks=4, copies=3) == (310, 12002.5)


def test_columns_may_stand_in_any_order_and_have_company(tmp_path):
    path = tmp_path / "profile.csv"
    path.write_text("weights, note, layer, backward, forward, activations\n4, x, a, 2, 1, 3\n")
    assert load(path) == Profile((1,), (2,), (3,), (4,), ("a",))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (
            TABLE.replace("weights", "parameters"),
            "no column 'weights' … layer, forward, backward, activations, weights",
        ),
        (TABLE.replace("0.25,", ","), "forward … dense … missing"),
        (TABLE.replace(",4000", ""), "weights … dense … missing"),
        (TABLE.replace("0.25", "-0.25"), "forward … dense … -0.25 … must be 0, or a number from"),
        (TABLE.replace("0.25", "nan"), "forward … dense … nan"),
        (TABLE.replace("4000", "inf"), "weights … dense … inf"),
        (TABLE.replace("1000", "1 kB"), "activations … conv … '1 kB' … number"),
        (TABLE.splitlines()[0], "no layers"),
        ("", "no column 'layer'"),
    ],
)
def test_a_table_that_is_wrong_is_refused_with_layer_and_column(table, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        read(table.splitlines())


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match=quote("2 layers … 1 entries of backward")):
        Profile((1, 2), (1,), (1, 2), (1, 2))


def test_the_sums_of_all_neighbours():
    assert ranges([1, 2, 4]) == {(0, 0): 1, (0, 1): 3, (0, 2): 7, (1, 1): 2, (1, 2): 6, (2, 2): 4}
