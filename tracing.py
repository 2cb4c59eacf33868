"""The trace of a run: the kinds of spans and of memory, the columns of every table, and the trace itself.

Ranks append rows to event logs (`cluster.event_log`); `Trace.of(event_logs)` converts the rows of all ranks to
columns. Times are seconds since the start of the run, on the run's own clock: virtual time on the simulated cluster,
monotonic time on a real one. Nothing here depends on training; the task writes the rows of losses and reports.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

KINDS = ("compute", "update", "communicate", "wait", "idle")
"""What a rank can be doing, in this order: running forward and backward passes; running optimizer, averaging
and compression kernels; transferring a message it needs now; blocked because another rank is not ready; stopped, i.e.
paused or lost. Each kind has the same colour in every chart."""

COMPUTE, UPDATE, COMMUNICATE, WAIT, IDLE = range(len(KINDS))

LOST = "lost"
"""The label of the time after a rank was lost."""

PAUSED = "paused"
"""The label of the time in which a rank was paused."""

HELD = ("parameters", "gradients", "optimizer state", "activations", "buffers")
"""What a rank's memory is used for: weights, in all stored versions; gradients, including those that a server collects;
the state of the update rule; what a forward pass saves for the backward pass; vectors that an algorithm or a
compression keeps between steps. Messages, temporaries within a step, and the vector that threads share do not count."""

SPANS = ("rank", "kind", "start", "end", "step", "label")
MESSAGES = ("src", "dst", "tag", "bytes", "sent", "arrived", "collective")
LOSSES = ("rank", "step", "samples", "seconds", "loss")
APPLIED = ("rank", "seconds", "staleness")
MEASURES = ("rank", "step", "seconds", "quantity", "value")
MEMORY = ("rank", "step", "seconds", "kind", "bytes")
REPORTS = ("rank", "index", "seconds", "start", "stop", "parameters")


MESSAGE_CELLS = np.dtype(list(zip(MESSAGES[1:], ("i4", "i4", "i8", "f8", "f8", "?"), strict=True)))
"""The columns of one rank's messages."""


class Rows:
    """A table of an event log. Rows are appended one by one, as to a list, or in blocks, which are structured arrays.

    A block may be filled in later. Reading it leaves out the messages that have not arrived.
    """

    __slots__ = ("_parts", "append")

    def __init__(self):
        self._parts: list = []
        self._continue()

    def _continue(self) -> None:
        self._parts.append([])
        self.append = self._parts[-1].append

    def add(self, block: np.ndarray) -> None:
        """Append a block of messages, an array of shape (rows,) and type MESSAGE_CELLS."""
        self._parts.append(block)
        self._continue()

    def parts(self) -> list:
        """Return the lists of single rows and the blocks, in order."""
        return [
            part if isinstance(part, list) else part[~np.isnan(part["arrived"])] for part in self._parts if len(part)
        ]

    def __iter__(self) -> Iterator[tuple]:
        return chain.from_iterable(part if isinstance(part, list) else part.tolist() for part in self.parts())

    def __len__(self) -> int:
        return sum(map(len, self.parts()))

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other)


