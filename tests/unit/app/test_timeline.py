import json

import numpy as np
import pytest

from app.components import timeline
from experiments.experiment import Experiment
from experiments.plots import palette
from experiments.plots.column_codec import unpack
from tracing import KINDS


def test_a_frame_holds_the_spans_the_messages_and_how_they_look(made):
    run = made(Experiment(algorithm="easgd", workers=3))
    header, columns = unpack(timeline.frame(run, "name"))
    assert header["run"] == "name"
    assert header["lanes"] == ["server 0", "worker 1", "worker 2", "worker 3"]
    assert {kind: look["colour"] for kind, look in header["look"].items()} == {
        kind: palette.DOING[kind].colour for kind in KINDS
    }
    _, spans = unpack(columns["timeline"].tobytes())
    _, messages = unpack(columns["messages"].tobytes())
    assert len(spans["start"]) == len(run.trace.spans["start"])
    assert len(messages["sent"]) == len(run.trace.messages["sent"])


def test_all_columns_lie_where_typed_arrays_can_read_them(made):
    message = timeline.frame(made(Experiment(workers=3)), "an odd name")
    length = int.from_bytes(message[:4], "little")
    columns = json.loads(message[4 : 4 + length])["columns"]
    assert (4 + length) % 4 == 0
    assert all(offset % 4 == 0 for _, offset, _ in columns.values())


def test_the_timeline_is_told_in_a_sentence(made):
    words = timeline.describe(made(Experiment(workers=3)))
    assert words.startswith("Timeline of 3 ranks over ")
    assert "% compute" in words and "% wait" in words


@pytest.fixture
def long(made, monkeypatch):
    """A run with more spans than are sent at once."""
    monkeypatch.setattr(timeline, "SPANS", 100)
    return made(Experiment(algorithm="easgd", workers=3))


def spans(frame):
    return unpack(unpack(frame)[1]["timeline"].tobytes())[1]


def test_of_a_long_run_come_the_single_spans_of_the_first_moments(long):
    frame = timeline.frame(long, "name")
    a, b = unpack(frame)[0]["exact"]
    assert a == 0 and 0 < b < long.trace.seconds()
    inside = long.trace.spans["start"] < b
    assert len(spans(frame)["start"]) == np.count_nonzero(inside) <= 100


def test_of_a_long_run_come_the_single_spans_of_a_window_that_was_asked_for(long):
    window = (0.02, 0.025)
    frame = timeline.frame(long, "name", window)
    a, b = unpack(frame)[0]["exact"]
    assert a <= window[0] < window[1] <= b
    start, end = long.trace.spans["start"], long.trace.spans["end"]
    assert len(spans(frame)["start"]) == np.count_nonzero((start < b) & (end > a))


def test_the_shares_of_a_long_run_are_the_time_that_each_kind_took(long):
    header, columns = unpack(timeline.frame(long, "name"))
    table = columns["shares"].reshape(long.trace.ranks, -1, len(KINDS)) / 255
    seconds = table.sum(axis=1) * header["seconds"] / table.shape[1]
    np.testing.assert_allclose(seconds, long.trace.busy(), atol=0.01 * header["seconds"])


@pytest.mark.parametrize(
    "asked",
    [None, 3, {}, {"run": "other", "from": 0, "to": 1}, {"run": "name", "from": "0", "to": 1},
     {"run": "name", "from": 2, "to": 1}, {"run": "name", "from": 0, "to": float("inf")},
     {"run": "name", "from": float("nan"), "to": 1}],
)  # fmt: skip
def test_a_window_that_makes_no_sense_is_not_looked_into(asked):
    assert timeline.wanted({"window": asked}, "name") is None
    assert timeline.wanted(asked, "name") is None


def test_a_window_that_makes_sense_is(long):
    assert timeline.wanted({"window": {"run": "name", "from": 0, "to": 0.5}}, "name") == (0.0, 0.5)
    assert unpack(timeline.frame(long, "name", (1e9, 2e9)))[0]["exact"]  # nothing is there, and nothing breaks


@pytest.mark.parametrize(
    "said",
    [None, 3, {"rank": None}, {"rank": {"run": "other", "rank": 1, "at": 0.0}},
     *({"rank": {"run": "a", "rank": rank, "at": at}} for rank, at in
       ((-1, 0.0), (4, 0.0), (1.0, 0.0), (True, 0.0), (1, "now"), (1, -1), (1, float("nan")), (1, float("inf"))))],
)  # fmt: skip
def test_a_click_that_makes_no_sense_is_no_click(made, said):
    assert timeline.clicked(said, made(Experiment()), "a") is None


def test_a_click_says_which_rank_and_when(made):
    assert timeline.clicked({"rank": {"run": "a", "rank": 3, "at": 1}}, made(Experiment()), "a") == (3, 1.0)


@pytest.mark.parametrize("cluster", ["simulated", "processes"])
def test_the_ranks_of_every_run_can_be_clicked(made, cluster):
    header, _ = unpack(timeline.frame(made(Experiment(cluster=cluster)), "a"))
    assert header["clickable"] is True
