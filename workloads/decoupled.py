"""Decoupled learning: a stage of a pipeline, called a module, learns without the error of the stage after it.

Each method replaces that error with something else, whose parameters are not part of the model:

    Classifier     predicts the model's outputs, and so a loss, from the module's features
    Synthesiser    predicts the gradient of the loss at the module's features, from these and perhaps the labels
    feedback       random weights that replace the module's own in its backward pass
    Direct         random matrices that project the error at the model's outputs to each layer

Auxiliary networks consist of dense layers, on the flattened features of a sample, or of each position of a sequence.
Random numbers are seeded by the run's seed and the number of the module or layer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import kernels
from kernels import to_device
from tracing import COMPUTE
from workloads.layers import Dense
from workloads.sequential import Sequential
from workloads.stage import Stage

_AUXILIARY, _FEEDBACK = 0xA0, 0xFB  # random streams, in addition to the seed


class Module(Stage):
    """Module `index` of `count` in decoupled learning, which one rank holds."""

    def __init__(self, task, index: int, count: int):
        super().__init__(task, index, count)
        self.as_first = _as_first(self.part)

    def gradient(self, w, saved, dy, label: str = "B"):
        """Return g only. This is the backward pass of a module whose input gradient is not needed."""
        with self.task.computing(label):
            return self.as_first.backward(w, saved, dy)[1]

    def classifier(self, layers: int, width: int) -> Classifier:
        """Return an auxiliary classifier on this module's features, with `layers` hidden layers of `width` neurons."""
        return Classifier(self, layers, width)

    def synthesiser(self, layers: int, width: int, labels: bool) -> Synthesiser:
        """Return a predictor of gradients, with `layers` hidden layers of `width` neurons. It may use the `labels`."""
        return Synthesiser(self, layers, width, labels)

    def feedback(self):
        """Return random weights, (d_k,), drawn like the initial ones, to replace the module's own in backward."""
        return to_device(self.part.start(self.task.seed + (_FEEDBACK << 32)), self.task.comm.device)

    def direct(self) -> Direct:
        """Return this module's layers, each with a random matrix that projects the error at the model's outputs."""
        return Direct(self)


class Auxiliary:
    """An auxiliary network of a module, with its own parameters `a`, (d_a,), and hidden layers of sizes `hidden`.

    Its inputs are the module's features of each sample or position of a sequence and, with `labels`, the one-hot
    labels.
    """

    activation, first = "relu", 1  # of hidden layers; first is 0 if the gradient of the inputs is not needed

    def __init__(self, module: Module, hidden: Sequence[int], to_outputs: bool, labels: bool = False):
        workload = module.task.workload
        self.module, self.event_log = module, module.task.event_log
        self.outputs, self.positions = outputs(workload)
        classes = math.prod(self.outputs) // self.positions
        self.features = workload.boundaries(module.count)[module.index] // self.positions
        self.labels = classes if labels else 0
        sizes = [self.features + self.labels, *hidden, classes if to_outputs else self.features]
        kinds = [self.activation] * len(hidden) + ["none"]
        dense = [Dense((i,), o, kind) for (i, o), kind in zip(pairwise(sizes), kinds, strict=True)]
        self.network = Sequential(dense, kernels.squared_error, workload.dtype, first=self.first)

    def start(self):
        """Return the initial parameters, (d_a,)."""
        task, parts = self.module.task, []
        for number, layer in enumerate(self.network.layers):
            parts += layer.start(np.random.default_rng([task.seed, _AUXILIARY, self.module.index, number]))
        a = np.concatenate([part.ravel() for part in parts]).astype(self.network.dtype)
        return to_device(a, task.comm.device)


class Classifier(Auxiliary):
    """An auxiliary classifier, which predicts the model's outputs from the features of one module."""

    def __init__(self, module: Module, layers: int, width: int):
        super().__init__(module, [width] * layers, to_outputs=True)

    def gradient(self, a, y, target) -> tuple:
        """Return (loss, dy, g): the loss of this classifier, and its gradients at the features y and at a."""
        with self.event_log.doing(COMPUTE, "classify"):
            z, saved = self.network.forward(a, y.reshape(-1, self.features))
            loss, dz = self.module.part.loss(z.reshape(len(y), *self.outputs), target)
            dy, g = self.network.backward(a, saved, dz.reshape(z.shape))
            return loss, dy.reshape(y.shape), g


