"""Shared memory: the SGD steps of a mini-batch, one after the other, in a vector that others update at the same time.

The algorithm defines a step by a function `step(w, samples, *args)`, which reads `w[v]`, gets the gradient there from
the samples, adds to the same coordinates v and returns the loss. This function runs on the simulated cluster, under
locks, and for models with dense gradients. A call takes longer than computing the few numbers of a sparse sample, so
threads and processes that share memory without locks take all steps on sparse rows in one compiled loop. The algorithm
provides this loop as well, and a test checks that it gives the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import kernels


class Samples:
    """The samples of one step, for a workload with dense gradients, where `coordinates` is all of w."""

    coordinates: Any = slice(None)
    price: tuple[float, float] | None = None  # of a step, see SharedSteps; None: its kernels are metered

    def __init__(self, workload, indices: np.ndarray, dense: bool = True):
        self.workload, self.indices = workload, indices
        self._batch = workload.batch(indices)

    def gradient(self, w_v) -> tuple[float, np.ndarray]:
        """Return (loss, g), sums over the samples. g has the shape of w_v, the parameters at their coordinates."""
        n = len(self.indices)
        loss, g = self.workload.gradient(w_v, self._batch)
        if n > 1:
            g *= n
        return n * loss, g


class SharedWeights:
    """The shared vector as a step uses it: `w[v]` reads, `w.add(v, scale, g)` adds; no addition is lost if `atomic`."""

    def __init__(self, w: np.ndarray, atomic: bool):
        self._w, self._descend = w, kernels.descend_atomic if atomic else kernels.sgd

    def __getitem__(self, v):
        return self._w[v]

    def add(self, v, scale: float, g) -> None:
        """Add `scale` times g to w[v]. v is a slice, or an index array if no other rank writes at the same time."""
        if isinstance(v, slice):
            self._descend(self._w[v], g, -scale)
        else:
            self._w[v] += scale * g


class Descent:
    """The steps of one mini-batch with `per_step` samples each, as `cluster.shared_memory.SharedSteps`.

    With `dense`, a step accesses all of w, however sparse the samples are.
    """

    where, price = slice(None), None

    def __init__(self, workload, indices, step: Callable, compiled: Callable, args: tuple, per_step=1, dense=False):
        self.workload, self.indices, self.per_step, self.dense = workload, indices, per_step, dense
        self.step, self.compiled, self.args = step, compiled, args

    def parts(self) -> Iterator[Step]:
        """Yield the steps one by one."""
        for first in range(0, len(self.indices), self.per_step):
            samples = self.workload.Samples(self.workload, self.indices[first : first + self.per_step], self.dense)
            yield Step(self.step, samples, self.args)

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take all steps on w, in place. Return the sum of losses."""
        if self.workload.rows is None:
            return sum(part(w, atomic) for part in self.parts())
        return self.compiled(w, self.indices, self.workload.rows, *self.args, atomic)


class Step:
    """A single step, which is a `SharedSteps` as well."""

    def __init__(self, step: Callable, samples: Samples, args: tuple):
        self.step, self.samples, self.args = step, samples, args
        self.where, self.price = samples.coordinates, samples.price

    def parts(self) -> Iterator[Step]:
        yield self

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take the step on w, in place. Return the sum of its samples' losses."""
        return self.step(SharedWeights(w, atomic), self.samples, *self.args)
