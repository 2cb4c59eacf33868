"""Decoupled: a stage that can learn without the error of the stage after it, a module.

Methods of decoupled learning put something of their own in the place of that error, on parameters that are no part of
the model:

    Classifier     the module's own outputs for the loss, from its features
    Synthesiser    a guess at the gradient of the loss at its features, from the features alone or with the labels
    feedback       random weights, for the way back through its layers
    Direct         random matrices, from the error at the model's outputs to each of its layers

Auxiliary networks are dense layers, on the flattened features of a sample, or of each position of a sequence. What is
random has the seed of the run and the number of a module or layer.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

import kernels
from kernels import to_device
from workloads.layers import Dense
from workloads.sequential import Sequential
from workloads.stage import Stage

_COMPUTE = 0
_AUXILIARY, _FEEDBACK = 0xA0, 0xFB  # kinds of dice, beside the seed


class Module(Stage):
    """Module `index` of `count`, held by one rank."""

    def __init__(self, task, index: int, count: int):
        super().__init__(task, index, count)
        self.alone = _alone(self.part)

    def gradient(self, w, saved, dy, label: str = "B"):
        """g alone: the backward pass of a module whose inputs' gradient nobody waits for."""
        with self.task.event_log.doing(_COMPUTE, label):
            return self.alone.backward(w, saved, dy)[1]

    def classifier(self, layers: int, width: int) -> Classifier:
        """An auxiliary classifier of `layers` hidden layers of so many neurons, on the features of this module."""
        return Classifier(self, layers, width)

    def synthesiser(self, layers: int, width: int, labels: bool) -> Synthesiser:
        """A network of `layers` hidden layers of so many neurons that guesses gradients, perhaps with the `labels`."""
        return Synthesiser(self, layers, width, labels)

    def feedback(self):
        """Random weights of this module, (d_k,), drawn as its first ones are, to go back through instead of them."""
        return to_device(self.part.start(self.task.seed + (_FEEDBACK << 32)), self.task.comm.device)

    def direct(self) -> Direct:
        """This module's layers, each with a random matrix that brings it the error at the model's outputs."""
        return Direct(self)


class Auxiliary:
    """A small network beside a module, on parameters `a`, (d_a,), of its own; `sizes` of its hidden layers.

    It sees `features` numbers and `more` for each sample, or for each position of a sequence.
    """

    activation, first = "relu", 1  # of hidden layers; 0 where nobody waits for the gradient of the inputs

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
        self.chain = Sequential(dense, kernels.squared_error, workload.dtype, first=self.first)

    def start(self):
        """The first parameters, (d_a,)."""
        task, parts = self.module.task, []
        for number, layer in enumerate(self.chain.layers):
            parts += layer.start(np.random.default_rng([task.seed, _AUXILIARY, self.module.index, number]))
        a = np.concatenate([part.ravel() for part in parts]).astype(self.chain.dtype)
        return to_device(a, task.comm.device)


class Classifier(Auxiliary):
    """Outputs like the model's, from the features of one of its modules."""

    def __init__(self, module: Module, layers: int, width: int):
        super().__init__(module, [width] * layers, to_outputs=True)

    def gradient(self, a, y, target) -> tuple:
        """(loss, dy, g): the loss of this classifier, and its gradients at the features y and at a."""
        with self.event_log.doing(_COMPUTE, "classify"):
            z, saved = self.chain.forward(a, y.reshape(-1, self.features))
            loss, dz = self.module.part.loss(z.reshape(len(y), *self.outputs), target)
            dy, g = self.chain.backward(a, saved, dz.reshape(z.shape))
            return loss, dy.reshape(y.shape), g


class Synthesiser(Auxiliary):
    """A guess at the gradient at a module's features. Its last layer starts at 0, and so do its guesses.

    It guesses for every sample alone, so that what it has learned does not depend on the size of the batch. A label is
    spelled as long as features are, which would drown it otherwise. Hidden layers are bounded (tanh): a guess that
    could grow with the features drives them further the way they went.
    """

    activation, first = "tanh", 0

    def __init__(self, module: Module, layers: int, width: int, labels: bool):
        super().__init__(module, [width] * layers, to_outputs=False, labels=labels)

    def start(self):
        a = super().start()
        last = self.chain.layers[-1]
        a[-sum(map(math.prod, last.shapes)) :] = 0
        return a

    def guess(self, a, y, target) -> tuple:
        """(dy, thought): the guess, and what a lesson needs of how it was made."""
        with self.event_log.doing(_COMPUTE, "guess"):
            h = y.reshape(-1, self.features)
            x = kernels.empty((len(h), self.features + self.labels), y)
            x[:, : self.features] = h
            if self.labels:
                x[:, self.features :] = math.sqrt(self.features) * self._spelled(target)
            z, saved = self.chain.forward(a, x)
            return (z / len(z)).reshape(y.shape), (z, saved)

    def lesson(self, a, thought, d) -> tuple:
        """(loss, g): half the squared distance of that guess from `d`, summed over features; and its gradient at a."""
        with self.event_log.doing(_COMPUTE, "lesson"):
            z, saved = thought
            loss, dz = self.chain.loss(z, len(z) * d.reshape(z.shape))
            return loss, self.chain.backward(a, saved, dz)[1]

    def _spelled(self, target):
        """Labels as numbers, (n, labels): a 1 in the place of the class; a target that is a number stays as it is."""
        if "int" not in str(target.dtype):
            return target.reshape(-1, self.labels)
        return target.reshape(-1, 1) == kernels.beside(np.arange(self.labels), target)


class Direct:
    """The layers of a module, for direct feedback alignment. Layer l of the model has the matrix B_l:

    (outputs, features of l), uniform from 0 to 2 / sqrt(outputs); the model's last layer has none. That they are all
    positive makes no difference where errors add up to 0, as those of softmax do; where there is one output, it says
    which way is up.
    """

    def __init__(self, module: Module):
        self.module, workload = module, module.task.workload
        where, last = module.where, workload.depth - 1
        every = enumerate(workload.split(workload.depth))
        layers = [(number, _alone(part)) for number, part in every if where.start <= part.offset < where.stop]
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
        """(y, saved)."""
        saved = []
        with self.module.task.event_log.doing(_COMPUTE, label):
            for layer, place in zip(self.layers, self.places, strict=True):
                x, kept = layer.forward(w[place], x)
                saved.append((kept, x.shape))
            return x, saved

    def backward(self, w, saved, e, label: str = "B"):
        """g, (d_k,), where the error at the model's outputs is e, (samples, ...)."""
        e = e.reshape(-1, self.rows)
        g = kernels.empty_like(w)
        with self.module.task.event_log.doing(_COMPUTE, label):
            for layer, place, b, (kept, shape) in zip(self.layers, self.places, self.matrices, saved, strict=True):
                dy = e
                if b is not None:
                    dy = kernels.empty((len(e), b.shape[1]), e)
                    kernels.matmul(dy, e, b)
                g[place] = layer.backward(w[place], kept, dy.reshape(shape))[1]
            return g


def outputs(workload) -> tuple[tuple[int, ...], int]:
    """The shape of what the model gives for a sample, and how many positions it has if it is a sequence, 1 otherwise.

    Seen by passing a sample through.
    """
    (whole,) = workload.split(1)
    with kernels.metered(None):
        shape = whole.forward(whole.start(0), workload.batch(np.arange(1))[0])[0].shape[1:]
    return tuple(shape), math.prod(shape[:-1])


def _alone(part):
    """This part of a model as if it were the first, where the gradient of the inputs is not computed."""
    part = copy.copy(part)
    part.first = 0
    return part
