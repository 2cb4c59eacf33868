"""How often a rank calls Python functions, which is what its Python costs on a measured device."""

from __future__ import annotations

from typing import Any


class PythonCalls:
    """How often a rank has called Python functions.

    Calls that a real process would not make are `ours`, and not priced. Those up to `priced` have been charged for.
    """

    def __init__(self):
        self.made = self.ours = self.priced = 0

    def count(self, frame: Any, event: str, argument: Any) -> None:
        """Count a call. sys.setprofile calls this for every event."""
        if event == "call":
            self.made += 1

    def take(self, made: int) -> int:
        """Return how many calls there were since the last time, up to the call number `made`."""
        taken = max(0, made - self.ours - self.priced)
        self.priced += taken
        return taken
