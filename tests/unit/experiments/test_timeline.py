import json

import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer import bars, doing, palette
from experiments.viewer.canvases import timeline
from experiments.viewer.column_codec import unpack
from experiments.viewer.pictures import Shown
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
    assert words.startswith("Timeline of 3 workers over ")
    assert "% compute" in words and "% wait" in words


@pytest.fixture
def long(made, monkeypatch):
    """A run with more spans than are sent at once."""
    monkeypatch.setattr(timeline, "SPANS", 100)
    return made(Experiment(algorithm="easgd", workers=3))


def spans(frame):
    return unpack(unpack(frame)[1]["timeline"].tobytes())[1]


def test_of_a_long_run_come_the_single_spans_where_it_opens(long):
    header, _ = unpack(timeline.frame(long, "name"))
    (a, b), (start, end) = header["exact"], header["open"]
    assert 0 < a <= start < end <= b < long.trace.seconds()
    inside = (long.trace.spans["start"] < b) & (long.trace.spans["end"] > a)
    assert len(spans(timeline.frame(long, "name"))["start"]) == np.count_nonzero(inside) <= 100


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


def test_a_window_in_which_nothing_is_breaks_nothing(long):
    assert unpack(timeline.frame(long, "name", (1e9, 2e9)))[0]["exact"]


@pytest.mark.parametrize("cluster", ["simulated", "processes"])
def test_the_ranks_of_every_run_can_be_clicked(made, cluster):
    header, _ = unpack(timeline.frame(made(Experiment(cluster=cluster)), "a"))
    assert header["clickable"] is True


def test_a_timeline_opens_at_the_window_it_is_given_and_offers_others(long):
    frame = timeline.trace_frame(
        long.trace, ["lane"] * long.trace.ranks, "words", "name", opening=(0.02, 0.025),
        flags=[timeline.Flag(0.021, 2, "lost")], chips=[timeline.Chip("end", 0.03, 0.04)], play=True, clock=True,
    )  # fmt: skip
    header, _ = unpack(frame)
    assert header["open"] == [0.02, 0.025] and header["play"] and header["clock"]
    assert header["flags"] == [{"at": 0.021, "lane": 2, "text": "lost"}]
    assert header["chips"] == [{"text": "end", "from": 0.03, "to": 0.04}]
    assert header["exact"][0] <= 0.02 and header["exact"][1] >= 0.025  # its single spans are those of the opening


def test_no_two_kinds_of_a_pipelines_timeline_look_alike():
    header, _ = unpack(timeline.frame(run(Experiment.of({"algorithm": "gpipe", "steps": 2, "evaluations": 1})), "name"))
    looks = [(look["colour"], look["height"], look["hatch"]) for look in header["look"].values()]
    assert {"forward", "backward", "other work"} <= header["look"].keys() and "compute" not in header["look"]
    assert len({colour for colour, _, _ in looks}) == len(looks)
    assert list(header["look"])[-len(KINDS) + 1 :] == list(KINDS[1:]), "what the browser knows by its place"


def test_compressing_has_its_own_colour_in_the_timeline_and_in_the_bars():
    done = run(Experiment.of({"compression": "random_k", "steps": 2, "evaluations": 1}))
    header, columns = unpack(timeline.frame(done, "name"))
    _, drawn = unpack(columns["timeline"].tobytes())
    kinds = np.array(header["kinds"])[drawn["kind"]]
    seconds = {kind: float(drawn["duration"][kinds == kind].sum()) for kind in ("compress", "update")}
    assert seconds == pytest.approx({kind: float(doing.busy(done.trace)[kind].sum()) for kind in seconds}, rel=1e-3)
    parts = {part.name: part.colour for part in bars.shares([Shown("", done, 0)]).parts}
    assert parts["compress"] == header["look"]["compress"]["colour"] != parts["update"]


def test_kernels_that_compression_shares_with_others_compress_only_where_something_does():
    assert doing.compresses(("residual", "sgd")).tolist() == [False, False]
    assert doing.compresses(("residual", "gather", "sgd")).tolist() == [True, True, False]
    assert doing.compresses(("add", "scale", "pack", "momentum")).tolist() == [True, True, True, False]
