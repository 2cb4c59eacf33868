"""Patience: how long the grader waits for a solution.

    quiet   processor time since it was last heard of: an endless loop
    idle    time in which it says nothing and does not compute: it sleeps
    held    all the time that was waited for it, in all its attempts together

Linux tells how long a process computed, and how long it or the grader was kept from it by others
(/proc/PID/schedstat): that time is not counted, so a busy machine ends no solution that is only slow. Elsewhere, all
that is known is how long the grader waited, and `held` is the only limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

LOOK = 0.25  # s of waiting between two looks at the clocks


class Exhausted(Exception):
    """The grader waits no longer; the message is the end of a sentence about the solution."""


@dataclass
class Limits:
    """Limits in seconds, and what a solution has used of `idle` and `held`."""

    quiet: float = 2.0
    idle: float = 10.0
    held: float = 60.0
    idle_used: float = 0.0
    held_used: float = 0.0


class Patience:
    """The clocks of one process of a solution."""

    def __init__(self, limits: Limits, process: int):
        self.limits, self.process = limits, process
        self.waited, self.silent, self.quiet = 0.0, 0.0, 0.0  # since the last look, and since it was last heard of
        self.clocks = self._clocks()

    def heard(self) -> None:
        """Note that a whole message has come."""
        self.silent = self.quiet = 0.0

    def wait(self, seconds: float) -> None:
        """Note that the grader has waited. Raises Exhausted if it waits no longer."""
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
                f"it computed for more than {limits.quiet:g} s of processor time at one go; is there an endless loop?"
            )
        for used, most in ((limits.idle_used, limits.idle), (limits.held_used, limits.held)):
            if used > most:
                raise Exhausted(f"no answer within {most:g} s; does it sleep, or wait for what never comes?")

    def _clocks(self) -> tuple[float, float] | None:
        """Return (s that the process has computed, s that it or this thread was ready but had no processor)."""
        try:
            theirs, ours = (
                Path(f"/proc/{who}/schedstat").read_text("ascii").split() for who in (self.process, "thread-self")
            )
            return 1e-9 * int(theirs[0]), 1e-9 * (int(theirs[1]) + int(ours[1]))
        except (OSError, ValueError, IndexError):
            return None
