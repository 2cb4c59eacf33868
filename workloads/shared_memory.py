"""SGD in shared memory: the steps of a mini-batch, one after the other, in a vector that others update meanwhile.

What a step is, the algorithm says, in a function `step(w, samples, *args)` that reads `w[v]`, asks the samples for
their gradient there, adds to the same coordinates v and returns the loss. On the simulated cluster, under locks, and
for models with dense gradients this function runs. A call takes longer than a sparse sample's few numbers, so
threads and processes that share memory without locks take all steps on sparse rows in one compiled loop, which the
algorithm names beside it and a test holds to the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kernels


class Samples:
    """The samples of one step, of a workload with dense gradients: `coordinates` of w that they touch are all."""

    coordinates: Any = slice(None)
    price: tuple[float, float] | None = None  # of a step, as SharedSteps declares it; None: its kernels are metered

    def __init__(self, workload, indices: np.ndarray, dense: bool = True):
        self.workload, self.indices = workload, indices
        self._batch = workload.batch(indices)

    def gradient(self, w_v) -> tuple[float, np.ndarray]:
        """Return (loss, g), sums over the samples: g has the shape of w_v, the parameters at their coordinates."""
        n = len(self.indices)
        loss, g = self.workload.gradient(w_v, self._batch)
        if n > 1:
            g *= n
        return n * loss, g


class SharedWeights:
    """The shared vector as a step sees it: `w[v]` reads, `w.add(v, scale, g)` adds. No addition is lost if `atomic`."""

    def __init__(self, w: np.ndarray, atomic: bool):
        self._w, self._descend = w, kernels.descend_atomic if atomic else kernels.sgd

    def __getitem__(self, v):
        return self._w[v]

    def add(self, v, scale: float, g) -> None:
        """w_v <- w_v + scale g, with v a slice, or an index array where no other rank writes at the same time."""
        if isinstance(v, slice):
            self._descend(self._w[v], g, -scale)
        else:
            self._w[v] += scale * g


class Descent:
    """One mini-batch's steps, a `cluster.shared_memory.SharedSteps`: `per_step` samples to each.

    With `dense` a step touches all of w, however sparse the samples are.
    """

    where, price = slice(None), None

    def __init__(self, workload, indices, step: Callable, compiled: Callable, args: tuple, per_step=1, dense=False):
        self.workload, self.indices, self.per_step, self.dense = workload, indices, per_step, dense
        self.step, self.compiled, self.args = step, compiled, args

    def parts(self) -> Iterator[Step]:
        """Yield the single steps."""
        for first in range(0, len(self.indices), self.per_step):
            samples = self.workload.Samples(self.workload, self.indices[first : first + self.per_step], self.dense)
            yield Step(self.step, samples, self.args)

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take all steps, in w; return the sum of losses."""
        if self.workload.rows is None:
            return sum(part(w, atomic) for part in self.parts())
        return self.compiled(w, self.indices, self.workload.rows, *self.args, atomic)


class Step:
    """One of them, `SharedSteps` as well."""

    def __init__(self, step: Callable, samples: Samples, args: tuple):
        self.step, self.samples, self.args = step, samples, args
        self.where, self.price = samples.coordinates, samples.price

    def parts(self) -> Iterator[Step]:
        """Yield itself."""
        yield self

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take the step, in w; return the sum of its samples' losses."""
        return self.step(SharedWeights(w, atomic), self.samples, *self.args)
