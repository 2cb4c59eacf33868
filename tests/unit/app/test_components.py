import pytest

from app import components
from experiments.experiment import Experiment


@pytest.mark.parametrize(
    "asked",
    [None, 3, {}, {"run": "other", "from": 0, "to": 1}, {"run": "name", "from": "0", "to": 1},
     {"run": "name", "from": 2, "to": 1}, {"run": "name", "from": 0, "to": float("inf")},
     {"run": "name", "from": float("nan"), "to": 1}],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_not_looked_into(asked):
    assert components.wanted({"window": asked}, "name") is None
    assert components.wanted(asked, "name") is None


def test_a_window_that_makes_sense_is():
    assert components.wanted({"window": {"run": "name", "from": 0, "to": 0.5}}, "name") == (0.0, 0.5)


@pytest.mark.parametrize(
    "said",
    [None, 3, {"rank": None}, {"rank": {"run": "other", "rank": 1, "at": 0.0}},
     *({"rank": {"run": "a", "rank": rank, "at": at}} for rank, at in
       ((-1, 0.0), (4, 0.0), (1.0, 0.0), (True, 0.0), (1, "now"), (1, -1), (1, float("nan")), (1, float("inf"))))],
)  # fmt: skip
def test_a_click_that_makes_no_sense_is_no_click(made, said):
    assert components.clicked(said, made(Experiment()), "a") is None


def test_a_click_says_which_rank_and_when(made):
    assert components.clicked({"rank": {"run": "a", "rank": 3, "at": 1}}, made(Experiment()), "a") == (3, 1.0)
