"""Stage: one rank's consecutive layers in a pipeline.

Stage 0 reads the inputs from the data, and the last stage compares its outputs with the targets. Every stage iterates
over the same batches, so targets need not be sent. Passes are pure: `forward` returns what `backward` needs, and the
weights are an argument of both, so that a schedule may use any version of them.
"""

from collections.abc import Sequence

import numpy as np

from kernels import to_device
from workloads.batches import Batches


class Stage:
    """Stage `index` of `count`. Arrays: w (d_s,), x and y (samples of a micro-batch, features ...)."""

    def __init__(self, task, index: int, count: int, replica: int = 0, replicas: int = 1, cuts: Sequence[int] = ()):
        self.task, self.index, self.count = task, index, count
        self.part = task.workload.split(cuts or count)[index]
        self.first, self.last = index == 0, index == count - 1
        workload = task.workload
        self.batches = Batches(workload.samples, task.batch, replica, replicas, task.seed, workload.shuffle)
        self._open: dict[int, list] = {}  # batch -> [number of micro-batches without a loss, loss so far]
        self._at = -1
        self._chunks: list[tuple] = []

    @property
    def where(self) -> slice:
        """The slice of the whole model's parameter vector that this stage holds."""
        return slice(self.part.offset, self.part.offset + self.part.parameters)

    def start(self) -> np.ndarray:
        """Return the initial parameters of this stage, (d_s,)."""
        return to_device(self.part.start(self.task.seed), self.task.comm.device)

    def chunk(self, batch: int, index: int = 0, chunks: int = 1) -> tuple:
        """Return (x, target) of micro-batch `index` of `chunks` in mini-batch `batch`. Request batches in order."""
        if batch != self._at:
            if batch < self._at:
                raise ValueError(f"batch {batch} was requested after batch {self._at}; request batches in order.")
            while self._at < batch:  # skip those in between
                indices = next(self.batches)
                self._at += 1
            if len(indices) % chunks:
                raise ValueError(f"{chunks} micro-batches do not divide a batch of {len(indices)}; use a divisor.")
            self._chunks = [self.task.workload.batch(part) for part in np.split(indices, chunks)]
        return tuple(to_device(part, self.task.comm.device) for part in self._chunks[index])

    def forward(self, w, x, label: str = "F"):
        """Return (y, saved): the outputs, and what backward needs from this pass."""
        with self.task.computing(label):
            return self.part.forward(w, x)

    def backward(self, w, saved, dy, label: str = "B", g=None, add: bool = False):
        """Return (dx, g): gradients of the inputs (None on the first stage) and of the parameters.

        Products with transposed weights use `w`; everything else comes from the forward pass. The result is in a new
        vector or, if given, in `g`, which is overwritten or, with `add`, added to. The sum is not charged.
        """
        with self.task.computing(label):
            return self.part.backward(w, saved, dy, g, add)

    def backward_input(self, w, saved, dy, label: str = "I"):
        """Return (dx, pending), the half of backward for which the stage before waits."""
        with self.task.computing(label):
            return self.part.backward_input(w, saved, dy)

    def backward_weights(self, pending, label: str = "W", g=None, add: bool = False):
        """Return g, the other half of backward, for which no stage waits."""
        with self.task.computing(label):
            return self.part.backward_weights(pending, g, add)

    def loss(self, y, target, batch: int, chunks: int = 1):
        """Return (loss, dy) of one micro-batch on the last stage. The loss is the mean over the micro-batch's samples.

        The mean over the mini-batch's `chunks` micro-batches is recorded after the last one.
        """
        with self.task.computing("loss"):
            loss, dy = self.part.loss(y, target)
        entry = self._open.setdefault(batch, [chunks, 0.0])
        entry[0] -= 1
        entry[1] += loss / chunks
        if not entry[0]:
            del self._open[batch]
            self.task.record(entry[1], len(y) * chunks)
        return loss, dy
