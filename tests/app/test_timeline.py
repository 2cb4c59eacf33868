import json

from app import palette
from app.components import timeline
from cluster.trace import KINDS
from experiments.codec import unpack
from experiments.experiment import Experiment


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
