"""Explain each wait piece by piece, walking back in time until its whole length is accounted for.

The walk goes from span to span and from receiver to sender. If the late rank was doing the same work as the waiting
one, only its extra time counts, so that a rank is not blamed for having begun late. If it began late because it had
itself waited, that wait is explained in the same way. A delay that travels along a ring is thus charged to where it
arose, not to the transfers that pass it on.
"""

import numpy as np

from cluster.waiting.lanes import NEAR, Lanes
from tracing import COMMUNICATE, COMPUTE, IDLE, WAIT

REASONS = ("work", "network", "queue", "stopped", "unknown")
"""What a rank waited for: another rank at work; bytes on their way; its turn at a port or a server; a rank that is
paused or lost; nothing in the trace.
"""
WORK, NETWORK, QUEUE, STOPPED, UNKNOWN = range(len(REASONS))

HOPS = 2000  # most steps that a wait is walked back


class Pieces:
    """Pieces of waits. A piece has a wait, the rank that caused it, the reason, its duration, and the span in which it
    happened.
    """

    def __init__(self):
        self._parts: list[tuple] = []

    def add(self, wait, rank, reason, seconds, span) -> None:
        """Add a piece for each row of these arrays."""
        some = seconds > 0
        if some.any():
            parts = np.broadcast_arrays(wait, rank, reason, seconds, span)
            self._parts.append(tuple(part[some] for part in parts))

    def columns(self) -> list[np.ndarray]:
        """Return the columns wait, rank, reason, seconds and span, with one row for each piece."""
        if not self._parts:
            return [np.zeros(0, kind) for kind in (int, int, int, float, int)]
        return [np.concatenate(column) for column in zip(*self._parts, strict=True)]

    def totals(self, ranks: int, of: np.ndarray | None = None) -> np.ndarray:
        """Return the waiting time by rank and reason, (ranks, reasons), in s; `of` masks the spans that count."""
        wait, rank, reason, seconds, _ = self.columns()
        key = rank * len(REASONS) + reason
        return np.bincount(key, seconds if of is None else seconds * of[wait], ranks * len(REASONS)).reshape(
            ranks, len(REASONS)
        )


def walk_back(lanes: Lanes) -> Pieces:
    """Return the pieces of all waits, found by walking back from each wait's end until its whole length is accounted
    for.
    """
    pieces = Pieces()
    wait = np.flatnonzero(lanes.waits)
    by, left = lanes.by[wait], lanes.end[wait] - lanes.start[wait]
    pieces.add(wait[by < 0], lanes.rank[wait[by < 0]], UNKNOWN, left[by < 0], -1)
    ends = np.isin(wait, lanes.forever, invert=True)
    pieces.add(wait[~ends], by[~ends], STOPPED, left[~ends], lanes.gone)
    wait, left = wait[(by >= 0) & ends], left[(by >= 0) & ends]
    flying = np.minimum(lanes.end[wait] - lanes.released[wait], left)
    pieces.add(wait, lanes.rank[wait], NETWORK, flying, -1)
    left = left - flying
    span, time = lanes.before[wait], lanes.released[wait].copy()
    compared, on = wait.copy(), np.arange(len(wait))  # compared: the wait whose rank is compared with the late one
    for _ in range(HOPS):
        before = span[on]
        span[on], time[on], left[on] = _alongside(lanes, pieces, wait[on], compared[on], before, time[on], left[on])
        on = on[(span[on] != before) & (span[on] >= 0) & (left[on] > 0)]
        on = on[lanes.waits[span[on]] & (lanes.by[span[on]] >= 0)]  # both did the same work, but one had waited
        if not len(on):
            break
        compared[on] = span[on]
        time[on], span[on] = lanes.released[span[on]], lanes.before[span[on]]
    _back(lanes, pieces, wait, span, time, left)
    return pieces


def _alongside(lanes: Lanes, pieces: Pieces, wait, compared, span, time, left):
    """Working backwards from the end, account for the extra time that the late rank took on work that both ranks did.

    `compared` is the wait of the rank that did the same work: `wait`, or one that its explanation led to. Return where
    the walk continues: (span, time, seconds left) of each wait.
    """
    goes_on = lanes.ready[compared] < lanes.start[compared] - NEAR
    own = np.where(goes_on, lanes.at(lanes.rank[compared], lanes.ready[compared]), lanes.previous[compared])
    for _ in range(2):  # the last thing that both did may be sending
        sends = _alike(lanes, own, span) & (lanes.kind[own] == COMMUNICATE) & ~lanes.receives[own]
        sends &= np.abs(lanes.end[span] - lanes.start[span] - lanes.end[own] + lanes.start[own]) <= left
        ahead = np.where(sends, lanes.previous[own], own), np.where(sends, lanes.previous[span], span)
        same = _alike(lanes, *ahead) & (lanes.kind[ahead[0]] == COMPUTE)
        own, span = np.where(same, ahead[0], own), np.where(same, ahead[1], span)
    on = np.flatnonzero(_alike(lanes, own, span) & (lanes.kind[own] == COMPUTE))
    reach = lanes.ready[compared].copy(), time.copy()  # time back to which both are accounted for
    for _ in range(HOPS):
        if not len(on):
            break
        mine, theirs = own[on], span[on]
        longer = (reach[1][on] - lanes.start[theirs]) - (reach[0][on] - lanes.start[mine])
        part = np.clip(longer, 0, left[on])
        moves = lanes.kind[mine] == COMMUNICATE
        passed = _passed_on(lanes, mine, theirs, np.where(moves, part, 0.0))
        span[on[passed >= 0]] = passed[passed >= 0]
        on, mine, theirs, part, moves = (x[passed < 0] for x in (on, mine, theirs, part, moves))
        who = np.where(moves, lanes.rank[wait[on]], lanes.rank[theirs])
        pieces.add(wait[on], who, np.where(moves, NETWORK, WORK), part, theirs)
        left[on] -= part
        reach[0][on], reach[1][on] = lanes.start[mine], lanes.start[theirs]
        own[on], span[on] = lanes.previous[mine], lanes.previous[theirs]
        for side, at in enumerate((own, span)):  # what it waited for in a collective is compared instead
            late = on[_joined_late(lanes, at[on], (mine, theirs)[side])]
            reach[side][late] = lanes.released[at[late]]
            at[late] = lanes.before[at[late]]
        time[on] = reach[1][on]
        on = on[(left[on] > 0) & _alike(lanes, own[on], span[on])]
    return span, time, left


