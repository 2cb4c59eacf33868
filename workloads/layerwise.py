"""Layerwise pass: one mini-batch through the model layer by layer, with the algorithm between the layers.

Back-propagation finishes the last layer's gradient first, and the next forward pass reads the first layer's weights
first, so communication between two layers hides behind the computation of the others. The weights of a layer are an
argument of its forward and of its backward: no rank needs to hold all of them at once. The loop of ZeRO-3:

    layers = task.layerwise()
    for layer in layers:                            # the first layer first
        layer.forward(all_gather(layer.place))      # the gathered weights are freed when this returns
    for layer in reversed(layers):                  # the loss, then the last layer first
        g = layer.backward(all_gather(layer.place))
        pieces[layer.place.start] = comm.reduce_scatter(g, op="mean")
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kernels.arrays import extents


class LayerwisePass:
    """One mini-batch: iterate for the forward pass, then over `reversed` of it for the backward pass.

    Activations are accounted for as they are kept and freed; of parameters and gradients only the algorithm knows how
    many it holds, and says so by `task.holds`.
    """

    def __init__(self, task, batch: tuple):
        self.task, self.batch = task, batch
        parts = _layers(task.workload)
        self.layers = [LayerPass(self, number, *part) for number, part in enumerate(parts)] or [WholePass(self)]
        self._kept: dict[int, int] = {}  # bytes by address, of what backward needs

    def __iter__(self) -> Iterator[LayerPass]:
        """Yield each layer, the first one first; ValueError if its forward is skipped."""
        self.x = self.batch[0]
        for layer in self.layers:
            yield layer
            if not layer.ready:
                raise ValueError(
                    f"the forward pass went on without layer {layer.number}; call layer.forward(w) with its weights, "
                    f"{layer.place.stop - layer.place.start} numbers, before the next layer."
                )

    def __reversed__(self) -> Iterator[LayerPass]:
        """Record the loss, then yield each layer, the last one first; ValueError if its backward is skipped."""
        self.dy = self.layers[-1].loss(self.x)
        for layer in reversed(self.layers):
            yield layer
            if layer.ready:
                raise ValueError(
                    f"the backward pass went on without layer {layer.number}; call layer.backward(w) with its weights, "
                    f"{layer.place.stop - layer.place.start} numbers, before the layer in front of it."
                )

    def forward(self, w) -> None:
        """Pass all layers forward with the weights w, (d,), for algorithms that do nothing between them."""
        self.task.holds("parameters", w.nbytes)
        for layer in self:
            layer.forward(w[layer.place])

    def keep(self, more: dict[int, int]) -> None:
        """Account for these activations, bytes by address."""
        self._kept |= more
        self.task.holds("activations", sum(self._kept.values()))

    def free(self, some: dict[int, int]) -> None:
        """Account for the release of these activations."""
        for address in some:
            del self._kept[address]
        self.task.holds("activations", sum(self._kept.values()))

    def unkept(self, saved) -> dict[int, int]:
        """Return the bytes, by address, of arrays in `saved` that no earlier layer keeps."""
        return {address: nbytes for address, nbytes in extents(saved).items() if address not in self._kept}


class LayerPass:
    """One layer of the pass. `place` is the slice of the model's vector where its weights lie, w (d_l,)."""

    def __init__(self, model: LayerwisePass, number: int, layer, place: slice):
        self.model, self.number, self.layer, self.place = model, number, layer, place
        self.ready = False  # to go backward
        self._computing = model.task.computing

    def forward(self, w) -> None:
        """Compute the outputs with the weights w, and keep what backward needs; w is not kept."""
        model = self.model
        with self._computing(f"F{self.number}"):
            model.x, self._saved = self.layer.forward(w, model.x)
        self._own = model.unkept(self._saved)
        model.keep(self._own)
        self.ready = True

    def backward(self, w):
        """Return g, (d_l,), a new array: the gradient of the mini-batch's mean loss. All layers' are the model's g."""
        return self.backward_factors(w)[0]

    def backward_factors(self, w) -> tuple:
        """Return (g, factors): of a dense layer the inputs (batch, rows) and errors (batch, columns), else None.

        A dense layer's g is inputs' errors, (rows, columns) in row order, then the sum of errors over the batch, which
        is the bias's gradient.
        """
        model, saved = self.model, self._saved
        self._saved, self.ready = None, False
        with self._computing(f"B{self.number}"):
            model.dy, g, factors = self.layer.backward_factors(w, saved, model.dy)
        del saved
        model.free(self._own)
        return g, factors

    def loss(self, y):
        """Return dy, the gradient at the model's outputs y, and record the mini-batch's loss."""
        _, target = self.model.batch
        with self._computing("loss"):
            loss, dy = self.layer.loss(y, target)
        self.model.task.record(loss, len(target))
        return dy


class WholePass:
    """A model that cannot be cut, as one layer: its forward pass belongs to its gradient."""

    number, ready = 0, True

    def __init__(self, model: LayerwisePass):
        self.model, self.place = model, slice(0, model.task.workload.parameters)

    def forward(self, w) -> None:
        """Do nothing; `backward` goes both ways."""

    def backward(self, w):
        """Return g, (d,), and record the loss."""
        return self.backward_factors(w)[0]

    def backward_factors(self, w) -> tuple:
        """Return (g, None), and record the loss."""
        self.ready = False
        return self.model.task.gradient(w, self.model.batch)[1], None

    def loss(self, y) -> None:
        """Do nothing; `backward` records the loss."""


def places(workload) -> tuple[slice, ...]:
    """Return the slices of w where the layers' parameters lie; one for all of w if the model cannot be cut."""
    return tuple(place for _, place in _layers(workload)) or (slice(0, workload.parameters),)


@lru_cache(maxsize=8)
def _layers(workload) -> list[tuple]:
    """(layer, its slice of w) of a model, one by one; none if it cannot be cut."""
    parts = workload.split(workload.depth) if workload.depth > 1 else ()
    return [(part, slice(part.offset, part.offset + part.parameters)) for part in parts]
