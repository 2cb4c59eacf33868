"""Causes: for whom or for what every rank waited, read from the spans and messages of a trace alone.

A wait ends when a message is sent that the rank needs, or when the last rank joins a collective. From there each wait
is walked back over what happened before, span by span and from receiver to sender, until its whole length is accounted
for: by work of a rank, by the network, by a queue at a port or a server, by a rank that is paused or lost. Where the
rank that is late was doing the same as the one that waits, only what it took longer counts, so that a rank is not
blamed for having begun late.

Nothing here knows an algorithm or a cluster. The same walk from the last span of the run gives its critical path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracing import COMMUNICATE, COMPUTE, IDLE, UPDATE, WAIT, Trace

REASONS = ("work", "network", "queue", "stopped", "unknown")
"""What a rank waited for: another rank at work; bytes on their way; its turn at a port or a server; a rank that is
paused or lost; nothing that the trace tells of."""
WORK, NETWORK, QUEUE, STOPPED, UNKNOWN = range(len(REASONS))

HOPS = 2000  # that a wait is walked back, at most
NEAR = 2e-9  # s between two records of one moment
RECEIVE = "receive"  # the label of spans in which a rank takes a message that is not part of a collective

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Causes:
    """Why ranks waited. All columns but `totals` and `training` have a row for each span of the trace.

    message   the message that ended this wait, or that was received in this span, as a row of the messages; else -1
    by        the rank that ended the wait: it sent the message, or was the last to join; -1 if nobody did, or no wait
    rank      the rank that caused most of the wait; of the network the receiver, of a queue the owner of the port
    reason    how: index of REASONS; -1 of spans that are no waits
    seconds   how much of the wait that is
    span      a span in which it happened, as a row of the spans, -1 if there is none
    factor    how many times longer than usual that span took, among spans of its label; 0 if that is not known
    without   seconds that the step of the rank would take if that span had taken as long as usual; 0 if not known
    critical  whether the span is on the critical path
    totals    seconds of waiting by rank that caused it and reason, (ranks, reasons)
    training  the same of ranks that compute: that a server has nothing to do costs nobody anything
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

    def columns(self) -> Columns:
        """Return the columns by name."""
        return {name: column for name, column in vars(self).items() if name not in ("totals", "training")}


def causes(trace: Trace) -> Causes:
    """Return who and what every wait of `trace` was caused by."""
    order = np.lexsort([trace.spans["start"], trace.spans["rank"]])
    lanes = Lanes(trace, order)
    pieces = walked(lanes)
    found = _chosen(lanes, pieces)
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
    return Causes(**columns, totals=pieces.totals(trace.ranks), training=training)


