"""Passing: one mini-batch through the model layer by layer, for methods that do something between two layers.

A gradient is ready on the way back layer after layer, the last one first, and it is needed on the next way forward
the first one first. Whoever talks meanwhile hides the talking behind the computing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

_COMPUTE = 0


class Passing:
    """One mini-batch on its way. A model that cannot be cut is one layer."""

    def __init__(self, task, batch: tuple):
        self.task, self.batch, self.journal = task, batch, task.journal
        self.layers = _layers(task.workload)

    def forward(self, w) -> Iterator[slice]:
        """Yields the part of w that the next layer is about to read. Layers without parameters yield nothing."""
        self.w, self.saved = w, []
        if not self.layers:
            yield slice(0, len(w))
            return
        x = self.batch[0]
        for number, (layer, part) in enumerate(self.layers):
            if layer.parameters:
                yield part
            with self.journal.doing(_COMPUTE, f"F{number}"):
                own = w[part]
                x, saved = layer.forward(own, x)
            self.saved.append((own, saved))
        self.y = x

    def backward(self) -> Iterator[tuple]:
        """Yields (part, g, factors) of each layer, the last first."""
        if not self.layers:
            loss, g = self.task.gradient(self.w, self.batch)
            yield slice(0, len(g)), g, None
            return
        with self.journal.doing(_COMPUTE, "loss"):
            loss, dy = self.layers[-1][0].loss(self.y, self.batch[1])
        self.task.record(loss, len(self.batch[0]))
        for number in reversed(range(len(self.layers))):
            layer, part = self.layers[number]
            with self.journal.doing(_COMPUTE, f"B{number}"):
                own, saved = self.saved.pop()
                dy, g, factors = layer.backward_factors(own, saved, dy)
            if layer.parameters:
                yield part, g, factors


@lru_cache(maxsize=8)
def _layers(workload) -> list[tuple]:
    """(layer, its part of w) of a model, one by one; none if it cannot be cut."""
    parts = workload.split(workload.depth) if workload.depth > 1 else ()
    return [(part, slice(part.offset, part.offset + part.parameters)) for part in parts]
