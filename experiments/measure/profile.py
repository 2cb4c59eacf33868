"""The profiler: the cost of each layer of a workload, measured here or computed from prices.

A mini-batch goes forward and backward as in a pipeline with one stage per layer, and a clock is read after every layer.
With this machine's clock, times are medians of many passes. With a clock that advances by prices only, as in the
simulated cluster, one pass is enough and gives the same times on every machine. The loss counts as part of the last
layer's forward; the first layer returns no gradient; updates are left out.

Source: the profiling run of Harlap et al., arXiv:1806.03377, which takes 1000 mini-batches on one GPU.
"""

from collections.abc import Callable, Iterable
from statistics import median
from time import perf_counter

import kernels
from cluster.devices import Bill, Device
from theory.profile import Profile

WARM_UP = 3  # warm-up passes, in which kernels load and buffers are allocated
PASSES = 100


def measure_profile(
    workload, batch: tuple, passes: Iterable = range(PASSES), clock: Callable = perf_counter
) -> Profile:
    """Return the profile of the layers on this machine: medians over `passes`. `batch` is what workload.batch returned.

    Raise ValueError for a workload without layers.
    """
    layers, lap = Layers(workload), Laps(clock)
    for _ in range(WARM_UP):
        layers.times(batch, lap)
    forward, backward = zip(*(layers.times(batch, lap) for _ in passes), strict=True)  # (passes, layers) each
    return layers.profile(*(_medians(rows) for rows in (forward, backward)))


def price_profile(workload, batch: tuple, device: Device) -> Profile:
    """Return the profile of the layers on a simulated `device`. Raise ValueError for a workload without layers."""
    layers, bill = Layers(workload), Bill(device)
    with kernels.meter_kernels(bill):
        return layers.profile(*layers.times(batch, bill))


def _medians(rows: Iterable[list[float]]) -> list[float]:
    return [round(median(times), 9) for times in zip(*rows, strict=True)]  # the resolution of a clock


class Layers:
    """A workload split into single layers. `activations` are the bytes of their outputs, known after a pass."""

    def __init__(self, workload):
        self.parts = workload.split(workload.depth)
        self.w = [part.start(0) for part in self.parts]
        self.activations: list[int] = []

    def times(self, batch: tuple, lap: Callable[[], float]) -> tuple[list[float], list[float]]:
        """Return (forward, backward) times of all layers, in s; lap() returns the time since its last call."""
        x, target = batch
        saved, forward, self.activations = [], [], []
        backward: list[float] = []
        lap()
        for part, w in zip(self.parts, self.w, strict=True):
            x, kept = part.forward(w, x)
            saved.append(kept)
            forward.append(lap())
            self.activations.append(x.nbytes)
        lap()
        _, dy = self.parts[-1].loss(x, target)
        forward[-1] += lap()
        for part, w in zip(reversed(self.parts), reversed(self.w), strict=True):
            dy, _ = part.backward(w, saved.pop(), dy)
            backward.insert(0, lap())
        return forward, backward

    def profile(self, forward: Iterable[float], backward: Iterable[float]) -> Profile:
        """Return the profile of these times, with the sizes of the layers."""
        names = tuple(f"{number} {part}" for number, part in enumerate(self.parts))
        return Profile(tuple(forward), tuple(backward), tuple(self.activations), tuple(w.nbytes for w in self.w), names)


class Laps:
    """A stopwatch: each call returns the seconds since the last one."""

    def __init__(self, clock: Callable[[], float]):
        self.clock, self.last = clock, clock()

    def __call__(self) -> float:
        before, self.last = self.last, self.clock()
        return self.last - before
