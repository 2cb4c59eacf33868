"""The meter: who pays for a kernel.

Every kernel call reports its price - FLOPs and bytes moved - to the observer of the calling context, if there is
one. The simulated cluster turns the price into virtual seconds; real clusters use the call to mark a span; nobody
listens by default. The observer is context-local, so a thousand simulated ranks (greenlets) each have their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Protocol


class Meter(Protocol):
    """Whoever is told what a kernel cost."""

    def charge(self, kernel: str, flops: float, nbytes: float) -> None:
        """One call of `kernel` did `flops` floating-point operations and moved `nbytes` bytes."""

    def keep(self, kind: str, nbytes: int) -> None:
        """The rank holds so many bytes more of this kind from now on (`tracing.HELD`)."""


METER: ContextVar[Meter | None] = ContextVar("lockstep_meter", default=None)


@contextmanager
def metered(observer: Meter | None) -> Iterator[None]:
    """Report the kernels called inside to `observer`; None means nobody (evaluation is outside the clock)."""
    token = METER.set(observer)
    try:
        yield
    finally:
        METER.reset(token)
