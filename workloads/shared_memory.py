"""SGD in shared memory: what a thread does to a vector that others update at the same time, sample after sample.

    w <- w - rate (sum of the gradients of `examples` samples at w)

or, with an anchor a and the gradient G of the whole objective there, w <- w - rate (g(w) - g(a) + G). This is for any
workload, with dense gradients; a workload with a compiled loop of its own has it as `workload.descent`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import kernels


class SampleDescent:
    """One mini-batch's descent, a `cluster.comm.Walk`; `indices` are its samples, `anchor` is None or (a, G)."""

    where, price = slice(None), None

    def __init__(self, workload, indices: np.ndarray, rate: float, examples: int = 1, anchor: tuple | None = None):
        self.workload, self.indices, self.rate = workload, indices, rate
        self.examples, self.anchor = examples, anchor

    def parts(self) -> Iterator[SampleDescent]:
        """Yield the single steps."""
        for first in range(0, len(self.indices), self.examples):
            some = self.indices[first : first + self.examples]
            yield type(self)(self.workload, some, self.rate, self.examples, self.anchor)

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take all steps, in w; return the sum of losses."""
        return sum(part._step(w, atomic) for part in self.parts())

    def _step(self, w: np.ndarray, atomic: bool) -> float:
        n, batch = len(self.indices), self.workload.batch(self.indices)
        loss, g = self.workload.gradient(w, batch)
        if self.anchor:
            a, G = self.anchor
            kernels.sgd(g, self.workload.gradient(a, batch)[1], 1.0)
            kernels.add(g, G)
        descend = kernels.descend_atomic if atomic else kernels.sgd
        descend(w, g, n * self.rate)  # g is a mean
        return n * loss
