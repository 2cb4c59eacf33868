"""How often a rank calls Python functions, from which a measured device derives the price of the rank's Python code."""

from typing import Any


class PythonCalls:
    """How often a rank has called Python functions.

    `ours` counts calls that a real process would not make, which are not priced; `priced` those charged so far.
    """

    def __init__(self):
        self.made = self.ours = self.priced = 0

    def count(self, frame: Any, event: str, argument: Any) -> None:
        """Count a call. sys.setprofile calls this for every event."""
        if event == "call":
            self.made += 1

    def take(self, made: int) -> int:
        """Return how many of the first `made` calls have yet to be priced, and count them as priced."""
        taken = max(0, made - self.ours - self.priced)
        self.priced += taken
        return taken