@dataclass(frozen=True)
class Trace:
    """The spans and messages of all ranks in columns, sorted by start (spans) and by sending time (messages).

    spans: rank (int32), kind (int8, indexes KINDS), start, end (float64, s), step (int32), label (indexes `labels`)
    messages: src, dst, tag (int32), bytes (int64), sent, arrived (float64, s), collective (bool)
    A collective that was not traced message by message has one row per neighbour, with the bytes of all messages to it.
    """

    ranks: int
    spans: dict[str, np.ndarray]
    messages: dict[str, np.ndarray]
    labels: tuple[str, ...]

    @classmethod
    def of(cls, event_logs: Sequence[Any]) -> Trace:
        """Return the trace of these event logs, one per rank."""
        spans = remove_pauses(join_tables(event_logs, "spans", SPANS, "i4 i1 f8 f8 i4 O"))
        spans["label"], labels = number_words(spans["label"])
        messages = join_tables(event_logs, "messages", MESSAGES, "i4 i4 i4 i8 f8 f8 ?")
        return cls(len(event_logs), sort_rows(spans, "start", "rank"), sort_rows(messages, "sent", "src"), labels)

    def seconds(self) -> float:
        """Return the time at which the last span ended or the last message arrived, in s, or 0 for an empty trace."""
        ends = [c.max() for c in (self.spans["end"], self.messages["arrived"]) if len(c) and np.isfinite(c).any()]
        return float(max(ends, default=0.0))

    def ends(self) -> np.ndarray:
        """Return the time at which each rank's last span ends, in s, shape (ranks,); 0 for a rank without spans."""
        ends = np.zeros(self.ranks)
        np.maximum.at(ends, self.spans["rank"], self.spans["end"])
        return ends

    def lost_ranks(self) -> dict[int, float]:
        """Return the ranks that were lost for good, each with the time at which it was lost, in s."""
        if LOST not in self.labels:
            return {}
        spans, ends = self.spans, self.ends()
        gone = (spans["kind"] == IDLE) & (spans["label"] == self.labels.index(LOST))
        gone &= spans["end"] >= ends[spans["rank"]]
        return dict(zip(spans["rank"][gone].tolist(), spans["start"][gone].tolist(), strict=True))

    def busy(self) -> np.ndarray:
        """Return the time, in s, that each rank spent in each kind of span, shape (ranks, len(KINDS))."""
        table = np.zeros((self.ranks, len(KINDS)))
        np.add.at(table, (self.spans["rank"], self.spans["kind"]), self.spans["end"] - self.spans["start"])
        return table

    def traffic(self) -> np.ndarray:
        """Return the number of payload bytes sent from each rank (row) to each other (column), shape (ranks, ranks)."""
        table = np.zeros((self.ranks, self.ranks))
        np.add.at(table, (self.messages["src"], self.messages["dst"]), self.messages["bytes"])
        return table


def join_tables(event_logs: Sequence[Any], table: str, names: Sequence[str], types: str) -> dict[str, np.ndarray]:
    """Return one table of all event logs, joined into columns called `names`; the first column is the rank.

    `types` holds one NumPy type code per name, separated by spaces.
    """
    rank, *codes = types.split()
    cells = np.dtype(list(zip(names[1:], codes, strict=True)))
    tables = [getattr(event_log, table) for event_log in event_logs]
    parts = [table.parts() if isinstance(table, Rows) else [table] for table in tables]
    lengths = [sum(map(len, some)) for some in parts]
    ranks = np.repeat(np.array([event_log.rank for event_log in event_logs], rank), lengths)
    blocks = [
        part if isinstance(part, np.ndarray) else np.fromiter(part, cells, len(part)) for some in parts for part in some
    ]
    cells = np.concatenate(blocks) if blocks else np.empty(0, cells)
    return {names[0]: ranks, **{name: cells[name].copy() for name in names[1:]}}


def remove_pauses(spans: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the spans with their ranks' pauses cut out; a span that continues after a pause becomes two. The arrays of
    `spans` may be overwritten.
    """
    idle = np.flatnonzero(spans["kind"] == IDLE)
    pauses = idle[spans["label"][idle] == PAUSED]
    for rank, start, end in [(spans["rank"][i], spans["start"][i], spans["end"][i]) for i in pauses]:
        cut = (spans["rank"] == rank) & (spans["kind"] != IDLE) & (spans["start"] < end) & (spans["end"] > start)
        later = {name: column[cut] for name, column in spans.items()}
        later["start"] = np.full(cut.sum(), end)
        spans["end"][cut] = np.minimum(spans["end"][cut], start)
        left = ~cut | (spans["start"] < spans["end"]), later["start"] < later["end"]
        spans = {name: np.concatenate([spans[name][left[0]], later[name][left[1]]]) for name in spans}
    return spans


def sort_rows(table: dict[str, np.ndarray], *keys: str) -> dict[str, np.ndarray]:
    """Return `table` with its rows sorted by the columns `keys`, the most significant key first."""
    order = np.lexsort([table[key] for key in reversed(keys)])
    return {name: column[order] for name, column in table.items()}


def number_words(words: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return (indices, names): `names` are the distinct words in order of appearance, and `indices` point into them."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(word, len(places)) for word in words], np.int32), tuple(places)
