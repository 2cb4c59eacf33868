"""Meter: the observer that kernel calls charge their price to.

Every kernel call reports its price, FLOPs and bytes moved, to the meter of the calling context, if there is one. The
simulated cluster converts the price to virtual seconds; real clusters record a span. Meters are context-local, so a
thousand simulated ranks (greenlets) each have their own.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Protocol

import numpy as np


class Meter(Protocol):
    """An observer of the cost of kernels.

    A meter that can charge many calls faster at once than one by one also has `charge_all(prices)`, which charges the
    rows of `Prices`.
    """

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Record that one call of `kernel` did `flops` floating-point operations and moved `nbytes` bytes.

        `itemsize` is 2 if it multiplies matrices of 16-bit numbers, which a device may do at a higher rate.
        """

    def keep(self, kind: str, nbytes: int) -> None:
        """Record that the rank holds this many more bytes of this kind (`tracing.HELD`)."""


METER: ContextVar[Meter | None] = ContextVar("lockstep_meter", default=None)
IN_16_BITS: ContextVar[bool] = ContextVar("lockstep_in_16_bits", default=False)


@contextmanager
def meter_kernels(observer: Meter | None) -> Iterator[None]:
    """Inside this context, report kernel calls to `observer`; if it is None, as in an evaluation, report them to
    nobody.
    """
    token = METER.set(observer)
    try:
        yield
    finally:
        METER.reset(token)


@contextmanager
def price_in_16_bits() -> Iterator[None]:
    """Inside this context, price kernel calls as if their numbers were stored in two bytes each, not in four."""
    token = IN_16_BITS.set(True)
    try:
        yield
    finally:
        IN_16_BITS.reset(token)


class Prices:
    """A meter that records the prices of kernel calls, to charge them again when a call repeats that work."""

    def __init__(self):
        self.rows: list[tuple[str, float, float]] = []  # kernel, FLOPs, bytes

    def charge(self, kernel: str, flops: float, nbytes: float, itemsize: int = 4) -> None:
        """Record the price of a call whose numbers are float32 or float64, not 16-bit ones: `itemsize` is ignored."""
        self.rows.append((kernel, flops, nbytes))

    def keep(self, kind: str, nbytes: int) -> None:
        """Raise ValueError: charging a call again would not account for the memory that it keeps."""
        raise ValueError(
            f"a call that keeps {nbytes:,} bytes of {kind} cannot be repeated by charging its recorded prices: they "
            "leave out this memory."
        )

    @cached_property
    def columns(self) -> tuple[np.ndarray, np.ndarray]:
        """FLOPs and bytes of all rows, (rows,) each; read it only when all rows are recorded."""
        flops, nbytes = (np.array([row[column] for row in self.rows], float) for column in (1, 2))
        return flops, nbytes

    def charge_again(self) -> None:
        """Charge all rows to the meter of the calling context, in order."""
        meter = METER.get()
        if meter is None:
            return
        if hasattr(meter, "charge_all"):
            meter.charge_all(self)
        else:
            for row in self.rows:
                meter.charge(*row)
