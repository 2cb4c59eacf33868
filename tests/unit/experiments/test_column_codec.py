"""The timeline's binary form."""

import json
import struct
from itertools import pairwise

import numpy as np
import pytest

from cluster.event_log import EventLog
from experiments.viewer.column_codec import pack_messages, pack_timeline, unpack
from tracing import Trace


def event_log(rank, spans=(), messages=()):
    j = EventLog(rank, lambda: 0.0)
    j.spans.extend(spans)
    j.messages.extend(messages)
    return j


def lanes(ranks, each, seed=0):
    generator = np.random.default_rng(seed)
    event_logs = []
    for rank in range(ranks):
        edges = np.sort(generator.random(each + 1))
        rows = [(int(generator.integers(5)), a, b, i, f"F{i % 7}") for i, (a, b) in enumerate(pairwise(edges))]
        event_logs.append(event_log(rank, rows))
    return Trace.of(event_logs)


def test_a_packed_timeline_says_everything_the_trace_says():
    trace = lanes(3, 50)
    header, columns = unpack(pack_timeline(trace))
    order = np.lexsort([trace.spans["start"], trace.spans["rank"]])
    assert header["lanes"] == 3 and header["spans"] == 150 and header["labels"] == list(trace.labels)
    assert np.array_equal(columns["lane"], trace.spans["rank"][order])
    assert np.array_equal(columns["kind"], trace.spans["kind"][order])
    assert np.array_equal(columns["step"], trace.spans["step"][order])
    assert np.array_equal(columns["label"], trace.spans["label"][order])
    assert np.allclose(columns["start"], trace.spans["start"][order], rtol=1e-6)
    assert np.allclose(columns["duration"], (trace.spans["end"] - trace.spans["start"])[order], atol=1e-7)


@pytest.mark.parametrize("ranks", [1, 2, 255, 256, 257])
def test_every_column_starts_where_a_typed_array_may(ranks):
    message = pack_timeline(lanes(ranks, 3))
    (length,) = struct.unpack_from("<I", message)
    layout = json.loads(message[4 : 4 + length])["columns"]
    assert (4 + length) % 4 == 0
    assert all(offset % 4 == 0 for _, offset, _ in layout.values())
    assert layout["lane"][0] == ("Uint8" if ranks <= 256 else "Uint16")


def test_a_run_without_spans_packs():
    header, columns = unpack(pack_timeline(Trace.of([event_log(0)])))
    assert header["spans"] == 0 and not len(columns["start"])


def test_thinning_keeps_the_limit_the_extent_and_the_leading_kind():
    trace = lanes(4, 5000)
    header, columns = unpack(pack_timeline(trace, limit=400))
    assert header["spans"] == 20_000
    assert 300 < len(columns["start"]) <= 400
    assert columns["start"].min() == np.float32(trace.spans["start"].min())
    assert np.isclose((columns["start"] + columns["duration"]).max(), trace.spans["end"].max())
    rows = [(0, i / 1000, i / 1000 + 0.0009, i, "gradient") for i in range(1000)]
    rows += [(1, i / 1000 + 0.0009, (i + 1) / 1000, i, "update") for i in range(1000)]
    _, columns = unpack(pack_timeline(Trace.of([event_log(0, rows)]), limit=50))
    assert set(columns["kind"].tolist()) == {0}


def test_thinning_leaves_a_long_span_among_short_ones_as_long_as_it_was():
    rows = [(0, i * 1e-4, (i + 1) * 1e-4, i, "gradient") for i in range(1000)] + [(3, 0.1, 1.1, 1000, "wait")]
    _, columns = unpack(pack_timeline(Trace.of([event_log(0, rows)]), limit=100))
    waits = columns["kind"] == 3
    assert waits.sum() == 1 and np.isclose(columns["duration"][waits][0], 1.0, atol=0.01)


def test_messages_that_never_arrived_are_told_apart():
    rows = [(1, 0, 100, 0.5, float("nan"), False), (1, 0, 300, 0.1, 0.2, False)]
    trace = Trace.of([event_log(0, messages=rows), event_log(1)])
    header, columns = unpack(pack_messages(trace))
    assert header["messages"] == 2
    assert columns["bytes"].tolist() == [300, 100] and columns["arrived"][1] == -1
    _, columns = unpack(pack_messages(trace, limit=1))
    assert columns["bytes"].tolist() == [300]
