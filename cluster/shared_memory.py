"""Shared memory: the part of the Comm contract for algorithms whose ranks update one vector (Hogwild)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

Guard = Literal["none", "atomic", "writes", "locked"]
GUARDS: tuple[Guard, ...] = get_args(Guard)
ATOMIC = np.dtype(np.float32), np.dtype(np.float64)


class Shared(Protocol):
    """One vector that every rank of a communicator can read and write.

    Its guard states what ranks that write at the same time can rely on:

        none      nothing: if two ranks add to one element, one addition may be lost
        atomic    no addition is lost; a read may see part of another rank's step
        writes    steps are written one at a time, under a lock
        locked    like writes, and reads take the lock too
    """

    @property
    def vector(self) -> np.ndarray:
        """The memory itself, for reading without cost."""

    def read(self, where: Any = None) -> np.ndarray:
        """Return a copy of the vector, or of the coordinates `where` (a slice or an index array)."""

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        """Add `delta` to the vector, or to the coordinates `where`; a coordinate that occurs twice is added to twice.

        Like NumPy, raise ValueError or IndexError, and add nothing, if the shapes do not match or a coordinate does not
        exist.
        """

    def walk(self, walk: SharedSteps) -> tuple[float, WriteCounts | None]:
        """Take steps in the memory. Return the sum of their losses and, where observable, the write counts."""


class SharedSteps(Protocol):
    """The gradient steps of one mini-batch in shared memory, as a thread of Hogwild takes them.

    `where` is the coordinates that a step accesses, an index array or slice(None) for all. `price` is the cost of a
    step in (FLOPs, bytes), or None if its kernels charge the meter themselves. Both describe a single step, as returned
    by `parts`.
    """

    where: Any
    price: tuple[float, float] | None

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take all steps on w, (d,), in place. Return the sum of their losses."""

    def parts(self) -> Iterable[SharedSteps]:
        """Return the steps one by one."""


@dataclass
class WriteCounts:
    """Counts of coordinates that some steps wrote, and of conflicts with other ranks' steps."""

    written: int
    conflicts: int  # written by other ranks between this rank's read and write
    lost: int  # additions of other ranks that were overwritten, less those restored
    staleness: list[int]  # for each step, the number of steps of other ranks between its read and its write


def check_guard(guard: Guard, like: np.ndarray) -> Guard:
    """Return `guard`. Raise ValueError if it is not one of GUARDS, or is "atomic" and `like` does not hold floats."""
    if guard not in GUARDS:
        raise ValueError(f"there is no guard {guard!r} of shared memory; use one of {', '.join(GUARDS)}.")
    if guard == "atomic" and like.dtype not in ATOMIC:
        raise ValueError(f"{like.dtype} has no atomic addition; share float32 or float64, or use a guard with a lock.")
    return guard
