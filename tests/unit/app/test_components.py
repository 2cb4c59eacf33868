import pytest

from app.browser import components
from app.session import sharing
from experiments.specification.experiment import Experiment
from experiments.viewer.canvases.timeline import Unfolded, View


@pytest.mark.parametrize(
    "asked",
    [None, 3, {}, {"run": "other", "from": 0, "to": 1}, {"run": "name", "from": "0", "to": 1},
     {"run": "name", "from": 2, "to": 1}, {"run": "name", "from": 0, "to": float("inf")},
     {"run": "name", "from": float("nan"), "to": 1}],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_not_looked_into(asked):
    assert components.requested_window({"window": asked}, "name") is None
    assert components.requested_window(asked, "name") is None


def test_a_window_that_makes_sense_is():
    assert components.requested_window({"window": {"run": "name", "from": 0, "to": 0.5}}, "name") == (0.0, 0.5)


def test_a_view_goes_into_a_link_and_comes_out_of_it():
    said = '{"run": "a", "from": 0.0123, "to": 0.5, "why": [2, 0.0131, 1], "zoom": [20, 40.5]}'
    view = components.parse_view(said)
    assert view == View((0.0123, 0.5), Unfolded(2, 0.0131, 1), (20.0, 40.5))
    assert sharing.read(dict(sharing.view_parameters(view))) == view
    assert sharing.view_parameters(components.parse_view(None)) == [] and sharing.read({}) == View()


@pytest.mark.parametrize("window", ["1", "1~1", "2~1", "-1~1", "nan~1", "0~inf", "a~b", "0~1~2", "~", "1e999~2"])
def test_a_view_that_makes_no_sense_is_left_out(window):
    given = {"view": window, "zoom": window, "why": f"{window}~1"}
    view = sharing.read(given)
    assert view.window is None and view.zoom is None and (view.wait is None or "nan" not in window)
    for said in ('{"from": "0", "to": 1, "why": ["1", 2, 3], "zoom": 3}', "[1, 2]", "{", 3, '{"from": NaN, "to": 1}'):
        assert components.parse_view(said) == View()


def test_a_click_on_a_map_says_which_cell_and_what_makes_no_sense_none():
    assert components.cell({"cell": [1, 0]}) == (1, 0)
    for said in (None, 3, {}, {"cell": None}, {"cell": [1]}, {"cell": [1, "0"]}, {"cell": [1.0, True]}):
        assert components.cell(said) is None


@pytest.mark.parametrize(
    "said",
    [None, 3, {"rank": None}, {"rank": {"run": "other", "rank": 1, "at": 0.0}},
     *({"rank": {"run": "a", "rank": rank, "at": at}} for rank, at in
       ((-1, 0.0), (4, 0.0), (1.0, 0.0), (True, 0.0), (1, "now"), (1, -1), (1, float("nan")), (1, float("inf"))))],
)  # fmt: skip
def test_a_click_that_makes_no_sense_is_no_click(made, said):
    assert components.clicked_rank(said, made(Experiment()), "a") is None


def test_a_click_says_which_rank_and_when(made):
    assert components.clicked_rank({"rank": {"run": "a", "rank": 3, "at": 1}}, made(Experiment()), "a") == (3, 1.0)
