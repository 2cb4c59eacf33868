"""Failures: what a rank tells about its end, and which of several ends is the cause of the others."""

from __future__ import annotations

import contextlib
import pickle
import time
import traceback
from typing import NamedTuple

from cluster.comm import Cancelled, ClusterError, Deadlock, RankFailed, RankLost


class Failure(NamedTuple):
    """Plain values, so that it reaches another process whatever the exception was. The least one is the cause."""

    severity: int  # 0 a rank's own failure, 1 it waited too long, 2 it complains about another rank, 3 it was told to
    at: float  # s of the machine's monotonic clock
    rank: int
    text: str
    step: int = -1
    cause: bytes = b""
    trace: str = ""

    @classmethod
    def of(cls, error: BaseException, rank: int, step: int) -> Failure:
        """The failure that this exception, just caught, is to the run."""
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
        """The exception that the Outcome gets."""
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
    """A rank that is gone and could not say why itself."""
    when = f"step {step}" if step >= 0 else "before its first step"
    return Failure(0, time.monotonic(), rank, f"rank {rank} was lost at {seconds:.4g} s ({when}); {why}", step)


def deadlock(complaints: list[str]) -> Failure:
    """Everybody waits for somebody."""
    more = f"; and {len(complaints) - 8} more" if len(complaints) > 8 else ""
    return Failure(1, time.monotonic(), -1, f"deadlock, nothing is on its way: {'; '.join(complaints[:8])}{more}.")