class Synthesiser(Auxiliary):
    """A predictor of the gradient at a module's features. Its last layer, and so its output, is initially 0.

    It predicts for each sample separately, so that what it has learned does not depend on the batch size. One-hot
    labels are scaled to the norm of the features, which would otherwise dominate them. Hidden layers are bounded
    (tanh), since a prediction that grew with the features would drive them further in the same direction.
    """

    activation, first = "tanh", 0

    def __init__(self, module: Module, layers: int, width: int, labels: bool):
        super().__init__(module, [width] * layers, to_outputs=False, labels=labels)

    def start(self):
        a = super().start()
        last = self.network.layers[-1]
        a[-sum(map(math.prod, last.shapes)) :] = 0
        return a

    def guess(self, a, y, target) -> tuple:
        """Return (dy, saved): the prediction, and what `lesson` needs from this pass."""
        with self.event_log.doing(COMPUTE, "guess"):
            h = y.reshape(-1, self.features)
            x = kernels.empty((len(h), self.features + self.labels), y)
            x[:, : self.features] = h
            if self.labels:
                x[:, self.features :] = math.sqrt(self.features) * self._one_hot(target)
            z, saved = self.network.forward(a, x)
            return (z / len(z)).reshape(y.shape), (z, saved)

    def lesson(self, a, saved, d) -> tuple:
        """Return (loss, g): the squared error of the prediction in `saved`, compared with the gradient `d`, and the
        gradient of this loss at a.
        """
        with self.event_log.doing(COMPUTE, "lesson"):
            z, saved = saved
            loss, dz = self.network.loss(z, len(z) * d.reshape(z.shape))
            return loss, self.network.backward(a, saved, dz)[1]

    def _one_hot(self, target):
        """Return labels as one-hot rows, (n, labels), and real-valued targets unchanged."""
        if "int" not in str(target.dtype):
            return target.reshape(-1, self.labels)
        return target.reshape(-1, 1) == kernels.beside(np.arange(self.labels), target)


class Direct:
    """The layers of a module for direct feedback alignment, where layer l of the model has a random matrix B_l.

    B_l is (outputs, features of l), uniform from 0 to 2 / sqrt(outputs); the last layer has none. If errors add up
    to 0, as those of softmax do, it makes no difference that all entries are positive. With a single output, this
    preserves the sign of the error.
    """

    def __init__(self, module: Module):
        self.module, workload = module, module.task.workload
        where, last = module.where, workload.depth - 1
        every = enumerate(workload.split(workload.depth))
        layers = [(number, _as_first(part)) for number, part in every if where.start <= part.offset < where.stop]
        self.layers = [part for _, part in layers]
        self.places = [slice(p.offset - where.start, p.offset - where.start + p.parameters) for p in self.layers]
        shape, positions = outputs(workload)
        features, self.rows = workload.boundaries(workload.depth), math.prod(shape) // positions
        self.matrices = [None if l == last else self._matrix(l, features[l] // positions) for l, _ in layers]

    def _matrix(self, layer: int, columns: int):
        task = self.module.task
        generator = np.random.default_rng([task.seed, _FEEDBACK, layer])
        b = generator.uniform(0, 2 / math.sqrt(self.rows), (self.rows, columns))
        return to_device(b.astype(task.workload.dtype), task.comm.device)

    def forward(self, w, x, label: str = "F") -> tuple:
        """Return (y, saved): the module's outputs, and what `backward` needs from this pass."""
        saved = []
        with self.module.task.computing(label):
            for layer, place in zip(self.layers, self.places, strict=True):
                x, kept = layer.forward(w[place], x)
                saved.append((kept, x.shape))
            return x, saved

    def backward(self, w, saved, e, label: str = "B"):
        """Return g, (d_k,), the module's gradient for the error e at the model's outputs, (samples, ...)."""
        e = e.reshape(-1, self.rows)
        g = kernels.empty_like(w)
        with self.module.task.computing(label):
            for layer, place, b, (kept, shape) in zip(self.layers, self.places, self.matrices, saved, strict=True):
                dy = e
                if b is not None:
                    dy = kernels.empty((len(e), b.shape[1]), e)
                    kernels.matmul(dy, e, b)
                g[place] = layer.backward(w[place], kept, dy.reshape(shape))[1]
            return g


def outputs(workload) -> tuple[tuple[int, ...], int]:
    """Return the shape of a sample's outputs, and its number of positions if it is a sequence, else 1.

    This passes a sample through the model.
    """
    (whole,) = workload.split(1)
    with kernels.meter_kernels(None):
        shape = whole.forward(whole.start(0), workload.batch(np.arange(1))[0])[0].shape[1:]
    return tuple(shape), math.prod(shape[:-1])


def _as_first(part):
    """Return a copy of `part` that acts as the first part of a model, so that it computes no gradient of its inputs."""
    part = copy.copy(part)
    part.first = 0
    return part
