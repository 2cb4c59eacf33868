"""The recurrence of a run: what each rank did, in order, as a program.

The browser executes it again with a slower rank, a lost one or a longer latency (recurrence.js), to predict the next
run while the reader drags.

A trace says when spans began and messages arrived. Here it becomes operations without times: work of so many seconds, a
message sent, a message or a collective waited for. Waits follow from these, so they change with the fault.

Source: traces that are replayed on another machine, as by Dimemas (Labarta et al., Euro-Par 1996); the ports and the
ring are those of cluster/network.py and cluster/simulated/ring_recurrence.py.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from experiments.execution.admission import REFUSED
from experiments.runs.record import Run
from experiments.specification.conditions import Conditions
from experiments.viewer.column_codec import pack
from experiments.viewer.lanes import slowed_lanes
from tracing import COMMUNICATE, COMPUTE, IDLE, LOST, UPDATE, Trace

WORK, DELAY, SEND, RECEIVE, JOIN, FINISH = range(6)
"""The kinds of operations: the work of a span; a constant delay between two others; sending and receiving a message;
joining a collective, and having its result.
"""

OVERHEAD = "overhead"  # the label of spans in which a processor sends
RINGS = ("fast", "ring", "stream")  # collectives that the simulated cluster computes as a ring
MOST = 10_000  # operations: a browser executes them in a few ms
QUEUES = ("asgd", "dc_asgd", "dynsgd", "implicit_momentum", "easgd", "downpour")
"""Algorithms whose servers serve one worker at a time, in order of arrival, and answer nobody else."""
NEAR = 1e-10  # s: two times that differ by less are equal


class RecordedOp(NamedTuple):
    """An operation of a rank. `of` is the index of the span, the message or the collective; `seconds` is how long it
    takes: for a collective, from its last join to its end; for a join, how long before the last join it happened.
    """

    at: float  # s on the trace's clock
    turn: int  # the order of operations at the same time
    kind: int
    of: int
    seconds: float


class Touch(NamedTuple):
    """What a timeline needs so that its reader can inject faults: a header, and the recurrence or None.

    Header: first, the rank of the first worker; slow, the factor by which ranks are slower already, by rank; latency,
    that of the network in s, or None if it is not emulated; loses, if ranks can be lost; foresees, which kinds of
    faults the recurrence can predict.
    """

    header: dict
    recurrence: bytes | None


def touch(run: Run, trace: Trace, kinds: int, since: float) -> Touch:
    """Return what the timeline of `run` needs so that its reader can inject faults.

    It shows `trace` from `since` (s) on. Kinds below `kinds` are finer kinds of work, which count as KINDS[0].
    """
    e = run.experiment
    network = Conditions.of(e).network
    packed = recurrence(run, trace, kinds, since)
    foreseen = [] if packed is None else ["slow", "latency"] + ["lost"] * (not e.method.survives_loss)
    header = {
        "first": e.servers,
        "slow": {str(rank): factor for rank, factor in slowed_lanes(run).items()},
        "latency": network.between.alpha if network else None,
        "loses": "crash" not in REFUSED.get(e.cluster, {}) and not e.crash.by_rank,
        "foresees": foreseen,
    }
    return Touch(header, packed)


def recurrence(run: Run, trace: Trace, kinds: int = 0, since: float = 0.0) -> bytes | None:
    """Return the packed recurrence of a run's `trace` from `since` (s) on, up to about MOST operations. Return None if
    the order of operations depends on times in a way that cannot be repeated, so that nothing can be predicted.

    Header: servers that serve a queue; slowed, the number below which are the kinds that take a slow rank longer; since
    and until, the start and end of the part, in s; link. Columns: from, where the operations of each rank begin, (ranks
    + 1,); op, of and seconds (see RecordedOp), where a span is a row of the packed timeline, and a message one of the
    packed messages; and of each message the collective that it is a row of, or -1.
    """
    e = run.experiment
    repeats = e.method.is_deterministic(e.knobs)
    queues = not repeats and e.algorithm in QUEUES
    if not (repeats or queues) or e.crash.by_rank or not len(trace.spans["start"]):
        return None
    link = _link(run)
    spans = {**trace.spans, "kind": np.maximum(trace.spans["kind"] - kinds, 0)}
    spans, messages, until = _part(Trace(trace.ranks, spans, trace.messages, trace.labels), since)
    part = Trace(trace.ranks, spans, messages, trace.labels)
    group = _collectives(part, link)
    programs = [_program(part, rank, since, group) for rank in range(trace.ranks)]
    ops = [op for program in programs for op in program]
    collective = np.full(len(trace.messages["sent"]), -1)
    collective[messages["row"]] = group
    columns = {
        "from": np.cumsum([0, *map(len, programs)]).astype("u4"),
        "op": np.array([op.kind for op in ops], "u1"),
        "of": np.array([op.of for op in ops], "i4"),
        "seconds": np.array([op.seconds for op in ops], "f4"),
        "collective": collective.astype("i4"),
    }
    header = {
        "servers": e.servers if queues else 0,
        "slowed": kinds + COMMUNICATE,
        "since": since,
        "until": until,
        "link": link,
    }
    return pack(header, columns)


def _link(run: Run) -> dict[str, float] | None:
    """Return the link between any two ranks, {"latency": s, "per_byte": s, "overhead": s}.

    Return None if no single link predicts the run: the links differ, the cluster is real, or its collective is no ring.
    """
    e = run.experiment
    network = Conditions.of(e).network
    if network is None or e.per_node > 1 or e.cluster != "simulated" or e.collective not in RINGS or network.sum:
        return None
    link = network.between
    return {"latency": link.latency, "per_byte": 1 / link.bandwidth, "overhead": link.overhead}


def _part(trace: Trace, since: float) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray], float]:
    """Return the spans and messages from `since` (s) on, up to about MOST operations, and when the last span ends.

    Their column `row` is the row of each in the packed timeline or messages.
    """
    spans, messages = trace.spans, trace.messages
    place = np.empty(len(spans["start"]), int)
    place[np.lexsort([spans["start"], spans["rank"]])] = np.arange(len(place))
    spans, messages = {**spans, "row": place}, {**messages, "row": np.arange(len(messages["sent"]))}
    arrived = np.isfinite(messages["arrived"])
    begin = np.sort(np.concatenate([spans["start"], np.repeat(messages["sent"][arrived], 2)]))
    begin = begin[begin >= since - NEAR]
    until = float(begin[MOST]) if len(begin) > MOST else trace.seconds()
    mine = (spans["start"] >= since - NEAR) & (spans["end"] <= until + NEAR)
    sent = arrived & (messages["sent"] >= since - NEAR) & (messages["arrived"] <= until + NEAR)
    spans = {name: column[mine] for name, column in spans.items()}
    return spans, {name: column[sent] for name, column in messages.items()}, float(spans["end"].max(initial=since))


def _program(trace: Trace, rank: int, since: float, group: np.ndarray) -> list[RecordedOp]:
    """Return the operations of `rank` in order; `group` is the collective of each message, or -1."""
    spans, messages = trace.spans, trace.messages
    own = np.flatnonzero(_is_work(trace) & (spans["rank"] == rank))
    own = own[np.lexsort([spans["end"][own], spans["start"][own]])]
    starts, ends = spans["start"][own], spans["end"][own]

    def inside(at: float) -> int:
        """Return the index of the span of work under way at this time, or -1."""
        place = int(np.searchsorted(starts, at - NEAR)) - 1
        return place if place >= 0 and at < ends[place] - NEAR else -1

    row = messages["row"].tolist()
    ops: list[RecordedOp] = []
    cuts: dict[int, list[float]] = {}
    last = {g: float(messages["sent"][group == g].max()) for g in {*group[messages["src"] == rank].tolist()} - {-1}}
    for m in np.flatnonzero(messages["src"] == rank).tolist():
        at, g = float(messages["sent"][m]), int(group[m])
        if (place := inside(at)) >= 0:
            cuts.setdefault(place, []).append(at)
        ops.append(RecordedOp(at, 1, SEND, row[m], 0.0) if g < 0 else RecordedOp(at, 1, JOIN, g, last[g] - at))
    for m in np.flatnonzero(messages["dst"] == rank).tolist():
        at, g = float(messages["arrived"][m]), int(group[m])
        after = at if (place := inside(at)) < 0 else float(ends[place])
        ops.append(
            RecordedOp(after, 0, RECEIVE, row[m], 0.0)
            if g < 0
            else RecordedOp(after, 0, FINISH, g, max(0.0, at - last.get(g, at)))
        )
    for place, n in enumerate(own.tolist()):
        edges = [float(starts[place]), *sorted(cuts.get(place, [])), float(ends[place])]
        ops += [RecordedOp(a, 2, WORK, int(spans["row"][n]), b - a) for a, b in pairwise(edges)]
    return _with_delays(sorted(ops), since)


def _is_work(trace: Trace) -> np.ndarray:
    """Return a mask of the spans that are work whose duration does not depend on other ranks."""
    kind, label = trace.spans["kind"], trace.spans["label"]

    def called(name: str) -> np.ndarray:
        return label == (trace.labels.index(name) if name in trace.labels else -1)

    sends = (kind == COMMUNICATE) & called(OVERHEAD)
    return (kind == COMPUTE) | (kind == UPDATE) | sends | ((kind == IDLE) & ~called(LOST))


def _with_delays(ops: list[RecordedOp], since: float) -> list[RecordedOp]:
    """Return the operations with a DELAY for each gap between them in which the rank waits for nobody."""
    every, now = [], since
    for op in ops:
        if op.kind not in (RECEIVE, FINISH) and op.at > now + NEAR:
            every.append(RecordedOp(now, 1, DELAY, -1, op.at - now))
        every.append(op)
        now = max(now, op.at + (op.seconds if op.kind == WORK else 0.0))
    return every


def _collectives(trace: Trace, link: dict[str, float] | None) -> np.ndarray:
    """Return the collective to which each message belongs, or -1 if it belongs to none.

    A rank joins a collective when it sends to its neighbour, and has the result when the message of its other neighbour
    has arrived. The last message that it sends before that arrival belongs to the same collective as the one that
    arrives.
    """
    messages = trace.messages
    flight = messages["arrived"] - messages["sent"]
    rows = np.flatnonzero(messages["collective"] & (messages["tag"] == -1)).tolist()  # other tags: message by message
    parent = {n: n for n in rows}

    def find(n: int) -> int:
        while parent[n] != n:
            parent[n] = parent[parent[n]]
            n = parent[n]
        return n

    sent: dict[int, list[int]] = {}
    for n in rows:  # in order of sending
        sent.setdefault(int(messages["src"][n]), []).append(n)
    times = {src: messages["sent"][some] for src, some in sent.items()}
    for n in rows:
        dst = int(messages["dst"][n])
        place = int(np.searchsorted(times[dst], messages["arrived"][n] - NEAR)) - 1 if dst in times else -1
        if place >= 0:
            parent[find(sent[dst][place])] = find(n)
    members: dict[int, list[int]] = {}
    for n in rows:
        members.setdefault(find(n), []).append(n)
    group = np.full(len(flight), -1)

    def alone(some: list[int]) -> np.ndarray:
        """Return how long these messages take on an idle network, plus half a sender's overhead."""
        each = link["latency"] + link["overhead"] / 2 + messages["bytes"][some] * link["per_byte"] if link else 0.0
        return np.broadcast_to(each, len(some))

    for number, some in enumerate(members.values()):
        if (flight[some] > alone(some)).all():  # otherwise its messages were recorded one by one
            group[some] = number
    return group
