"""Interrupted pass: a rank's pass through a model in which layers of one kind need other ranks midway.

Everything else is computed as on one rank. How ranks exchange numbers in the middle of such a layer is passed in by the
algorithm.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import kernels
from workloads.layers import Layer


class InterruptedPass(ABC):
    """The pass through `layers` of the task's model; those of class `interrupted` need other ranks."""

    interrupted: type[Layer]

    def __init__(self, task, layers: Sequence[Layer]):
        self.task, self.model, self.layers = task, task.workload.model, layers

    def gradient(self, w, batch: tuple, exchange) -> tuple:
        """Return (loss, g) of this rank's samples or, if several ranks share each sample, of its part of each."""
        x, target = batch
        computing, weights, saved = self.task.computing, self.cut(w), []
        for number, (layer, parts) in enumerate(zip(self.layers, weights, strict=True)):
            if isinstance(layer, self.interrupted):
                x, kept = self.forward(f"F{number}", layer, parts, x, exchange)
            else:
                with computing(f"F{number}"):
                    x, kept = layer.forward(parts, x)
            saved.append(kept)
        with computing("loss"):
            loss, dy = self.model.loss(x, target)
        g = kernels.empty_like(w)
        self.task.needs(w, g, saved)
        gradients = self.cut(g)
        for number in reversed(range(len(self.layers))):
            of = self.layers[number], weights[number], gradients[number], saved.pop()
            if isinstance(of[0], self.interrupted):
                dy = self.backward(f"B{number}", *of, dy, exchange)
            else:
                dy = self._backward(f"B{number}", *of, dy)
        return loss, g

    def _backward(self, label, layer, parts, gradients, saved, dy):
        with self.task.computing(label):
            dx, pending = layer.backward_input(parts, saved, dy)
            layer.backward_weights(gradients, pending)
        return dx

    @abstractmethod
    def cut(self, vector) -> list[list]:
        """Return this rank's parts of each layer, as views of w or g."""

    @abstractmethod
    def forward(self, label: str, layer, parts, x, exchange) -> tuple[Any, Any]:
        """Return (y, saved): the outputs of an interrupted layer, and what `backward` needs."""

    @abstractmethod
    def backward(self, label: str, layer, parts, gradients, saved, dy, exchange) -> Any:
        """Write the gradients of an interrupted layer's parameters; return dx, the gradient of its inputs."""
