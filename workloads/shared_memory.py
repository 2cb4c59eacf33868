"""Walking: what a thread does in memory that it shares with others, a few samples after the other.

    w <- w - rate (sum of the gradients of `examples` samples at w)

or, with an anchor a and the gradient G of the whole objective there, w <- w - rate (g(w) - g(a) + G). Here for any
workload, whose gradients are whole vectors; one with a loop of its own brings it along as `workload.walk`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import kernels


class Walk:
    """One mini-batch's steps, the contract's SharedSteps; `indices` are its samples, `anchor` is None or (a, G)."""

    where, price = slice(None), None

    def __init__(self, workload, indices: np.ndarray, rate: float, examples: int = 1, anchor: tuple | None = None):
        self.workload, self.indices, self.rate = workload, indices, rate
        self.examples, self.anchor = examples, anchor

    def parts(self) -> Iterator[Walk]:
        """The single steps."""
        for first in range(0, len(self.indices), self.examples):
            some = self.indices[first : first + self.examples]
            yield type(self)(self.workload, some, self.rate, self.examples, self.anchor)

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """All steps, in w; gives the sum of losses."""
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
