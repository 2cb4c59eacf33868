"""The parent's side of restarts: which ranks are away, and what they need when they return."""

from collections.abc import Callable
from typing import Any

from cluster.comm import describe_loss
from cluster.event_log import EventLog
from cluster.real.failure import Failure
from cluster.real.restart import Past, Whereabouts
from tracing import HELD, IDLE


class Returns:
    """The ranks of a run that restart after a crash. `back` maps each to the time of its return, in s on the run's
    clock.

    `start(rank, event_log, past)` starts the process of a returning rank, given the event log of its predecessor, and
    returns the process and the pipe to it.
    """

    def __init__(self, back: dict[int, float] | None = None, start: Callable | None = None):
        self._back, self._start = back or {}, start
        self.awaited = set(self._back)  # ranks that may still crash, or are away
        self.away: dict[int, Failure] = {}
        self.notes: dict[int, str] = {}  # about ranks that have returned
        self._losses: dict[int, Failure] = {}  # why these ranks had been away

    def is_return_expected(self, finished: set[int]) -> bool:
        """Return whether a rank is away, or may still crash and return, given the ranks that have `finished`."""
        return bool(self.away or self.awaited - finished)

    def leave(self, event_log: EventLog, failure: Failure, zero: float) -> tuple[Any, Any]:
        """Record that a rank has been away since `failure`, and start the process that will return in its place."""
        rank = event_log.rank
        self.away[rank] = failure
        counts = {name: getattr(event_log, name) for name in event_log.COUNTS}
        past = Past(zero, self._back[rank], event_log.step, len(event_log.messages), counts)
        assert self._start  # given with `back`
        return self._start(rank, event_log, past)

    def come(self, rank: int, offers: dict[int, tuple], closed: set[int]) -> Whereabouts:
        """Record that a rank is no longer away, and return what it needs to reconnect.

        That is the address of every rank that is up, taken from `offers`, and the ranks that may still crash.
        """
        failure = self.away.pop(rank)
        self.awaited.discard(rank)
        self.notes[rank], self._losses[rank] = failure.text, failure
        up = {other: offer[-1] for other, offer in offers.items() if other not in {rank, *closed, *self.away}}
        return Whereabouts(up, frozenset(self.awaited))

    def record_return(self, event_log: EventLog, born: float) -> str:
        """Record how long the rank was away, and that it returned without its memory at `born`. Return a note about
        it.
        """
        since = max([event_log.mark, *(end for *_, end, _, _ in event_log.spans[-1:])])
        event_log.spans.append((IDLE, since, max(since, born), event_log.step, "lost"))
        held = {kind: nbytes for _, _, kind, nbytes in event_log.memory}
        event_log.memory += [(event_log.step, born, kind, 0) for kind in range(len(HELD)) if held.get(kind)]
        loss = self._losses[event_log.rank]
        lost = describe_loss(loss.rank, loss.seconds, loss.step)
        self.notes[event_log.rank] = f"{lost}; it restarted at {born:.4g} s without its memory"
        return self.notes[event_log.rank]
