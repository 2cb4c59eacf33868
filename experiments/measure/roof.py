"""Roof of a device: the FLOP/s and bytes/s it can reach, by the size of the working set.

    FLOP/s     of a matrix product in float32, the best of NumPy's and torch's
    bytes/s    of the fastest of three loops that do next to no arithmetic, over a working set of a given size:

        total    s <- s + x          reads
        scale    x <- a x            reads as much as it writes
        update   y <- y + a x        reads twice what it writes

Which of the three is fastest depends on the memory level: `update` in the nearest caches, which serve two loads and a
store per cycle; `scale` beyond them, where a modified line is written back in any case. On a CPU the loops repeat in
compiled code, so that their bandwidth does not include the call overhead that kernels pay.

A busy machine must not lower the roof. Disturbances only slow a loop down, so it is measured in many short rounds,
again with every kernel, and the best round counts.

Source: McCalpin, IEEE TCCA Newsletter, 1995 (STREAM); Ilic, Pratas & Sousa, Computer Architecture Letters 13(1), 2014
(a roof for each cache).
"""

import contextlib
import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from experiments.measure.kernel_times import Peaks
from kernels.compiled import exact, on_disk

SMALLEST, LARGEST = 2**13, 2**28  # bytes of a working set: one that fits in any cache; one that fits in few
SIDES, GPU_SIDES = (256, 512), (4096,)  # rows of the multiplied matrices
ROUND = 5e-4  # s: shorter than a time slice, so that some rounds are not interrupted
ROUNDS, FEWEST = 10, 3  # rounds of a loop, and how many at least if more would take longer than
LONGEST = 0.3  # s
CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
UNITS = {"K": 2**10, "M": 2**20}

Loop = Callable[[int], Any]  # loop(repeat) returns when the device has repeated it that often


@on_disk(nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "arcp", "nsz"})
def total(repeat, x):
    for _ in range(repeat):
        s = x.dtype.type(0)
        for i in range(x.size):
            s += x[i]
        x[0] = s  # the next sum depends on it, so the compiler cannot drop any


@exact
def scale(repeat, x, a):
    for _ in range(repeat):
        for i in range(x.size):
            x[i] *= a


@exact
def update(repeat, y, x, a):
    for _ in range(repeat):
        for i in range(x.size):
            y[i] += a * x[i]


class Roof:
    """The best rates measured so far on the CPU, or on the GPU that torch calls `device`."""

    def __init__(self, torch: Any = None, device: str | None = None):
        self.torch, self.device = torch, device
        self.flops = 0.0
        self.streams: dict[int, float] = {}

    def look(self, working_set: float) -> None:
        """Measure the matrix product, and the bandwidth of a working set of `working_set` bytes; keep the best rates so
        far.
        """
        size = step(working_set)
        self.flops = max(self.flops, *(2 * side**3 / fastest(loop) for side, loop in self._products()))
        rate = max(moved / fastest(loop) for moved, loop in (self._streams(size) if self.device else streams(size)))
        self.streams[size] = max(self.streams.get(size, 0.0), rate)

    def peaks(self) -> Peaks:
        """Measure all sizes again, including the smallest and the largest, and return the best rate of each."""
        for size in {SMALLEST, *self.streams, LARGEST}:
            self.look(size)
        return Peaks(self.flops, tuple(sorted(self.streams.items())), self._caches())

    def _products(self) -> Iterator[tuple[int, Loop]]:
        """Yield (rows, loop) of square matrix products, by NumPy and, if installed, torch."""
        for side in GPU_SIDES if self.device else SIDES:
            if not self.device:
                a = np.ones((side, side), np.float32)
                yield side, self._repeated(partial(np.dot, a, a, np.empty_like(a)))
            if self.torch:
                a = self.torch.ones((side, side), device=self.device)
                yield side, self._repeated(partial(self.torch.mm, a, a, out=self.torch.empty_like(a)))

    def _streams(self, size: int) -> Iterator[tuple[int, Loop]]:
        """Yield (bytes moved, loop) for total, scale and update in torch, one launch each."""
        x, y, z = (self.torch.ones(numbers, device=self.device) for numbers in (size // 8, size // 8, size // 4))
        yield size, self._repeated(partial(self.torch.sum, z, 0, out=self.torch.empty((), device=self.device)))
        yield 2 * size, self._repeated(partial(z.mul_, 1.0))
        yield 3 * size // 2, self._repeated(partial(y.add_, x))

    def _repeated(self, call: Callable[[], Any]) -> Loop:
        def loop(repeat: int) -> None:
            for _ in range(repeat):
                call()
            if self.device:
                self.torch.cuda.synchronize()

        return loop

    def _caches(self) -> tuple[tuple[str, int], ...]:
        if not self.device:
            return caches()
        return (("L2 cache", self.torch.cuda.get_device_properties(self.device).L2_cache_size),)


def step(working_set: float) -> int:
    """Return the working set that is measured instead of this one: the next power of two below it, within the
    limits.
    """
    return 2 ** math.floor(math.log2(min(max(working_set, SMALLEST), LARGEST)))


def streams(size: int) -> Iterator[tuple[int, Loop]]:
    """Yield (bytes moved, loop) for total, scale and update over `size` bytes of float32."""
    z = np.ones(size // 4, np.float32)
    yield size, partial(total, x=z)
    yield 2 * size, partial(scale, x=z, a=np.float32(1))
    apart = 512  # numbers, half a page: loads alias with pending stores at the same offset in another page
    y, x = np.ones(size // 8, np.float32), np.ones(size // 8 + apart, np.float32)[apart:]
    yield 3 * size // 2, partial(update, y=y, x=x, a=np.float32(0))


def fastest(loop: Loop) -> float:
    """Return the time of one repetition in the best of several short rounds, in s."""

    def timed(repeat: int) -> float:
        begin = perf_counter()
        loop(repeat)
        return (perf_counter() - begin) / repeat

    timed(1)  # compiles, and warms the caches
    once = max(min(timed(1) for _ in range(FEWEST)), 1e-9)
    repeat = max(1, round(ROUND / once))
    rounds = min(ROUNDS, max(FEWEST, round(LONGEST / (repeat * once))))
    return min(timed(repeat) for _ in range(rounds))


def caches() -> tuple[tuple[str, int], ...]:
    """Return (name, bytes) of a core's data caches, nearest first, or () if the system does not report them."""
    found = {}
    with contextlib.suppress(OSError, ValueError, KeyError):
        for folder in sorted(CACHES.glob("index*")):
            level, kind, size = ((folder / name).read_text("ascii").strip() for name in ("level", "type", "size"))
            if kind in ("Data", "Unified"):
                found[f"L{level} cache"] = int(size[:-1]) * UNITS[size[-1]]
    return tuple(sorted(found.items(), key=lambda item: item[1]))
