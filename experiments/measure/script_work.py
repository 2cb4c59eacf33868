"""What a step of a program does, counted on a simulated rank: operations, views and Python calls."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cluster.script_device import ScriptDevice

WARM_UP = 3  # steps


class StepWork(NamedTuple):
    """What a step does: (FLOPs, bytes, 1 if slow) of each operation, and the numbers of views and Python calls."""

    operations: np.ndarray
    views: int
    calls: int

    def seconds(self, device: ScriptDevice) -> float:
        """Return the time of the step on this device."""
        flops, nbytes, slow = self.operations.T
        moved = nbytes * np.where(slow > 0, device.slow, 1.0)
        rooflines = np.maximum(flops / device.flops, moved / device.bandwidth).sum()
        many = len(self.operations)
        return float(rooflines + many * device.overhead + self.views * device.view + self.calls * device.call)


@dataclass(frozen=True)
class Counter(ScriptDevice):
    """A device on which nothing takes time, and which records the operations and counts views and Python calls."""

    operations: list[tuple[float, float, bool]] = field(default_factory=list)
    others: list[int] = field(default_factory=lambda: [0, 0])  # views, calls

    def of_operation(self, flops: float, nbytes: float, is_slow: bool, itemsize: int = 4) -> float:
        self.operations.append((flops, nbytes, is_slow))
        return 0.0

    def of_view(self) -> float:
        self.others[0] += 1
        return 0.0

    def of_python(self, calls: int) -> float:
        self.others[1] += calls
        return 0.0

    def take(self) -> StepWork:
        """Return the work recorded since the last call, and forget it."""
        work = StepWork(np.array(self.operations, float).reshape(-1, 3), *self.others)
        self.operations.clear()
        self.others[:] = 0, 0
        return work


def count_work(program: Callable[[], Callable[[], object]]) -> StepWork:
    """Return what a step of this program does after the warm-up, on one simulated rank."""
    import torch.distributed as dist

    from cluster.torch import simulate

    counter = Counter(1.0, 1.0, 0.0, view=1.0, call=1.0)

    def run() -> StepWork:
        dist.init_process_group("gloo")
        step = program()
        for _ in range(WARM_UP):
            step()
        time.time()  # charges the rank for the Python executed before
        counter.take()
        step()
        time.time()
        return counter.take()

    return simulate(run, 1, network="ideal", device=counter, on_line=lambda rank, line: None).results[0]
