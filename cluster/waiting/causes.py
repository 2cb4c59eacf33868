"""Causes of waits: for whom or what each rank waited, derived only from a trace's spans and messages.

`cluster.waiting.lanes` finds what ended a wait; from there `cluster.waiting.pieces` walks back and accounts for its
length: work of a rank, the network, a queue at a port or a server, a rank that is paused or lost. This module picks the
cause that explains most of the wait. None of the three depends on algorithms or clusters. The same walk from the last
span of the run gives its critical path.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cluster.script_summary import Waited
from cluster.waiting.lanes import NEAR, Lanes
from cluster.waiting.pieces import REASONS, WORK, Pieces, walk_back
from tracing import COMPUTE, IDLE, UPDATE, Trace

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Causes:
    """Why ranks waited. All columns except the last three have one row per span of the trace.

    message   the message that ended this wait, or that was received in this span, as a row of the messages; else -1
    by        the rank that ended the wait: it sent the message, or was the last to join; -1 if nobody did, or no wait
    rank      the rank that caused most of the wait; for the network the receiver, for a queue the owner of the port
    reason    how: index of REASONS; -1 for spans that are not waits
    seconds   how much of the wait that explains
    span      a span in which it happened, as a row of the spans, -1 if there is none
    factor    how long that span took, divided by what is usual for its label; 0 if unknown
    without   seconds that the rank's step would have taken if that span had taken as long as usual; 0 if unknown
    critical  whether the span is on the critical path
    totals    seconds of waiting by rank that caused it and reason, (ranks, reasons)
    training  the same, for ranks that compute: an idle server costs nothing
    pieces    the parts behind all of this: (wait, rank, reason, seconds), where `wait` is a row of the spans
    """

    message: np.ndarray
    by: np.ndarray
    rank: np.ndarray
    reason: np.ndarray
    seconds: np.ndarray
    span: np.ndarray
    factor: np.ndarray
    without: np.ndarray
    critical: np.ndarray
    totals: np.ndarray
    training: np.ndarray
    pieces: tuple[np.ndarray, ...]

    def totals_in(self, spans: np.ndarray) -> np.ndarray:
        """Return the waiting time by rank and reason, (ranks, reasons), in s, of the waits in the mask `spans`."""
        wait, rank, reason, seconds = self.pieces
        key = rank * len(REASONS) + reason
        return np.bincount(key, seconds * spans[wait], self.totals.size).reshape(self.totals.shape)


def causes(trace: Trace, recorded: Sequence[Waited] = ()) -> Causes:
    """Return the causes of all waits. `recorded` has waits whose culprits are known."""
    order = np.lexsort([trace.spans["start"], trace.spans["rank"]])
    lanes = Lanes(trace, order, recorded)
    pieces = walk_back(lanes)
    found = _chosen(lanes, pieces, is_one_program=bool(recorded))
    found["critical"] = _critical(lanes)
    found["message"], found["by"] = lanes.messages.row[lanes.message], np.where(lanes.waits, lanes.by, -1)
    found["message"][lanes.message < 0] = -1
    found["span"] = np.where(found["span"] >= 0, order[found["span"]], -1)
    columns = {}
    for name, column in found.items():
        columns[name] = np.empty_like(column)
        columns[name][order] = column
    computes = np.isin(np.arange(trace.ranks), trace.spans["rank"][trace.spans["kind"] == COMPUTE])
    training = pieces.totals(trace.ranks, computes[lanes.rank])
    wait, *others = pieces.columns()[:4]
    parts = (order[wait], *others)
    return Causes(**columns, totals=pieces.totals(trace.ranks), training=training, pieces=parts)


def _chosen(lanes: Lanes, pieces: Pieces, is_one_program: bool) -> Columns:
    """Return the columns `rank`, `reason`, `seconds`, `span`, `factor` and `without` for the main cause of each wait.

    `is_one_program` means that all ranks execute one script, and do the same things in the same order.
    """
    wait, rank, reason, seconds, span = pieces.columns()
    key, cause = np.unique((wait * lanes.ranks + rank) * len(REASONS) + reason, return_inverse=True)
    total = np.bincount(cause, seconds, len(key))
    longest = np.lexsort([seconds, cause])
    longest = longest[np.flatnonzero(np.diff(cause[longest], append=-1))]  # its piece, for each key
    most = np.lexsort([total, key // (len(REASONS) * lanes.ranks)])
    most = most[np.flatnonzero(np.diff(wait[longest[most]], append=-1))]
    piece = longest[most]
    usual = np.append(_usual(lanes, is_one_program), np.inf)  # for span -1, and for what is not work
    took = lanes.end - lanes.start
    unusual = np.minimum(seconds, np.clip(np.append(took, 0)[span] - usual[span], 0, None)) * (reason == WORK)
    saved = np.minimum(np.bincount(cause, unusual, len(key))[most], _shortest(lanes, wait[piece]))
    steps = _step_lengths(lanes)[wait[piece]]
    worked = np.where(reason[piece] == WORK, np.append(took, 0)[span[piece]] / usual[span[piece]], 0.0)
    values = {
        "rank": (rank[piece], -1),
        "reason": (reason[piece], -1),
        "seconds": (total[most], 0.0),
        "span": (span[piece], -1),
        "factor": (worked, 0.0),
        "without": (np.where((worked > 0) & (lanes.step[wait[piece]] >= 0), steps - saved, 0.0), 0.0),
    }
    found = {}
    for name, (column, none) in values.items():
        found[name] = np.full(len(took), none)
        found[name][wait[piece]] = column
    return found


def _usual(lanes: Lanes, is_one_program: bool) -> np.ndarray:
    """Return, for each span, how long work with its label usually takes: the median over ranks.

    It is infinity for a span that is not work.

    A rank's value is the lower median of all its spans with the label. In a script, operations of all kinds may have
    the same label, so there each span is compared with the same one on the other ranks, if they have it.
    """
    usual = np.full(len(lanes.rank), np.inf)
    works = np.flatnonzero((lanes.kind == COMPUTE) | (lanes.kind == UPDATE))
    if not len(works):
        return usual
    if is_one_program:
        same, seconds = _same_on_other_ranks(lanes, works)
        usual[works[same]] = np.maximum(seconds[same], 1e-30)
        return usual
    label = lanes.label[works].astype(int)
    key, own = _medians(label * lanes.ranks + lanes.rank[works], (lanes.end - lanes.start)[works])
    labels, medians = _medians(key // lanes.ranks, own)
    usual[works] = np.maximum(medians[np.searchsorted(labels, label)], 1e-30)
    return usual


def _same_on_other_ranks(lanes: Lanes, spans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a mask of the spans that occur on several ranks, and each one's median duration over these ranks, in s.

    Spans correspond if label, step and number within the step are equal. The mask leaves out labels that occur on some
    ranks more often than on others in a step.
    """
    step = lanes.step[spans].astype(int) + 1
    kind = lanes.label[spans].astype(int) * (step.max() + 1) + step
    own = kind * lanes.ranks + lanes.rank[spans]
    order = np.argsort(own, kind="stable")
    first = np.flatnonzero(np.diff(own[order], prepend=-1))
    count = np.diff(first, append=len(own))
    number = np.empty(len(own), int)
    number[order] = np.arange(len(own)) - np.repeat(first, count)
    kinds, at = np.unique(own[order][first] // lanes.ranks, return_inverse=True)
    least, most = np.full(len(kinds), len(own)), np.zeros(len(kinds), int)
    np.minimum.at(least, at, count)
    np.maximum.at(most, at, count)
    place = np.searchsorted(kinds, kind)
    keys, medians = _medians(place * (number.max() + 1) + number, (lanes.end - lanes.start)[spans])
    mask = (least == most) & (np.bincount(at) > 1)
    return mask[place], medians[np.searchsorted(keys, place * (number.max() + 1) + number)]


def _shortest(lanes: Lanes, waits: np.ndarray) -> np.ndarray:
    """Return, for each of these waits, the length of the shortest wait that the same rank ended at the same time."""
    order = np.lexsort([lanes.by[waits], lanes.end[waits]])
    end, by, took = lanes.end[waits][order], lanes.by[waits][order], (lanes.end - lanes.start)[waits]
    group = np.empty(len(waits), int)
    group[order] = np.cumsum((np.diff(end, prepend=-1) > NEAR) | (np.diff(by, prepend=-2) != 0)) - 1
    shortest = np.full(len(waits), np.inf)
    np.minimum.at(shortest, group, took)
    return shortest[group]


def _step_lengths(lanes: Lanes) -> np.ndarray:
    """Return, for each span, how long its rank took for the step it belongs to."""
    key = lanes.rank.astype(np.int64) * (lanes.step.max(initial=0) + 2) + lanes.step + 1
    _, step = np.unique(key, return_inverse=True)
    first, end = np.full(len(key), np.inf), np.zeros(len(key))
    np.minimum.at(first, step, lanes.start)
    np.maximum.at(end, step, lanes.end)
    return (end - first)[step]


def _medians(key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (the distinct keys, the lower median of each one's values)."""
    order = np.lexsort([value, key])
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.diff(first, append=len(order))
    return key[order[first]], value[order[first + (count - 1) // 2]]


def _critical(lanes: Lanes) -> np.ndarray:
    """Return a mask of the spans, other than waits, on the critical path: a chain without slack from the start to the
    run's last span.
    """
    critical = np.zeros(len(lanes.rank), bool)
    works = np.flatnonzero(lanes.kind != IDLE)
    if not len(works):
        return critical
    before, seen = lanes.before.tolist(), set()
    span = int(works[np.argmax(lanes.end[works])])
    while span >= 0 and span not in seen:
        seen.add(span)
        span = before[span]
    critical[list(seen)] = True
    return critical & ~lanes.waits
