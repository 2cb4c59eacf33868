"""The trace: what happened when, in one schema on every cluster.

Each rank writes an `EventLog`: plain rows, appended. `Trace.of(event_logs)` joins them in columns. Times are seconds
since the start of the run, on the run's own clock: virtual time on the simulated cluster, monotonic time on a real
one. Nothing here knows about learning; the rows of losses and reports are written by the task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

KINDS = ("compute", "update", "communicate", "wait", "idle")
"""What a rank can be doing: gradients and passes; optimizer and averaging kernels; moving a message it needs now;
blocked because somebody else is not ready; stopped (paused or lost). One colour each, everywhere."""

HELD = ("parameters", "gradients", "optimizer state", "activations", "buffers")
"""What a rank's memory is held for: the weights, in every version it keeps; what the update needs; what the update
rule remembers; what a forward pass keeps for the backward pass; messages and copies for later."""

SPANS = ("rank", "kind", "start", "end", "step", "label")
MESSAGES = ("src", "dst", "tag", "bytes", "sent", "arrived", "collective")
LOSSES = ("rank", "step", "samples", "seconds", "loss")
APPLIED = ("rank", "seconds", "staleness")
MEASURES = ("rank", "step", "seconds", "quantity", "value")
MEMORY = ("rank", "step", "seconds", "kind", "bytes")
REPORTS = ("rank", "index", "seconds", "start", "stop", "parameters")


class EventLog:
    """What one rank writes down.

    spans      (kind, start, end, step, label)      kind indexes KINDS, label is a few letters: "gradient", "F3"
    messages   (dst, tag, bytes, sent, arrived, collective)   arrived is NaN while unknown
    losses     (step, samples, seconds, loss)       one mini-batch; samples counts this rank's so far
    applied    (seconds, staleness)                 one update of the shared model
    measures   (step, seconds, quantity, value)     a number that the method itself finds worth a curve: its noise
                                                    scale, the spread of its replicas; quantity is its name
    memory     (step, seconds, kind, bytes)         what this rank holds of a kind from then on; kind indexes HELD, and
                                                    `held` has the last of each
    reports    (index, seconds, start, stop, w)     parameters start:stop of the model this rank would ship; index
                                                    counts this rank's reports of that part from 1, kept or not;
                                                    `places` has those that do not lie in a row, by (start, stop)

    `clock` gives the rank's time, `step` its current step (-1 before the first, and on servers). `mark` is the time
    up to which everything has been accounted for.
    """

    TABLES = ("spans", "messages", "losses", "applied", "measures", "memory", "reports")
    __slots__ = ("rank", "clock", "step", "busy", "mark", "held", "places", *TABLES)

    def __init__(self, rank: int, clock: Callable[[], float]):
        self.rank, self.clock = rank, clock
        self.step = -1
        self.busy = False  # inside `doing`: kernels belong to that span
        self.mark = 0.0
        self.spans: list[tuple] = []
        self.messages: list[tuple] = []
        self.losses: list[tuple] = []
        self.applied: list[tuple] = []
        self.measures: list[tuple] = []
        self.memory: list[tuple] = []
        self.held = [0] * len(HELD)
        self.places: dict[tuple[int, int], np.ndarray] = {}
        self.reports: list[tuple] = []

    def hold(self, kind: str, nbytes: int) -> None:
        """This rank holds so many bytes of this kind now. ValueError if there is no such kind."""
        if kind not in HELD:
            raise ValueError(f"a rank holds {', '.join(HELD[:-1])} or {HELD[-1]}; not {kind!r}.")
        number = HELD.index(kind)
        if self.held[number] != nbytes:
            self.held[number] = nbytes
            self.memory.append((self.step, self.clock(), number, nbytes))

    def keep(self, kind: str, nbytes: int) -> None:
        """So many bytes more than before."""
        self.hold(kind, self.held[HELD.index(kind)] + nbytes)

    def inventory(self) -> str:
        """What this rank holds now, in words: "1,200: 400 for parameters, 800 for optimizer state"."""
        parts = [f"{nbytes:,} for {kind}" for kind, nbytes in zip(HELD, self.held, strict=True) if nbytes]
        return f"{sum(self.held):,}: {', '.join(parts)}"

    @contextmanager
    def doing(self, kind: int, label: str) -> Iterator[None]:
        """Account for the block as one span of `kind`, kernels inside included."""
        start, self.busy = self.clock(), True
        try:
            yield
        finally:
            self.busy = False
            self.mark = end = self.clock()
            self.spans.append((kind, start, end, self.step, label))


COMPUTE, UPDATE, COMMUNICATE, WAIT, IDLE = range(len(KINDS))


@dataclass(frozen=True)
class Trace:
    """Columns of all ranks, sorted by start (spans) and by sending time (messages).

    spans: rank (int32), kind (int8, indexes KINDS), start, end (float64, s), step (int32), label (indexes `labels`)
    messages: src, dst, tag (int32), bytes (int64), sent, arrived (float64, s), collective (bool)
    A message of a collective is one row per neighbour with the bytes that all its pieces had together.
    """

    ranks: int
    spans: dict[str, np.ndarray]
    messages: dict[str, np.ndarray]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, event_logs: Sequence[EventLog]) -> Trace:
        """Join the event logs of all ranks."""
        spans = joined(event_logs, "spans", SPANS, "i4 i1 f8 f8 i4 O")
        spans["label"], labels = numbered(spans["label"])
        messages = joined(event_logs, "messages", MESSAGES, "i4 i4 i4 i8 f8 f8 ?")
        return cls(len(event_logs), ordered(spans, "start", "rank"), ordered(messages, "sent", "src"), labels)

    def seconds(self) -> float:
        """The time of the last thing that happened."""
        ends = [c.max() for c in (self.spans["end"], self.messages["arrived"]) if len(c) and np.isfinite(c).any()]
        return float(max(ends, default=0.0))

    def busy(self) -> np.ndarray:
        """Seconds per rank and kind, shape (ranks, len(KINDS))."""
        table = np.zeros((self.ranks, len(KINDS)))
        np.add.at(table, (self.spans["rank"], self.spans["kind"]), self.spans["end"] - self.spans["start"])
        return table

    def traffic(self) -> np.ndarray:
        """Payload bytes from rank (row) to rank (column)."""
        table = np.zeros((self.ranks, self.ranks))
        np.add.at(table, (self.messages["src"], self.messages["dst"]), self.messages["bytes"])
        return table


@dataclass
class Outcome:
    """What a cluster gives back: each rank's result, and everything that was written down.

    `error` is what ended the run early, None if nothing did; results of ranks that did not finish are None, and the
    event logs hold all that was recorded until then. `notes` are one-line remarks for the reader (ranks lost but
    survived, messages nobody read, a device that was not there).
    """

    results: list[Any]
    event_logs: list[EventLog]
    error: Exception | None = None
    notes: tuple[str, ...] = ()

    def trace(self) -> Trace:
        """The joined event logs."""
        return Trace.of(self.event_logs)


def joined(event_logs: Sequence[EventLog], table: str, names: Sequence[str], types: str) -> dict[str, np.ndarray]:
    """One table of all event logs as columns: the rank, then the cells of its rows; a NumPy type code for each name."""
    rank, *codes = types.split()
    tables = [getattr(event_log, table) for event_log in event_logs]
    rows = list(chain.from_iterable(tables))
    ranks = np.repeat(np.array([event_log.rank for event_log in event_logs], rank), [len(rows) for rows in tables])
    cells = np.fromiter(rows, list(zip(names[1:], codes, strict=True)), len(rows))  # a row is looked up once
    return {names[0]: ranks, **{name: cells[name].copy() for name in names[1:]}}


def ordered(table: dict[str, np.ndarray], *keys: str) -> dict[str, np.ndarray]:
    """The rows of `table` sorted by these columns, the first one first."""
    order = np.lexsort([table[key] for key in reversed(keys)])
    return {name: column[order] for name, column in table.items()}


def numbered(words: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """(numbers, names): each word as its place among the different words, in order of their first appearance."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(word, len(places)) for word in words], np.int32), tuple(places)
