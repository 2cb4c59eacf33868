"""The spans of a trace, rank by rank, with what came before each and what ended each wait.

A wait ends when a message is sent that the rank needs, or when the last rank joins a collective.
"""

from collections.abc import Sequence

import numpy as np

from cluster.script_summary import Waited
from tracing import COMMUNICATE, COMPUTE, IDLE, WAIT, Trace

NEAR = 2e-9  # s between two records of one moment
RECEIVE = "receive"  # the label of spans in which a rank takes a message that is not part of a collective


class Messages:
    """Messages that have arrived from another rank, ordered by receiver and sending time."""

    def __init__(self, trace: Trace):
        m = trace.messages
        row = np.flatnonzero(np.isfinite(m["arrived"]) & (m["src"] != m["dst"]))
        row = row[np.lexsort([m["arrived"][row], m["sent"][row], m["dst"][row]])]
        self.row = np.append(row, -1)  # so that row -1 means no message
        self.src, self.dst, self.bytes, self.sent, self.arrived, self.collective = (
            m[name][row] for name in ("src", "dst", "bytes", "sent", "arrived", "collective")
        )
        self.collective = self.collective.astype(bool)  # in a trace without messages its value does not matter
        self.ranks = trace.ranks
        self.by_arrival = np.lexsort([self.arrived, self.dst])
        self.by_sender = np.lexsort([self.sent, self.src])

    def into(self, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return, for each rank, the index of the message to it that was sent at `time`, give or take NEAR; -1 if there
        is none.
        """
        at = last(self.ranks, self.dst, self.sent, rank, time + NEAR)
        near = (at >= 0) & (np.abs(self.sent[at] - time) <= NEAR) if len(self.sent) else np.zeros(len(at), bool)
        return np.where(near, at, -1)

    def arriving(self, rank: np.ndarray, since: np.ndarray, until: np.ndarray) -> np.ndarray:
        """Return, for each rank, the index of the last message that arrived there in (since, until]; -1 if none did."""
        by = self.by_arrival
        at = last(self.ranks, self.dst[by], self.arrived[by], rank, until + NEAR)
        good = (at >= 0) & (self.arrived[by][at] > since) if len(by) else np.zeros(len(at), bool)
        return np.where(good, by[at] if len(by) else -1, -1)

    def queueing_delays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return (seconds, rank): how long each message queued, and at whose port.

        A message should take as long as the fastest of its size; the rest is queueing, as far as others passed the
        receiver's or the sender's port before it.
        """
        if not len(self.sent):
            return np.zeros(1), np.zeros(1, int)  # so that row -1 means no message
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
        queued[self.collective] = 0.0  # for a collective, only the total of its messages is known
        return queued, np.where(inward >= outward, self.dst, self.src)


class Lanes:
    """The spans, rank by rank, with what came before each.

    begin     the start of the span; for a received message, when it was sent; for a wait, when another rank ended it
    before    the span before `begin`: the rank's previous one; for a message or a wait, the other rank's
    """

    def __init__(self, trace: Trace, order: np.ndarray, recorded: Sequence[Waited] = ()):
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
        self.ready = self.start.copy()  # when a rank that waits was ready itself; it may have computed since
        self.forever, self.gone = np.zeros(0, int), -1  # waits that never ended, and the lost rank that they wait for
        self._match_waits(recorded)
        got = np.flatnonzero(self.receives)
        self.message[got] = messages.arriving(self.rank[got], self.start[got], self.end[got])
        self.begin, self.before = self.start.copy(), self.previous.copy()
        moved = np.flatnonzero((self.message >= 0) & ~self.waits)
        self.begin[moved] = np.minimum(messages.sent[self.message[moved]], self.start[moved])
        known = np.flatnonzero(self.waits & (self.by >= 0))
        self.begin[known] = self.released[known]
        self.before[known] = self.at(self.by[known], self.released[known])
        self.before[moved] = self.at(messages.src[self.message[moved]], self.begin[moved])
        self.queued, self.port = messages.queueing_delays()

    def at(self, rank: np.ndarray, time: np.ndarray) -> np.ndarray:
        """Return the index of each rank's last span that began before `time`, or -1 if none did."""
        return last(self.ranks, self.rank, self.start, rank, time - NEAR)

    def _match_waits(self, recorded: Sequence[Waited]) -> None:
        """Record what ended each wait, trying the most specific explanation first."""
        m, rank, end = self.messages, self.rank, self.end
        self._set(found := np.flatnonzero(self.waits), m.into(rank[found], end[found]))
        if recorded and len(found):
            known = {(one.rank, one.end): (one.culprit, one.ready) for one in recorded}
            waits = zip(rank[found].tolist(), end[found].tolist(), strict=True)
            culprits, ready = map(np.array, zip(*(known.get(wait, (-1, np.inf)) for wait in waits), strict=True))
            self.ready[found] = np.minimum(ready, self.start[found])
            by = np.where(culprits >= 0, culprits, self.by[found])
            self.message[found[by != self.by[found]]] = -1
            self.by[found] = by
        self._join(self._open())
        rest = self._open()  # for a message in flight, or for a rank that has stopped
        after = np.minimum(rest + 1, len(rank) - 1)
        goes_on = (after > rest) & (rank[after] == rank[rest])
        until = np.where(goes_on & (self.kind[after] == COMMUNICATE), self.end[after], end[rest])
        self._set(rest, np.where(goes_on, m.arriving(rank[rest], self.start[rest], until), -1), arrival=True)
        self._lost(self._open())
        self._coincide(self._open())

    def _open(self) -> np.ndarray:
        return np.flatnonzero(self.waits & (self.by < 0))

    def _set(self, rows: np.ndarray, message: np.ndarray, arrival: bool = False) -> None:
        """Record which message ended each of these waits. A message of -1 leaves its wait as it is.

        With `arrival`, a wait ended when the message arrived, so the part after its sending is due to the network.
        Otherwise it ended when the message was sent.
        """
        rows, message = rows[message >= 0], message[message >= 0]
        self.message[rows], self.by[rows] = message, self.messages.src[message]
        if arrival:  # until then it was in flight
            self.released[rows] = np.minimum(self.messages.sent[message], self.end[rows])

    def _join(self, rows: np.ndarray) -> None:
        """Record which rank was the last to join a collective: its message began when the others' waits ended."""
        m = self.messages
        some = np.flatnonzero(m.collective)
        some = some[np.argsort(m.sent[some], kind="stable")]
        low = np.searchsorted(m.sent[some], self.end[rows] - NEAR, "left")
        high = np.searchsorted(m.sent[some], self.end[rows] + NEAR, "right")
        one = high - low == 1
        self._set(rows[one], some[low[one]])
        rows = rows[high - low > 1]  # if there are several: the one in the same ring, found from neighbour to neighbour
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
        """Record the rank whose work ended when these waits ended: it came last, but sent nothing."""
        works = np.flatnonzero(~self.waits)
        works = works[np.argsort(self.end[works], kind="stable")]
        at = np.searchsorted(self.end[works], self.end[rows] + NEAR, "right") - 1
        good = (at >= 0) & (np.abs(self.end[works[at]] - self.end[rows]) <= NEAR) if len(works) else at >= 0
        good[good] &= self.rank[works[at[good]]] != self.rank[rows[good]]
        self.by[rows[good]] = self.rank[works[at[good]]]


def last(ranks: int, owner: np.ndarray, value: np.ndarray, rank: np.ndarray, most: np.ndarray) -> np.ndarray:
    """Return, for each (rank, most), the last row whose owner is `rank` and whose value is at most `most`; else -1.

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