def _joined_late(lanes: Lanes, span: np.ndarray, collective: np.ndarray) -> np.ndarray:
    """Return a mask of the spans that are waits at the start of this collective and were ended by another rank."""
    waits = (span >= 0) & lanes.waits[span] & (lanes.by[span] >= 0) & (lanes.kind[collective] == COMMUNICATE)
    return waits & ~lanes.receives[collective] & (lanes.label[span] == lanes.label[collective])


def _passed_on(lanes: Lanes, mine, theirs, longer) -> np.ndarray:
    """Return the index of the wait that explains why the same collective took `longer` on the late rank; -1 where no
    wait does.

    One rank's delay reaches the others of a ring one after another, so the collective takes longer on some of them.
    The wait is the one before the collective on this rank or, failing that, on the late rank.
    """
    found = np.full(len(mine), -1)
    for before in (lanes.previous[theirs], lanes.previous[mine]):
        waited = (before >= 0) & lanes.waits[before] & (lanes.by[before] >= 0) & (longer > NEAR)
        waited &= (lanes.label[before] == lanes.label[mine]) & (
            lanes.end[before] - lanes.start[before] >= longer - NEAR
        )
        found = np.where(waited, before, found)
    return found


def _alike(lanes: Lanes, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return a mask: True where two spans of different ranks have the same kind, label and step, and are not waits."""
    same = (one >= 0) & (other >= 0) & ~lanes.waits[one] & (lanes.rank[one] != lanes.rank[other])
    for column in (lanes.kind, lanes.label, lanes.step):
        same &= column[one] == column[other]
    return same


def _turn(lanes: Lanes, wait: np.ndarray) -> np.ndarray:
    """Return, for each wait, when the rank that ended it sent its previous message, in s; -inf if to the same rank."""
    m, turn = lanes.messages, np.full(len(wait), -np.inf)
    place = np.empty(len(m.sent), int)
    place[m.by_sender] = np.arange(len(place))
    some = np.flatnonzero(lanes.message[wait] >= 0)
    at = place[lanes.message[wait[some]]]
    some, at = some[at > 0], at[at > 0]
    one, before = m.by_sender[at], m.by_sender[at - 1]
    others = (m.src[before] == m.src[one]) & (m.dst[before] != m.dst[one])
    turn[some[others]] = m.sent[before[others]] + NEAR
    return turn


def _back(lanes: Lanes, pieces: Pieces, *walk: np.ndarray) -> None:
    """Account for the rest of each wait by what happened before, from `time` backwards.

    `walk` has the columns (wait, span, time, seconds left).
    """
    wait = walk[0]
    rank = np.where(walk[1] >= 0, lanes.rank[walk[1]], lanes.by[wait])
    walk = (*walk, rank, _turn(lanes, wait))
    goes_on = walk[3] > 0
    for _ in range(HOPS):
        wait, span, time, left, rank, turn = walk = tuple(column[goes_on] for column in walk)
        if not len(wait):
            return
        begun = span >= 0
        pieces.add(wait[~begun], rank[~begun], WORK, left[~begun], -1)  # it had not begun
        wait, span, time, left, rank, turn = walk = tuple(column[begun] for column in walk)
        busy = np.where(lanes.serves[rank] & (time <= turn), QUEUE, WORK)  # a server at work for others
        gap = np.clip(time - lanes.end[span], 0, left)  # a gap in the record
        pieces.add(wait, rank, busy, gap, span)
        left, time = left - gap, np.minimum(time, lanes.end[span])
        kind, begin, message = lanes.kind[span], lanes.begin[span], lanes.message[span]
        took = np.clip(time - begin, 0, left)
        moved = (kind == COMMUNICATE) & (message >= 0)  # a message, which queues before it is on the wire
        queued = np.where(moved, np.clip(took - (time - begin - lanes.queued[message]), 0, took), 0.0)
        pieces.add(wait, lanes.port[message], QUEUE, queued, span)
        moves = (kind == COMMUNICATE) & (moved | (busy == WORK))
        reason = np.select([moves, kind == IDLE, kind == WAIT], [NETWORK, STOPPED, UNKNOWN], busy)
        pieces.add(wait, np.where(moves, lanes.rank[wait], rank), reason, took - queued, span)
        span, time, left = lanes.before[span], np.minimum(time, begin), left - took
        walk = wait, span, time, left, np.where(span >= 0, lanes.rank[span], rank), turn
        goes_on = left > 0
    wait, span, _, left, rank, _ = walk
    pieces.add(wait, rank, UNKNOWN, left, span)
