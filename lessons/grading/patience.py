"""Limit how long the grader waits for a solution.

    quiet   CPU time since its last message: an endless loop
    idle    time in which it neither communicates nor computes: it sleeps
    held    total waiting time over all its attempts

Linux reports how long a process computed, and how long it or the grader was ready but had no processor
(/proc/PID/schedstat). The latter is not counted, so a busy machine does not end a solution that is merely slow.
Elsewhere, only the grader's waiting time is known, and `held` is the only limit.
"""

from dataclasses import dataclass
from pathlib import Path

LOOK = 0.25  # s of waiting between two readings of the clocks


class Exhausted(Exception):
    """Raised when a limit is reached. The message is the end of a sentence about the solution."""


@dataclass
class Limits:
    """Limits in seconds, and how much of the limits `idle` and `held` a solution has used up."""

    quiet: float = 2.0
    idle: float = 10.0
    held: float = 60.0
    idle_used: float = 0.0
    held_used: float = 0.0


class Patience:
    """The clocks that measure one process of a solution."""

    def __init__(self, limits: Limits, process: int):
        self.limits, self.process = limits, process
        self.waited, self.silent, self.quiet = 0.0, 0.0, 0.0  # since the last reading, and since the last message
        self.clocks = self._clocks()

    def heard(self) -> None:
        """Record that a complete message has arrived."""
        self.silent = self.quiet = 0.0

    def wait(self, seconds: float) -> None:
        """Record that the grader has waited this many seconds. Raise Exhausted if a limit is reached."""
        self.waited += seconds
        self.silent += seconds
        if self.waited >= LOOK:
            self._look()

    def _look(self) -> None:
        limits, before, self.clocks = self.limits, self.clocks, self._clocks()
        waited, self.waited = self.waited, 0.0
        known = before is not None and self.clocks is not None
        computed, kept = (now - then for now, then in zip(self.clocks, before, strict=True)) if known else (0.0, 0.0)
        limits.held_used += max(0.0, waited - kept)
        self.quiet += computed
        if known and self.silent >= LOOK:  # shorter silences are the time that messages take
            limits.idle_used += max(0.0, waited - kept - computed)
        if self.quiet > limits.quiet:
            raise Exhausted(
                f"it computed for more than {limits.quiet:g} s of CPU time without a message; is there an endless loop?"
            )
        for used, most in ((limits.idle_used, limits.idle), (limits.held_used, limits.held)):
            if used > most:
                raise Exhausted(
                    f"no answer within {most:g} s; does it sleep, or wait for something that never happens?"
                )

    def _clocks(self) -> tuple[float, float] | None:
        """Return the seconds for which the process computed, and those for which it or this thread was ready but had no
        processor.
        """
        try:
            theirs, ours = (
                Path(f"/proc/{who}/schedstat").read_text("ascii").split() for who in (self.process, "thread-self")
            )
            return 1e-9 * int(theirs[0]), 1e-9 * (int(theirs[1]) + int(ours[1]))
        except (OSError, ValueError, IndexError):
            return None
