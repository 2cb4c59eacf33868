"""Failures: why a rank ended, and which of several failures is the cause of the others."""

from __future__ import annotations

import contextlib
import pickle
import time
import traceback
from typing import NamedTuple

from cluster.comm import Cancelled, ClusterError, Deadlock, RankFailed, RankLost


class Failure(NamedTuple):
    """Why a rank ended, in plain values that can always be pickled. The smallest of several failures is the cause."""

    severity: int  # 0 its program failed, 1 it waited too long, 2 another rank was lost, 3 it was cancelled
    at: float  # s of the machine's monotonic clock
    rank: int
    text: str
    step: int = -1
    cause: bytes = b""
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException, rank: int, step: int) -> Failure:
        """Return the failure for an exception that was just caught."""
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
        return cls(severity, time.monotonic(), rank, text, step, cause, traceback.format_exc())

    def error(self) -> ClusterError:
        """Return the exception for the Outcome."""
        if self.severity == 3:
            return Cancelled(self.text)
        error: ClusterError
        if self.severity == 2:
            error = RankLost(self.text, self.rank, self.step)
        elif self.severity == 1:
            error = Deadlock(self.text)
        elif self.trace:
            at = f" at step {self.step}" if self.step >= 0 else ""
            error = RankFailed(f"rank {self.rank} failed{at}: {self.text}", self.rank, self.step)
            with contextlib.suppress(Exception):
                error.__cause__ = pickle.loads(self.cause)
        else:
            error = RankLost(self.text, self.rank, self.step)
        if self.trace:
            error.add_note(self.trace)
        return error


def lost(rank: int, seconds: float, step: int, why: str) -> Failure:
    """Return the failure of a rank that ended without a report; `seconds` is the run's time when it was noticed."""
    when = f" (step {step})" if step >= 0 else ""  # a server takes no steps, and says -1
    return Failure(0, time.monotonic(), rank, f"rank {rank} was lost at {seconds:.4g} s{when}; {why}", step)


def not_started(rank: int, error: Exception) -> Failure:
    """Return the failure of a rank that the fork server did not start."""
    return lost(rank, 0.0, -1, f"its process could not be started, the fork server is gone ({type(error).__name__})")


def unreadable(rank: int, error: Exception) -> Failure:
    """Return the failure of a rank whose result cannot be unpickled; called where `error` was caught."""
    return Failure.of(error, rank, -1)._replace(text=f"its result cannot be read: {type(error).__name__}: {error}")


def deadlock(complaints: list[str]) -> Failure:
    """Return the failure of a run in which every rank waits for another."""
    more = f"; and {len(complaints) - 8} more" if len(complaints) > 8 else ""
    return Failure(1, time.monotonic(), -1, f"deadlock, nothing is on its way: {'; '.join(complaints[:8])}{more}.")
