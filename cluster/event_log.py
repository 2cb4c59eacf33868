"""What the ranks of a cluster record while they run, and the outcome of a run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracing import HELD, Trace

_NUMBER = {kind: number for number, kind in enumerate(HELD)}


class EventLog:
    """The rows recorded by one rank. Times are seconds since the start of the run.

    spans      (kind, start, end, step, label)      kind indexes KINDS, label is a few letters: "gradient", "F3"
    messages   (dst, tag, bytes, sent, arrived, collective)   arrived is NaN while unknown
    losses     (step, samples, seconds, loss)       one mini-batch; samples counts this rank's so far
    applied    (seconds, staleness)                 one update of the shared model
    measures   (step, seconds, quantity, value)     a quantity specific to the algorithm, by name, such as its noise
                                                    scale or the spread of its replicas
    memory     (step, seconds, kind, bytes)         the bytes of a kind that this rank holds from then on; kind indexes
                                                    HELD, and `held` has the latest value of each kind
    reports    (index, seconds, start, stop, w)     parameters start:stop of the model that this rank would ship; index
                                                    counts this rank's reports of that part from 1, kept or dropped;
                                                    `places` has the indices of parts that are not contiguous, by
                                                    (start, stop)
    remarks    the reasons why this rank did not replay all its gradients from a CUDA graph, as clauses

    `clock` returns the rank's time; `step` is its current step (-1 before the first, and on servers). `mark` is the
    time up to which every second is accounted for. `flops` counts the FLOPs of its kernels so far, `updates` the new
    versions of the model that it has reported, `shared_updates` those that it has written into shared memory, and
    `replays` the gradients that it replayed from a CUDA graph. On a real rank, in s: `ran` is the time for which it had
    a core, `starved` the time for which it waited for one, `late` how far it fell behind its emulated device, and
    `overdue` the total time by which messages arrived later than the emulated network would have delivered them.
    """

    COUNTS = ("flops", "updates", "shared_updates", "replays", "ran", "starved", "late", "overdue")
    TABLES = ("spans", "messages", "losses", "applied", "measures", "memory", "reports", "remarks")
    __slots__ = ("rank", "clock", "step", "busy", "mark", "held", "places", *COUNTS, *TABLES)

    def __init__(self, rank: int, clock: Callable[[], float]):
        self.rank, self.clock = rank, clock
        self.step = -1
        self.busy = False  # True inside `doing`, to whose span kernels belong
        self.mark = 0.0
        self.flops, self.updates, self.shared_updates, self.replays = 0.0, 0, 0, 0
        self.ran = self.starved = self.late = self.overdue = 0.0
        self.spans: list[tuple] = []
        self.messages: Any = []
        self.losses: list[tuple] = []
        self.applied: list[tuple] = []
        self.measures: list[tuple] = []
        self.memory: list[tuple] = []
        self.held = [0] * len(HELD)
        self.places: dict[tuple[int, int], np.ndarray] = {}
        self.reports: list[tuple] = []
        self.remarks: list[str] = []

    def hold(self, kind: str, nbytes: int) -> None:
        """Record that this rank now holds `nbytes` of memory of this kind. Raise ValueError for an unknown kind."""
        number = _NUMBER.get(kind)
        if number is None:
            raise ValueError(f"there is no kind of memory {kind!r}; use {', '.join(HELD[:-1])} or {HELD[-1]}.")
        if self.held[number] != nbytes:
            self.held[number] = nbytes
            self.memory.append((self.step, self.clock(), number, nbytes))

    def keep(self, kind: str, nbytes: int) -> None:
        """Record that this rank holds `nbytes` bytes more of this kind than before."""
        self.hold(kind, self.held[HELD.index(kind)] + nbytes)

    def inventory(self) -> str:
        """Return in words what memory this rank holds now, in bytes, such as "1,200: 400 for parameters, 800 for
        optimizer state".
        """
        parts = [f"{nbytes:,} for {kind}" for kind, nbytes in zip(HELD, self.held, strict=True) if nbytes]
        return f"{sum(self.held):,}: {', '.join(parts)}"

    def doing(self, kind: int, label: str) -> Doing:
        """Return a context that records its block, including the kernels called in it, as one span of `kind`."""
        return Doing(self, kind, label)


class Doing:
    """A context that records its block as one span. A class, since a generator would take twice as long to enter."""

    __slots__ = ("event_log", "kind", "label", "start")

    def __init__(self, event_log: EventLog, kind: int, label: str):
        self.event_log, self.kind, self.label = event_log, kind, label

    def __enter__(self) -> None:
        event_log = self.event_log
        self.start, event_log.busy = event_log.clock(), True

    def __exit__(self, *_: object) -> None:
        event_log = self.event_log
        event_log.busy = False
        event_log.mark = end = event_log.clock()
        event_log.spans.append((self.kind, self.start, end, event_log.step, self.label))


@dataclass
class Outcome:
    """The outcome of a run: the result and the event log of every rank.

    `error` is what ended the run early, or None if it finished. Ranks that did not finish have the result None, and the
    event logs contain everything recorded until then. `notes` are one-line remarks for the reader (ranks lost but
    survived, messages never received, a missing device). `lost` are ranks that ended without a result in a run that
    finished without them. `gpus` is the number of GPUs that the ranks had, 0 if they computed on the CPU for lack of
    GPUs, or None if the run asked for none.
    """

    results: list[Any]
    event_logs: list[EventLog]
    error: Exception | None = None
    notes: tuple[str, ...] = ()
    lost: tuple[int, ...] = ()
    gpus: int | None = None

    def trace(self) -> Trace:
        """Return the trace of the event logs of all ranks."""
        return Trace.of(self.event_logs)

    def updates(self) -> int:
        """Return the number of versions of the model that were reported.

        In shared memory the ranks create versions one after the other, so this is the sum of their counts. Otherwise
        every rank that reports counts each version, of its own part or its own replica, so this is the largest count.
        """
        shared = sum(event_log.shared_updates for event_log in self.event_logs)
        return shared or max(event_log.updates for event_log in self.event_logs)
