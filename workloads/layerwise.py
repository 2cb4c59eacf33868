"""Layerwise pass: one mini-batch passes through the model layer by layer, and the algorithm acts in between.

Back-propagation finishes the last layer's gradient first, and the next forward pass reads the first layer's weights
first, so communication for one layer can hide behind the computation of others. The weights of a layer are an argument
of its forward and of its backward, so no rank needs to hold all weights at once. The loop of ZeRO-3:

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


class LayerwisePass:
    """The pass of one mini-batch. Iterate over it to go forward, then over `reversed(...)` of it to go backward.

    Memory for activations is recorded as they are stored and freed. Only the algorithm knows how many parameters and
    gradients it holds, so it must record these with `task.holds`.
    """

    def __init__(self, task, batch: tuple):
        self.task, self.batch = task, batch
        parts = _layers(task.workload)
        self.layers = [LayerPass(self, number, *part) for number, part in enumerate(parts)] or [WholePass(self)]
        self._kept: dict[int, int] = {}  # address -> bytes, of the arrays that backward needs

    def __iter__(self) -> Iterator[LayerPass]:
        """Yield each layer, the first one first. Raise ValueError if its forward is skipped."""
        self.x = self.batch[0]
        for layer in self.layers:
            yield layer
            if not layer.ready:
                raise ValueError(
                    f"the forward pass skipped layer {layer.number}; call layer.forward(w) with its "
                    f"{layer.place.stop - layer.place.start} weights before moving to the next layer."
                )

    def __reversed__(self) -> Iterator[LayerPass]:
        """Record the loss, then yield each layer, the last one first. Raise ValueError if its backward is skipped."""
        self.dy = self.layers[-1].loss(self.x)
        for layer in reversed(self.layers):
            yield layer
            if layer.ready:
                raise ValueError(
                    f"the backward pass skipped layer {layer.number}; call layer.backward(w) with its "
                    f"{layer.place.stop - layer.place.start} weights before moving to the layer before it."
                )

    def forward(self, w) -> None:
        """Run the forward pass of all layers with the weights w, (d,), for algorithms that do nothing in between."""
        self.task.holds("parameters", w.nbytes)
        for layer in self:
            layer.forward(w[layer.place])

    def keep(self, more: dict[int, int]) -> None:
        """Record that these activations (address -> bytes) are stored."""
        self._kept |= more
        self.task.holds("activations", sum(self._kept.values()))

    def free(self, some: dict[int, int]) -> None:
        """Record that these activations are freed."""
        for address in some:
            del self._kept[address]
        self.task.holds("activations", sum(self._kept.values()))

    def new_arrays(self, saved) -> dict[int, int]:
        """Return {address: bytes} of the arrays in `saved` that no earlier layer has stored."""
        every = self.task.workload.extents(saved)
        return {address: nbytes for address, nbytes in every.items() if address not in self._kept}


class LayerPass:
    """One layer of the pass. `place` is the slice of the model's vector that has the layer's weights w, (d_l,)."""

    def __init__(self, model: LayerwisePass, number: int, layer, place: slice):
        self.model, self.number, self.layer, self.place = model, number, layer, place
        self.ready = False  # whether it can run backward
        self._computing = model.task.computing

    def forward(self, w) -> None:
        """Compute the outputs with the weights w, and store what backward needs. w itself is not stored."""
        model = self.model
        with self._computing(f"F{self.number}"):
            model.x, self._saved = self.layer.forward(w, model.x)
        self._own = model.new_arrays(self._saved)
        model.keep(self._own)
        self.ready = True

    def backward(self, w):
        """Run the layer's backward pass with the weights w. Return its gradient of the mini-batch's mean loss, (d_l,),
        as a new array.
        """
        return self.backward_factors(w)[0]

    def backward_factors(self, w) -> tuple:
        """Run the layer's backward pass, and return (g, factors). For a dense layer, `factors` are its inputs, (batch,
        rows), and its errors, (batch, columns).

        For other layers they are None. A dense layer's g consists of inputs^T errors, (rows, columns) in row order,
        followed by the sum of the errors over the batch, which is the gradient of the bias.
        """
        model, saved = self.model, self._saved
        self._saved, self.ready = None, False
        if again := model.task.repeats(self.layer, len(model.dy)):
            model.task.holds("activations", sum(model._kept.values()) + again)
        with self._computing(f"B{self.number}"):
            model.dy, g, factors = self.layer.backward_factors(w, saved, model.dy)
        del saved
        model.free(self._own)
        return g, factors

    def loss(self, y):
        """Record the mini-batch's loss. Return dy, the gradient at the model's outputs y."""
        _, target = self.model.batch
        with self._computing("loss"):
            loss, dy = self.layer.loss(y, target)
        self.model.task.record(loss, len(target))
        return dy


class WholePass:
    """A model that cannot be cut, treated as one layer. Its `backward` does the forward pass as well."""

    number, ready = 0, True

    def __init__(self, model: LayerwisePass):
        self.model, self.place = model, slice(0, model.task.workload.parameters)

    def forward(self, w) -> None:
        """Do nothing, since `backward` does both passes."""

    def backward(self, w):
        """Record the loss. Return g, (d,), the gradient of the mini-batch's mean loss."""
        return self.backward_factors(w)[0]

    def backward_factors(self, w) -> tuple:
        """Record the loss. Return (g, None): the gradient has no factors here."""
        self.ready = False
        return self.model.task.gradient(w, self.model.batch)[1], None

    def loss(self, y) -> None:
        """Do nothing, since `backward` records the loss."""


def places(workload) -> tuple[slice, ...]:
    """Return the slice of w of each layer's parameters, or a single slice for all of w if the model cannot be cut."""
    return tuple(place for _, place in _layers(workload)) or (slice(0, workload.parameters),)


@lru_cache(maxsize=8)
def _layers(workload) -> list[tuple]:
    """Return (layer, its slice of w) for each layer of a model, or nothing if the model cannot be cut."""
    parts = workload.split(workload.depth) if workload.depth > 1 else ()
    return [(part, slice(part.offset, part.offset + part.parameters)) for part in parts]
