"""Track whether GPU launches are being captured, and what kernels may do in the meantime (see `kernels/graph.py`).

Captured launches are recorded, not run, so their results do not exist yet. A sum that a function returns is read later;
a number that decides what is launched next makes the capture impossible.
"""

from contextvars import ContextVar
from typing import Any

CAPTURING: ContextVar[bool] = ContextVar("lockstep_capturing", default=False)
"""True while what the caller launches on a GPU is captured."""


class NotCapturable(RuntimeError):
    """Raised if launches cannot be captured, because they depend on numbers that are on the GPU."""


class UnreadSum:
    """The sum of `values` divided by `count`. It stays on the GPU until `float` reads it."""

    def __init__(self, values: Any, count: int):
        self.total, self.count = values.sum(), count

    def __float__(self) -> float:
        return float(self.total) / self.count


def sum_on_host(values, count: int = 1) -> float | UnreadSum:
    """Return the sum of `values` divided by `count`, as a float or, while launches are captured, as an `UnreadSum`."""
    unread = UnreadSum(values, count)
    return unread if CAPTURING.get() else float(unread)


def forbid_in_capture(what: str) -> None:
    """Raise NotCapturable if launches are being captured. `what` says in its message what the host was about to do."""
    if CAPTURING.get():
        raise NotCapturable(f"{what} before all kernels have been launched")