class Messages:
    """Messages between two ranks that have arrived, ordered by receiver and sending time."""

    def __init__(self, trace: Trace):
        m = trace.messages
        row = np.flatnonzero(np.isfinite(m["arrived"]) & (m["src"] != m["dst"]))
        row = row[np.lexsort([m["arrived"][row], m["sent"][row], m["dst"][row]])]
        self.row = np.append(row, -1)  # so that message -1 is none
        self.src, self.dst, self.bytes, self.sent, self.arrived, self.collective = (
            m[name][row] for name in ("src", "dst", "bytes", "sent", "arrived", "collective")
        )
        self.collective = self.collective.astype(bool)  # of a trace without messages it may be anything
        self.ranks = trace.ranks
        self.by_arrival = np.lexsort([self.arrived, self.dst])
        self.by_sender = np.lexsort([self.sent, self.src])

    def into(self, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return the message into each rank whose sending is nearest to `time`, -1 if there is none near."""
        at = last(self.ranks, self.dst, self.sent, rank, time + NEAR)
        near = (at >= 0) & (np.abs(self.sent[at] - time) <= NEAR) if len(self.sent) else np.zeros(len(at), bool)
        return np.where(near, at, -1)

    def arriving(self, rank: np.ndarray, since: np.ndarray, until: np.ndarray) -> np.ndarray:
        """Return the last message that arrived at each rank in (since, until], -1 if none did."""
        by = self.by_arrival
        at = last(self.ranks, self.dst[by], self.arrived[by], rank, until + NEAR)
        good = (at >= 0) & (self.arrived[by][at] > since) if len(by) else np.zeros(len(at), bool)
        return np.where(good, by[at] if len(by) else -1, -1)

    def queued(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (seconds, rank): how long each message queued, and at whose port.

        A message takes as long as the fastest of its size; the rest is queueing, as far as others passed the same port
        before it: of its receiver, or of its sender.
        """
        if not len(self.sent):
            return np.zeros(1), np.zeros(1, int)  # so that message -1 is none
        took = self.arrived - self.sent
        _, size = np.unique(self.bytes, return_inverse=True)
        fastest = np.full(size.max() + 1, np.inf)
        np.minimum.at(fastest, size, took)
        inward, outward = np.full(len(took), -np.inf), np.full(len(took), -np.inf)
        for before, by, side in ((inward, self.by_arrival, self.dst), (outward, self.by_sender, self.src)):
            same = side[by[1:]] == side[by[:-1]]
            before[by[1:][same]] = self.arrived[by[:-1][same]]
        at = np.maximum(inward, outward)
        queued = np.clip(took - fastest[size], 0, np.maximum(at - self.sent, 0))
        queued[self.collective] = 0.0  # of whose messages only the sum is known
        return queued, np.where(inward >= outward, self.dst, self.src)


class Lanes:
    """The spans, rank by rank, with what came before each of them.

    begin     when what the span waits for or does begins: its start; of a received message its sending
    before    the span before, which ended there: of the same rank; of a message, what its sender was doing
    """

    def __init__(self, trace: Trace, order: np.ndarray):
        self.ranks = trace.ranks
        self.rank, self.kind, self.start, self.end, self.step, self.label = (
            trace.spans[name][order] for name in ("rank", "kind", "start", "end", "step", "label")
        )
        self.messages = messages = Messages(trace)
        n = len(order)
        self.previous = np.arange(-1, n - 1)
        self.previous[np.flatnonzero(np.diff(self.rank, prepend=-1))] = -1
        self.waits = self.kind == WAIT
        self.receives = (self.kind == COMMUNICATE) & np.isin(self.label, _numbers(trace.labels, RECEIVE))
        self.lost = (self.kind == IDLE) & np.isin(self.label, _numbers(trace.labels, "lost"))
        works = np.zeros(trace.ranks, bool)
        works[self.rank[self.kind == COMPUTE]] = True
        self.serves = ~works  # a rank that never computes answers others
        self.message, self.by = np.full(n, -1), np.full(n, -1)
        self.released = self.end.copy()  # when the other rank let a wait end
        self.forever, self.gone = np.zeros(0, int), -1  # waits that never ended, and the loss that they wait for
        self._match_waits()
        got = np.flatnonzero(self.receives)
        self.message[got] = messages.arriving(self.rank[got], self.start[got], self.end[got])
        self.begin, self.before = self.start.copy(), self.previous.copy()
        moved = np.flatnonzero((self.message >= 0) & ~self.waits)
        self.begin[moved] = np.minimum(messages.sent[self.message[moved]], self.start[moved])
        known = np.flatnonzero(self.waits & (self.by >= 0))
        self.begin[known] = self.released[known]
        self.before[known] = self.at(self.by[known], self.released[known])
        self.before[moved] = self.at(messages.src[self.message[moved]], self.begin[moved])
        self.queued, self.port = messages.queued()

    def at(self, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return the last span of each rank that began before `time`, -1 if there is none."""
        return last(self.ranks, self.rank, self.start, rank, time - NEAR)

    def _match_waits(self) -> None:
        """Find what ended each wait, trying what tells most first."""
        m, rank, end = self.messages, self.rank, self.end
        self._set(found := np.flatnonzero(self.waits), m.into(rank[found], end[found]))
        self._join(self._open())
        rest = self._open()  # on a message that was on its way, or a rank that has stopped
        after = np.minimum(rest + 1, len(rank) - 1)
        goes_on = (after > rest) & (rank[after] == rank[rest])
        until = np.where(goes_on & (self.kind[after] == COMMUNICATE), self.end[after], end[rest])
        self._set(rest, np.where(goes_on, m.arriving(rank[rest], self.start[rest], until), -1), arrival=True)
        self._lost(self._open())
        self._coincide(self._open())

    def _open(self) -> np.ndarray:
        return np.flatnonzero(self.waits & (self.by < 0))

    def _set(self, rows: np.ndarray, message: np.ndarray, arrival: bool = False) -> None:
        """Let these waits have been ended by these messages, where they are not -1."""
        rows, message = rows[message >= 0], message[message >= 0]
        self.message[rows], self.by[rows] = message, self.messages.src[message]
        if arrival:  # until then it was on its way
            self.released[rows] = np.minimum(self.messages.sent[message], self.end[rows])

    def _join(self, rows: np.ndarray) -> None:
        """Find the last rank to join a collective, whose message began when the others' waits ended."""
        m = self.messages
        some = np.flatnonzero(m.collective)
        some = some[np.argsort(m.sent[some], kind="stable")]
        low, high = (np.searchsorted(m.sent[some], self.end[rows] + way * NEAR, way_side) for way, way_side in
                     ((-1, "left"), (1, "right")))  # fmt: skip
        one = high - low == 1
        self._set(rows[one], some[low[one]])
        rows = rows[high - low > 1]  # several: the one of the same ring, going from neighbour to neighbour
        current = self.rank[rows]
        among = np.lexsort([m.sent, m.dst])
        among = among[m.collective[among]]
        for _ in range(self.ranks):
            if not len(rows):
                break
            at = last(self.ranks, m.dst[among], m.sent[among], current, self.end[rows] + NEAR)
            inside = at >= 0
            rows, at = rows[inside], among[at[inside]]
            here = np.abs(m.sent[at] - self.end[rows]) <= NEAR
            self._set(rows[here], at[here])
            rows, current = rows[~here], m.src[at[~here]]

    def _lost(self, rows: np.ndarray) -> None:
        """Blame a lost rank for waits that never ended."""
        ends = np.append(np.flatnonzero(np.diff(self.rank)), len(self.rank) - 1) if len(self.rank) else rows
        gone = ends[self.lost[ends]]
        if not len(gone):
            return
        first = gone[np.argmin(self.start[gone])]
        ends = ends[self.waits[ends]]
        before = ends - 1  # a wait may have a second part after the end of the run
        before = before[(before >= 0) & self.waits[before] & (self.end[before] == self.start[ends])]
        self.forever = rows[np.isin(rows, np.concatenate([ends, before]))]
        self.by[self.forever], self.gone = self.rank[first], first

    def _coincide(self, rows: np.ndarray) -> None:
        """Find a rank whose work ended when these waits ended: it was the last to come, and sent nothing."""
        works = np.flatnonzero(~self.waits)
        works = works[np.argsort(self.end[works], kind="stable")]
        at = np.searchsorted(self.end[works], self.end[rows] + NEAR, "right") - 1
        good = (at >= 0) & (np.abs(self.end[works[at]] - self.end[rows]) <= NEAR) if len(works) else at >= 0
        good[good] &= self.rank[works[at[good]]] != self.rank[rows[good]]
        self.by[rows[good]] = self.rank[works[at[good]]]


class Pieces:
    """Parts of waits: of which wait, caused by which rank, how, for how long, and in which span."""

    def __init__(self):
        self._parts: list[tuple] = []

    def add(self, wait, rank, reason, seconds, span) -> None:
        """Add a piece for each row of these arrays."""
        some = seconds > 0
        if some.any():
            parts = np.broadcast_arrays(wait, rank, reason, seconds, span)
            self._parts.append(tuple(part[some] for part in parts))

    def columns(self) -> list[np.ndarray]:
        """Return the five columns, joined."""
        if not self._parts:
            return [np.zeros(0, kind) for kind in (int, int, int, float, int)]
        return [np.concatenate(column) for column in zip(*self._parts, strict=True)]

    def totals(self, ranks: int, of: np.ndarray | None = None) -> np.ndarray:
        """Return the seconds by rank and reason, (ranks, reasons); with a mask of spans, of the waits in it."""
        wait, rank, reason, seconds, _ = self.columns()
        key = rank * len(REASONS) + reason
        return np.bincount(key, seconds if of is None else seconds * of[wait], ranks * len(REASONS)).reshape(
            ranks, len(REASONS)
        )


def walked(lanes: Lanes) -> Pieces:
    """Walk back from the end of every wait until all of its length is accounted for."""
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
    span, time, left = _alongside(lanes, pieces, wait, span, time, left)
    _back(lanes, pieces, wait, span, time, left)
    return pieces


def _alongside(lanes: Lanes, pieces: Pieces, wait, span, time, left):
    """Account for what the late rank took longer than the waiting one while both did the same, from the end back.

    Return where the walk goes on: (span, time, seconds left) of each wait.
    """
    own = lanes.previous[wait]
    for _ in range(2):  # sending may be the last that both did
        sends = _alike(lanes, own, span) & (lanes.kind[own] == COMMUNICATE) & ~lanes.receives[own]
        sends &= np.abs(lanes.end[span] - lanes.start[span] - lanes.end[own] + lanes.start[own]) <= left
        ahead = np.where(sends, lanes.previous[own], own), np.where(sends, lanes.previous[span], span)
        same = _alike(lanes, *ahead) & (lanes.kind[ahead[0]] == COMPUTE)
        own, span = np.where(same, ahead[0], own), np.where(same, ahead[1], span)
    on = np.flatnonzero(_alike(lanes, own, span) & (lanes.kind[own] == COMPUTE))
    reach = lanes.start[wait].copy(), time.copy()  # up to which both are accounted for
    for _ in range(HOPS):
        if not len(on):
            break
        mine, theirs = own[on], span[on]
        longer = (reach[1][on] - lanes.start[theirs]) - (reach[0][on] - lanes.start[mine])
        part = np.clip(longer, 0, left[on])
        moves = lanes.kind[mine] == COMMUNICATE
        part = np.where(moves, left[on], part)  # after that both began together, but for the network
        who = np.where(moves, lanes.rank[wait[on]], lanes.rank[theirs])
        pieces.add(wait[on], who, np.where(moves, NETWORK, WORK), part, theirs)
        left[on] -= part
        reach[0][on], reach[1][on] = lanes.start[mine], lanes.start[theirs]
        time[on] = lanes.start[theirs]
        own[on], span[on] = lanes.previous[mine], lanes.previous[theirs]
        on = on[(left[on] > 0) & _alike(lanes, own[on], span[on])]
    return span, time, left


def _alike(lanes: Lanes, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Return where two spans are of one kind, label and step, and no waits."""
    same = (one >= 0) & (other >= 0) & ~lanes.waits[one] & (lanes.rank[one] != lanes.rank[other])
    for column in (lanes.kind, lanes.label, lanes.step):
        same &= column[one] == column[other]
    return same


def _turn(lanes: Lanes, wait: np.ndarray) -> np.ndarray:
    """Return until when the rank that ended each wait last sent something to others."""
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
    """Account for what is left of each wait by what happened before: (wait, span, time, left), from `time` back."""
    wait = walk[0]
    walk = (*walk, lanes.by[wait], _turn(lanes, wait))
    goes_on = walk[3] > 0
    for _ in range(HOPS):
        wait, span, time, left, rank, turn = walk = tuple(column[goes_on] for column in walk)
        if not len(wait):
            return
        begun = span >= 0
        pieces.add(wait[~begun], rank[~begun], WORK, left[~begun], -1)  # it had not begun
        wait, span, time, left, rank, turn = walk = tuple(column[begun] for column in walk)
        busy = np.where(lanes.serves[rank] & (time <= turn), QUEUE, WORK)  # a server at work for others
        gap = np.clip(time - lanes.end[span], 0, left)  # in which nothing is recorded
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


def _chosen(lanes: Lanes, pieces: Pieces) -> Columns:
    """Return rank, reason, seconds, span, factor and without of what caused most of each wait."""
    wait, rank, reason, seconds, span = pieces.columns()
    key, cause = np.unique((wait * lanes.ranks + rank) * len(REASONS) + reason, return_inverse=True)
    total = np.bincount(cause, seconds, len(key))
    longest = np.lexsort([seconds, cause])
    longest = longest[np.flatnonzero(np.diff(cause[longest], append=-1))]  # its piece, for each key
    most = np.lexsort([total, key // (len(REASONS) * lanes.ranks)])
    most = most[np.flatnonzero(np.diff(wait[longest[most]], append=-1))]
    piece = longest[most]
    took, usual = lanes.end - lanes.start, np.append(_usual(lanes), np.inf)  # of span -1, and of what is no work
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


def _usual(lanes: Lanes) -> np.ndarray:
    """Return how long work of each span's label usually takes, infinite for what is no work: the median of its ranks.

    A rank has its own median of all spans of the label; of an even number the lower one counts.
    """
    usual = np.full(len(lanes.rank), np.inf)
    works = np.flatnonzero((lanes.kind == COMPUTE) | (lanes.kind == UPDATE))
    label = lanes.label[works].astype(int)
    key, own = _medians(label * lanes.ranks + lanes.rank[works], (lanes.end - lanes.start)[works])
    labels, medians = _medians(key // lanes.ranks, own)
    usual[works] = np.maximum(medians[np.searchsorted(labels, label)], 1e-30) if len(works) else np.inf
    return usual


def _shortest(lanes: Lanes, waits: np.ndarray) -> np.ndarray:
    """Return the shortest of the waits that ended with each of these, by the same rank at the same time."""
    order = np.lexsort([lanes.by[waits], lanes.end[waits]])
    end, by, took = lanes.end[waits][order], lanes.by[waits][order], (lanes.end - lanes.start)[waits]
    group = np.empty(len(waits), int)
    group[order] = np.cumsum((np.diff(end, prepend=-1) > NEAR) | (np.diff(by, prepend=-2) != 0)) - 1
    shortest = np.full(len(waits), np.inf)
    np.minimum.at(shortest, group, took)
    return shortest[group]


def _step_lengths(lanes: Lanes) -> np.ndarray:
    """Return for each span how long its rank took for the step that it is in."""
    key = lanes.rank.astype(np.int64) * (lanes.step.max(initial=0) + 2) + lanes.step + 1
    _, step = np.unique(key, return_inverse=True)
    first, end = np.full(len(key), np.inf), np.zeros(len(key))
    np.minimum.at(first, step, lanes.start)
    np.maximum.at(end, step, lanes.end)
    return (end - first)[step]


def _medians(key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return (keys, lower median of the values of each)."""
    order = np.lexsort([value, key])
    first = np.flatnonzero(np.diff(key[order], prepend=-1))
    count = np.diff(first, append=len(order))
    return key[order[first]], value[order[first + (count - 1) // 2]]


def _critical(lanes: Lanes) -> np.ndarray:
    """Return which spans follow one another without slack from the start of the run to its last span."""
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


def last(ranks: int, owner: np.ndarray, value: np.ndarray, rank: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return for each (rank, most) the last row of `owner` == rank whose value is at most that, -1 if there is none.

    Rows are ordered by owner, then by value.
    """
    found = np.full(len(rank), -1)
    edges = np.searchsorted(owner, np.arange(ranks + 1))
    order = np.argsort(rank, kind="stable")
    asked = np.searchsorted(rank[order], np.arange(ranks + 1))
    for r in np.flatnonzero(np.diff(asked)):
        rows = order[asked[r] : asked[r + 1]]
        at = np.searchsorted(value[edges[r] : edges[r + 1]], most[rows], "right")
        found[rows] = np.where(at > 0, edges[r] + at - 1, -1)
    return found


def _numbers(labels: tuple[str, ...], name: str) -> list[int]:
    return [number for number, label in enumerate(labels) if label == name]
