"""Why a rank ended, and which of several failures is the cause of the others."""

from __future__ import annotations

import contextlib
import math
import pickle
import time
import traceback
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from cluster.comm import Cancelled, ClusterError, Deadlock, RankFailed, RankLost, describe_loss
from cluster.waits import Wait, describe_deadlock


class Failure(NamedTuple):
    """Why a rank ended, as plain values that can always be pickled.

    Failures compare by severity, then by time: the smallest of several is the cause.
    """

    severity: int  # 0 its program failed, 1 it waited too long, 2 another rank was lost, 3 it was cancelled
    at: float  # s on the machine's monotonic clock
    rank: int
    text: str
    step: int = -1
    cause: bytes = b""
    trace: str = ""
    waits: tuple[Wait, ...] = ()
    seconds: float = math.nan  # of the run's clock, when a rank was lost

    @classmethod
    def of(cls, error: BaseException, rank: int, step: int) -> Failure:
        """Return the failure for an exception that has just been caught."""
        cause = b""
        with contextlib.suppress(Exception):
            cause = pickle.dumps(error)
        if isinstance(error, KeyboardInterrupt):
            severity, text = 3, "cancelled"
        elif isinstance(error, ClusterError):
            severity, text = 2 if isinstance(error, RankLost) else 1, str(error)
            rank = getattr(error, "rank", rank)
        else:
            severity, text = 0, f"{type(error).__name__}: {error}"
        facts: dict[str, Any] = {"waits": getattr(error, "waits", ()), "seconds": getattr(error, "seconds", math.nan)}
        return cls(severity, time.monotonic(), rank, text, step, cause, traceback.format_exc(), **facts)

    def error(self) -> ClusterError:
        """Return the exception for the Outcome."""
        if self.severity == 3:
            return Cancelled(self.text)
        error: ClusterError
        if self.severity == 2:
            error = RankLost(self.text, self.rank, self.step, self.seconds)
        elif self.severity == 1:
            error = Deadlock(self.text, self.waits)
        elif self.trace:
            at = f" at step {self.step}" if self.step >= 0 else ""
            error = RankFailed(f"rank {self.rank} failed{at}: {self.text}", self.rank, self.step)
            with contextlib.suppress(Exception):
                error.__cause__ = pickle.loads(self.cause)
        else:
            error = RankLost(self.text, self.rank, self.step, self.seconds)
        if self.trace:
            error.add_note(self.trace)
        return error


def rank_lost(rank: int, seconds: float, step: int, why: str) -> Failure:
    """Return the failure of a rank that ended without a report, noticed at `seconds` on the run's clock."""
    return Failure(0, time.monotonic(), rank, f"{describe_loss(rank, seconds, step)}; {why}", step, seconds=seconds)


def start_failed(rank: int, error: Exception) -> Failure:
    """Return the failure of a rank that the fork server could not start."""
    return rank_lost(rank, 0.0, -1, f"its process could not start: the fork server is gone ({type(error).__name__})")


def unreadable_result(rank: int, error: Exception) -> Failure:
    """Return the failure of a rank whose result cannot be unpickled. Call this while handling `error`."""
    return Failure.of(error, rank, -1)._replace(text=f"its result cannot be read: {type(error).__name__}: {error}")


def deadlock(waits: Sequence[Wait], notes: Iterable[str]) -> Failure:
    """Return the failure of a run in which every rank waits for another. `notes` are about restarted ranks."""
    return Failure(1, time.monotonic(), -1, describe_deadlock(waits, notes), waits=tuple(waits))
