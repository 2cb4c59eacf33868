"""Sequential model: layers in a row, on one flat vector of parameters.

It can be cut into stages, which are sequential models themselves. Running the stages one after the other gives the same
bits as running the whole, since the same kernels see the same numbers. Passes are pure, and the weights are an argument
of forward and backward, so that a schedule may use any version of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise

import numpy as np

import kernels
from kernels.arrays import extents, shares
from knobs import Refusal
from workloads.batch_statistics import use_gather
from workloads.dense_pass import DensePass
from workloads.layers import Layer
from workloads.loss_scale import current_scale
from workloads.mixed_precision import RoundedLayer, extents_in_16_bits
from workloads.workload import Evaluation

AT_ONCE = 2048  # held-out samples, or positions of sequences, per forward pass; bounds the memory
SMALL = 65536  # largest number of parameters of a layer whose initial ones are cached, in float64
POPULATION = 2048  # largest number of training samples from which a layer's statistics are computed


class Sequential:
    """A model made of `layers`, with the kernel of the loss at its outputs.

    If this model is part of a larger one, `first` is the number of its first layer there, and `offset` the index of
    its first parameter. w and g are vectors (parameters,), x and y are (samples, ...), and losses are means over
    samples.
    """

    def __init__(
        self, layers: Sequence[Layer], loss: kernels.Kernel, dtype=np.float32, *, first: int = 0, offset: int = 0
    ):
        for before, after in pairwise(layers):
            if before.outputs != after.inputs:
                raise ValueError(f"a layer returns shape {before.outputs}, but the next expects {after.inputs}.")
        self.layers, self.criterion, self.dtype = tuple(layers), loss, np.dtype(dtype)
        self.first, self.offset = first, offset
        self._places: list[list[tuple[slice, tuple[int, ...]]]] = []  # where the parts of each layer are in w
        self._seen: tuple = None, None
        self.activations: dict[int, int] = {}  # samples -> bytes that their forward pass keeps for backward
        self.parameters = 0
        for layer in layers:
            self._places.append([])
            for shape in layer.shapes:
                end = self.parameters + math.prod(shape)
                self._places[-1].append((slice(self.parameters, end), shape))
                self.parameters = end
        self._pass = DensePass.of(self.layers, loss, self._by_layer)
        self.segments: list[slice] = []  # of layers whose activations are recomputed; empty if none are

    def __str__(self) -> str:
        """Return the kind and outputs of every layer, such as "dense 64, dense 10"."""
        return ", ".join(f"{layer.name} {'x'.join(map(str, layer.outputs))}" for layer in self.layers)

    @property
    def depth(self) -> int:
        return len(self.layers)

    @property
    def tensors(self) -> tuple[tuple[slice, tuple[int, ...]], ...]:
        """The slice of w and the shape of each tensor."""
        return tuple(place for places in self._places for place in places)

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.layers[0].inputs  # shape of one sample

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.layers[-1].outputs  # shape of one sample

    def start(self, seed: int) -> np.ndarray:
        """Return the initial parameters. Each layer has its own generator, so its values are the same in a
        stage and in the whole model.
        """
        w = np.empty(self.parameters, self.dtype)
        for index, (layer, parts) in enumerate(zip(self.layers, self.cut(w), strict=True), self.first):
            small = sum(map(math.prod, layer.shapes)) <= SMALL
            draw = _draw if small else _draw.__wrapped__
            for part, drawn in zip(parts, draw(layer, seed, index), strict=True):
                part[...] = drawn
        return w

    def forward(self, w, x) -> tuple:
        """Return (y, saved): the outputs, and what the backward pass needs."""
        return self._through(slice(0, self.depth), self._parts(w), x)

    def backward(self, w, saved, dy, g=None, add=False) -> tuple:
        """Return (dx, g), the gradients of the inputs and of the parameters. dx is None on the first stage, which does
        not need it.
        """
        dx, pending = self.backward_input(w, saved, dy)
        return dx, self.backward_weights(pending, g, add)

    def backward_factors(self, w, saved, dy) -> tuple:
        """Return (dx, g, factors). For a single dense layer, `factors` are the inputs and errors whose product is g."""
        dx, pending = self.backward_input(w, saved, dy)
        *_, inputs, errors = pending[-1]
        flat = len(pending) == 1 and inputs.ndim == errors.ndim == 2
        if flat and (scale := current_scale()) != 1:
            errors = errors / scale
        return dx, self.backward_weights(pending), (inputs, errors) if flat else None

    def backward_input(self, w, saved, dy) -> tuple:
        """Return (dx, pending), the gradient of the inputs and what `backward_weights` needs. Products with transposed
        weights use `w`; everything else comes from `saved`.
        """
        pending = [()] * len(self.layers)
        parts = self._parts(w)
        for i in reversed(range(len(self.layers))):
            needed = i + self.first > 0
            dy, pending[i] = self.layers[i].backward_input(parts[i], saved[i], dy, needed)
        return dy, pending

    def backward_weights(self, pending, g=None, add=False):
        """Return the gradient of the weights.

        Without `g`, it is in a new vector. Otherwise `g` is overwritten or, with `add`, added to.
        """
        g = kernels.empty(self.parameters, pending[0][-1]) if g is None else g
        for layer, gradients, rest in zip(self.layers, self.cut(g), pending, strict=True):
            (layer.add_weights if add else layer.backward_weights)(gradients, rest)
        return g

    def loss(self, y, target) -> tuple:
        """Return (loss, dy), where dy is the gradient at y. For sequences, y (samples, time, ...), the loss is the mean
        over all positions.

        In mixed precision dy is multiplied by the loss scale.
        """
        dy = kernels.empty_like(y)
        judged = dy, y, target
        if y.ndim == 3:
            judged = [x.reshape(-1, *x.shape[2:]) for x in judged]
        loss = self.criterion(*judged)
        last = self.layers[-1]
        if isinstance(last, RoundedLayer):
            last.scale_error(dy)
        return loss, dy

    def gradient(self, w, x, target) -> tuple:
        """Return (loss, g) of the whole model: the mean loss over the batch, and its gradient at w."""
        return self._pass(w, x, target)

    def _by_layer(self, w, x, target) -> tuple:
        y, saved = self.forward(w, x)
        if len(x) not in self.activations:
            self.activations[len(x)] = sum(self.extents(saved).values()) + self.scratch(len(x))
        loss, dy = self.loss(y, target)
        return loss, self.backward(w, saved, dy)[1]

    def _by_segment(self, w, x, target) -> tuple:
        """Return the same as `_by_layer`, bit for bit, but keep only the input of each segment until its backward pass.

        A segment's forward pass is repeated then, except for the last one.
        Source: Chen et al., arXiv:1604.06174, 2016.
        """
        samples, parts, inputs, saved = len(x), self._parts(w), [], []
        for segment in self.segments:
            inputs.append(x)
            x, saved = self._through(segment, parts, x)
        loss, dy = self.loss(x, target)
        g = kernels.empty_like(w)
        gradients, most = self.cut(g), 0
        for segment in reversed(self.segments):
            if segment != self.segments[-1]:
                _, saved = self._through(segment, parts, inputs[-1])
            most = max(most, sum(self.extents([*inputs, *saved]).values()))
            for i in reversed(range(segment.start, segment.stop)):
                dy, pending = self.layers[i].backward_input(parts[i], saved.pop(), dy, i + self.first > 0)
                self.layers[i].backward_weights(gradients[i], pending)
            inputs.pop()
        self.activations.setdefault(samples, most)
        return loss, g

    def _through(self, segment: slice, parts: list, x) -> tuple:
        """Return (y, saved) of the layers in a slice: the outputs, and what their backward passes need."""
        saved = []
        for layer, own in zip(self.layers[segment], parts[segment], strict=True):
            x, kept = layer.forward(own, x)
            saved.append(kept)
        return x, saved

    def scratch(self, samples: int) -> int:
        """Return the size in bytes of the attention weights that one layer recomputes in the backward pass."""
        itemsize = 2 if self.in_16_bits else self.dtype.itemsize
        return samples * max(layer.scratch for layer in self.layers) * itemsize

    def with_recomputation(self, how: str = "full") -> Sequential:
        """Return a copy of this model that recomputes activations in the backward pass.

        With "full", about sqrt(depth) inputs and sqrt(depth) layers' activations are kept at a time. With "selective",
        attention weights are not kept; raise ValueError if the model has none.
        """
        if how == "selective":
            layers = tuple(layer.with_recomputation() for layer in self.layers)
            if layers == self.layers:
                raise ValueError(
                    "recompute_activations: selective recomputes attention weights, but this model has no attention; "
                    "use full, or the workload text."
                )
            return Sequential(layers, self.criterion, self.dtype)
        other = Sequential(self.layers, self.criterion, self.dtype)
        other.segments = shares(self.depth, math.isqrt(self.depth - 1) + 1)
        other._pass = other._by_segment
        return other

    @property
    def in_16_bits(self) -> bool:
        """True if the model computes in mixed precision."""
        return isinstance(self.layers[-1], RoundedLayer)

    def in_precision(self, kind: str, copies: bool = True) -> Sequential:
        """Return a copy of this model that computes in `kind`, "bf16" or "fp16". With `copies`, its layers read 16-bit
        copies of float32 weights, whose conversion is charged.
        """
        return Sequential(
            [RoundedLayer(layer.in_precision(kind), kind, copies) for layer in self.layers], self.criterion, self.dtype
        )

    def round_inputs(self, x):
        """Return inputs x as layers in mixed precision read them: rounded to 16 bits, unless they are tokens."""
        x = kernels.copy(x)
        self.layers[0].round_arrays(x)
        return x

    def extents(self, saved) -> dict[int, int]:
        """Return the size in bytes of each array in `saved` on real hardware, by address."""
        return (extents_in_16_bits if self.in_16_bits else extents)(saved)

    @property
    def over_batch(self) -> bool:
        """True if, in training, a sample's outputs depend on the rest of its batch, as with batch norm."""
        return any(layer.over_batch for layer in self.layers)

    def statistics(self, w, x) -> list:
        """Return the statistics that each layer uses in evaluation, from evenly spaced training samples of x."""
        if not self.over_batch:
            return [None] * self.depth
        kept = []
        x = population(x)
        with kernels.meter_kernels(None), use_gather(None):
            for layer, parts in zip(self.layers, self._parts(w), strict=True):
                x, saved = layer.forward(parts, x)
                kept.append(layer.statistics(saved))
        return kept

    def infer(self, w, x, statistics):
        for layer, parts, kept in zip(self.layers, self._parts(w), statistics, strict=True):
            x = layer.evaluate(parts, x, kept)
        return x

    def evaluate(self, w, x, target, training=None) -> Evaluation:
        """Return loss and accuracy (NaN without classes). This takes no time on the run's clock.

        A model that is `over_batch` needs `training` samples, (n, ...), as the population over which to normalise.
        """
        statistics = self.statistics(w, training)
        classes = self.criterion.name == "softmax_cross_entropy"
        positions = math.prod(self.outputs[:-1])  # per sample: 1, except for a sequence
        at_once = max(1, AT_ONCE // positions)
        loss = right = 0.0
        with kernels.meter_kernels(None):
            for at in range(0, len(x), at_once):
                some = slice(at, at + at_once)
                y = self.infer(w, x[some], statistics)
                loss += self.loss(y, target[some])[0] * len(y)
                right += float((y.argmax(-1) == target[some]).sum()) / positions if classes else math.nan
        return Evaluation(loss / len(x), right / len(x))

    def split(self, stages: int | Sequence[int]) -> list[Sequential]:
        """Return the model split into consecutive stages.

        `stages` is their number, with work as equal as layers allow, or a sequence with the number of layers of each.
        """
        work = [layer.flops * (3 if i + self.first else 2) for i, layer in enumerate(self.layers)]
        return [self._part(some) for some in cut_layers(work, stages)]

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Return the number of values per sample that pass from each stage to the next."""
        return tuple(math.prod(stage.outputs) for stage in self.split(stages)[:-1])

    def _part(self, some: slice) -> Sequential:
        offset = self.offset + self._places[some.start][0][0].start
        return Sequential(self.layers[some], self.criterion, self.dtype, first=self.first + some.start, offset=offset)

    def _parts(self, w) -> list[list]:
        """Return each layer's parameters. The views of the last w are cached, since backward follows forward.

        A single layer caches none: its views are cheap, and weights gathered for it alone (ZeRO-3) must be freed.
        """
        if len(self.layers) == 1:
            return self.cut(w)
        seen, parts = self._seen
        if seen is not w:
            parts = self.cut(w)
            self._seen = w, parts
        return parts

    def cut(self, vector) -> list[list]:
        """Return each layer's parts of a flat vector, as views with their shapes."""
        return [[vector[place].reshape(shape) for place, shape in places] for places in self._places]


@lru_cache(maxsize=1024)  # a thousand simulated ranks ask for the same numbers
def _draw(layer: Layer, seed: int, index: int) -> tuple[np.ndarray, ...]:
    return layer.start(np.random.default_rng([seed, index]))


def population(x: np.ndarray) -> np.ndarray:
    """Return at most POPULATION evenly spaced samples out of the training samples x."""
    return x[:: math.ceil(len(x) / POPULATION)]


def cut_layers(work: Sequence[float], stages: int | Sequence[int], what: str = "layers") -> list[slice]:
    """Return the slices of the layers of each stage. `stages` is their number, balanced by the `work` of each layer, or
    the sequence of their numbers of layers.

    Raise ValueError (calling the layers `what`) if a part would be empty or a layer left over.

    >>> cut_layers([1, 2, 3, 4, 5], (1, 4))
    [slice(0, 1, None), slice(1, 5, None)]
    """
    if isinstance(stages, Sequence):
        given = ",".join(map(str, stages)) or "of no stages"
        if min(stages, default=0) < 1:
            raise ValueError(f"cuts {given} leave a stage empty; give each stage at least 1 of the {len(work)} {what}.")
        if sum(stages) != len(work):
            raise ValueError(
                f"cuts {given} add up to {sum(stages)}, but there are {len(work)} {what}; make both equal."
            )
        return [slice(a, b) for a, b in pairwise(accumulate(stages, initial=0))]
    if not 1 <= stages <= len(work):
        raise Refusal(f"{stages} stages do not fit {len(work)} {what}; use 1 to {len(work)}.", [len(work)])
    return balance(work, stages)


def balance(work: Sequence[float], parts: int) -> list[slice]:
    """Cut `work` into consecutive parts, and return their slices. The largest part is as small as possible, and the
    others are then as equal as possible.

    >>> balance([1, 2, 3, 4, 5], 2)
    [slice(0, 3, None), slice(3, 5, None)]
    """
    edges = np.concatenate([[0], np.cumsum(work, dtype=float)])
    between = edges[None, :] - edges[:, None]  # [a, b]: the total work of a, ..., b - 1
    between[np.tril_indices(len(edges))] = np.inf  # so that no part is empty
    largest, _ = _shortest(between, parts, np.maximum)
    _, cuts = _shortest(np.where(between <= largest, between**2, np.inf), parts, np.add)
    return [slice(a, b) for a, b in pairwise(cuts)]


def _shortest(length: np.ndarray, hops: int, join: np.ufunc) -> tuple[float, list[int]]:
    """Return the length of the shortest path from the first node to the last with `hops` hops, and its nodes.

    `join` combines the lengths of two hops.
    """
    reached, choices = length[0], []
    for _ in range(hops - 1):
        through = join(reached[:, None], length)  # [a, b]: to b, through a
        choices.append(through.argmin(0))
        reached = through.min(0)
    nodes = [len(length) - 1]
    for choice in reversed(choices):
        nodes.append(int(choice[nodes[-1]]))
    return reached[-1], [0, *reversed(nodes)]
