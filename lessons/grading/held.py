"""Measure the peak memory of a solution, as the operating system reports it.

Every run of a check is measured, and sizes are random, so that a solution cannot recognise a run by its size.
"""

import contextlib
from collections.abc import Iterator
from math import inf
from typing import Any

BESIDE = 500_000  # bytes allowed for modules and small objects of a solution, not counted


class Held:
    """The peak memory of the solution's processes: the largest one in any run of a check."""

    def __init__(self):
        self.peak: float | None = None  # bytes

    @contextlib.contextmanager
    def measure(self, *attempts: Any) -> Iterator[None]:
        """Record the peak memory of these attempts at the end of the `with` block, even if a call in the block fails.

        A process that ends before it is counted has infinite memory, because it may have held anything.
        """
        try:
            yield
        finally:
            for peak in (attempt.peak_memory() for attempt in attempts):
                if peak is not None:
                    self.peak = max(self.peak or 0, peak - BESIDE)

    def check_limit(self, nbytes: int, most: float, words: str) -> tuple[bool, str]:
        """Return whether the peak is at most `most` times `nbytes`, and a message.

        The message is `words`, formatted with the ratio of the peak to `nbytes`.
        """
        if self.peak is None:
            return True, "not measured on this system"
        if self.peak == inf:
            return False, "its process ended before its memory was counted"
        return self.peak <= most * nbytes, words.format(self.peak / nbytes)
