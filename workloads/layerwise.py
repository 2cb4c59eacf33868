"""Passing: one mini-batch through the model layer by layer, for methods that do something between two layers.

A gradient is ready on the way back layer after layer, the last one first, and it is needed on the next way forward
the first one first. Whoever talks meanwhile hides the talking behind the computing.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kernels.arrays import extents

_COMPUTE = 0


class Passing:
    """One mini-batch on its way. A model that cannot be cut is one layer.

    w is asked for a layer's parameters, w[part], right before that layer's forward and again before its backward.
    """

    def __init__(self, task, batch: tuple):
        self.task, self.batch, self.event_log = task, batch, task.event_log
        self.layers = _layers(task.workload)
        self.kept: dict[int, int] = {}  # bytes by address of what the way back needs

    def forward(self, w) -> Iterator[slice]:
        """Yields the part of w that the next layer is about to read. Layers without parameters yield nothing."""
        self.w, self.saved = w, []
        if hasattr(w, "nbytes"):
            self.task.holds("parameters", w.nbytes)
        if not self.layers:
            yield slice(0, self.task.workload.parameters)
            return
        x = self.batch[0]
        for number, (layer, part) in enumerate(self.layers):
            if layer.parameters:
                yield part
            own = w[part]
            with self.event_log.doing(_COMPUTE, f"F{number}"):
                x, saved = layer.forward(own, x)
            more = {address: nbytes for address, nbytes in extents(saved).items() if address not in self.kept}
            self._keep(self.kept | more)
            self.saved.append((saved, more))
        self.y = x

    def backward(self) -> Iterator[tuple]:
        """Yields (part, g, factors) of each layer, the last first."""
        if not self.layers:
            whole = slice(0, self.task.workload.parameters)
            _, g = self.task.gradient(self.w[whole], self.batch)
            yield whole, g, None
            return
        with self.event_log.doing(_COMPUTE, "loss"):
            loss, dy = self.layers[-1][0].loss(self.y, self.batch[1])
        self.task.record(loss, len(self.batch[0]))
        for number in reversed(range(len(self.layers))):
            layer, part = self.layers[number]
            own, (saved, more) = self.w[part], self.saved.pop()
            with self.event_log.doing(_COMPUTE, f"B{number}"):
                dy, g, factors = layer.backward_factors(own, saved, dy)
            del own, saved
            self._keep({address: nbytes for address, nbytes in self.kept.items() if address not in more})
            if layer.parameters:
                yield part, g, factors

    def _keep(self, kept: dict[int, int]) -> None:
        self.kept = kept
        self.task.holds("activations", sum(kept.values()))


def places(workload) -> tuple[slice, ...]:
    """Where each layer that has parameters lies in w."""
    return tuple(part for layer, part in _layers(workload) if layer.parameters) or (slice(0, workload.parameters),)


@lru_cache(maxsize=8)
def _layers(workload) -> list[tuple]:
    """(layer, its part of w) of a model, one by one; none if it cannot be cut."""
    parts = workload.split(workload.depth) if workload.depth > 1 else ()
    return [(part, slice(part.offset, part.offset + part.parameters)) for part in parts]
