"""Recorder: writes a task's losses, staleness, measures, memory and reported models to its rank's event log."""

import math
from collections import deque
from collections.abc import Sequence

import numpy as np

from kernels import to_numpy
from workloads.budget import RECENT
from workloads.checkpoints import Checkpoint


class Diverged(ArithmeticError):
    """Raised if the loss became NaN or infinite on `rank`, at `step`. Everything recorded until then is kept."""

    def __init__(self, loss: float, rank: int, step: int):
        super().__init__(f"the loss was no longer finite at step {step} on rank {rank}")
        self.rank, self.step = rank, step

    def __reduce__(self):
        return type(self), (math.nan, self.rank, self.step)


class OutOfMemory(ValueError):
    """Raised if a rank needs more memory than it has."""


class Recorder:
    """A recorder that writes to one rank's `event_log`, for a model with `parameters` parameters.

    One report in `report_every` is kept for evaluation. Whenever twice `keep` reports have accumulated, every second
    one is dropped, so a run of any length keeps between `keep` and twice as many, evenly spaced. `memory` is the rank's
    capacity in bytes, None for unbounded. A restarted rank continues the counts of `before`, its predecessor's rows of
    losses.
    """

    def __init__(
        self,
        event_log,
        parameters: int,
        *,
        report_every: int = 1,
        keep: int | None = None,
        memory: float | None = None,
        checkpoints: Checkpoint | None = None,
        before: Sequence[tuple] = (),
    ):
        self.event_log, self.parameters = event_log, parameters
        self.report_every, self.keep, self.memory, self.checkpoints = report_every, keep, memory, checkpoints
        self.batches = len(before)
        self.steps, self.samples = (before[-1][0] + 1, before[-1][1]) if before else (0, 0)
        self.recent = deque((loss for *_, loss in before), RECENT)
        self._kept = 0
        self._reports: dict[tuple[int, int], int] = {}  # part of the model -> how often it was reported

    def loss(self, loss: float, samples: int) -> None:
        """Record the mean loss of a mini-batch. `samples` is its size. Raise Diverged if the loss is not finite."""
        self.samples += samples
        event_log = self.event_log
        event_log.losses.append((event_log.step, self.samples, event_log.clock(), float(loss)))
        if not math.isfinite(loss):
            raise Diverged(float(loss), event_log.rank, event_log.step)
        self.recent.append(float(loss))

    def record_update(self, staleness: int) -> None:
        """Record an update of the shared model, computed from parameters `staleness` updates old."""
        self.event_log.applied.append((self.event_log.clock(), staleness))

    def shared_updates(self, count: int) -> None:
        """Record that this rank has made `count` updates of the model in shared memory."""
        self.event_log.shared_updates += count

    def measure(self, quantity: str, value: float) -> None:
        """Record the value of a quantity that the algorithm measures, such as "noise scale" or "spread"."""
        self.event_log.measures.append((self.event_log.step, self.event_log.clock(), quantity, float(value)))

    def holds(self, kind: str, nbytes: int) -> None:
        """Set the number of bytes of `kind` (one of `tracing.HELD`) that the rank holds.

        Raise OutOfMemory if the total exceeds its memory.
        """
        event_log = self.event_log
        event_log.hold(kind, nbytes)
        if self.memory is not None and sum(event_log.held) > self.memory:
            raise OutOfMemory(
                f"rank {event_log.rank} has {self.memory:,.0f} bytes of memory but needs {event_log.inventory()}; "
                "use a smaller model or batch, or shard the model over more ranks."
            )

    def report(self, w: np.ndarray, where: slice | np.ndarray, new: bool = True) -> None:
        """Record `w`, the part of a model at `where`, which is a slice or an index array.

        It counts as an update if it is `new` and the first part of that update to be reported.
        """
        event_log = self.event_log
        if isinstance(where, slice):
            start, stop, _ = where.indices(self.parameters)
        elif len(where):
            start, stop = int(where[0]), int(where[0]) + len(where)
            event_log.places[start, stop] = where
        else:
            return
        if self.checkpoints:
            self.checkpoints.write(event_log.clock(), where, to_numpy(w))
        index = self._reports[start, stop] = self._reports.get((start, stop), 0) + 1
        event_log.updates += new and next(iter(self._reports)) == (start, stop)
        if index % self.report_every:
            return
        event_log.reports.append((index, event_log.clock(), start, stop, to_numpy(w).copy()))
        self._kept += 1
        if self.keep and self._kept >= 2 * self.keep * len(self._reports):
            self.report_every *= 2
            event_log.reports[:] = [row for row in event_log.reports if row[0] % self.report_every == 0]
            self._kept = (self._kept + 1) // 2
