"""Torch module as a workload: your own network and loss, for every algorithm.

    net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10))
    workload = TorchModule(net, nn.functional.cross_entropy, train=(x, y), test=(x_test, y_test))

The parameters become one flat vector, in the order of torch's parameters_to_vector; autograd computes the gradient. The
workload keeps a copy of the module and never changes it, so a thousand simulated ranks can share it. Layers that draw
random numbers (dropout) draw them from torch's own generator, which `start` seeds. An nn.Sequential can be cut into
stages between its children.

Batch norms are evaluated with statistics of training samples, like our own. Other buffers must be constants: see
`workloads/torch_buffers.py`.
"""

import copy
import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from workloads import torch_buffers
from workloads.sequential import cut_layers, population
from workloads.torch_stage import TorchStage
from workloads.workload import Evaluation, Workload


class TorchModule(Workload):
    """The workload of `module` with `loss(output, target)`, a mean over samples.

    `train` and `test` are pairs (x, target) of arrays. Floating-point arrays are cast to the type of the parameters,
    which is `dtype` or the module's own. The initial parameters are the module's own, whatever the seed of the run.
    Accuracy is the fraction of samples whose largest output is the target; NaN unless outputs are (samples, classes)
    and targets integers. Raise ValueError for a module without parameters, with parameters of mixed types, or with
    buffers that a training pass changes.
    """

    def __init__(self, module, loss, train: tuple, test: tuple, *, name="torch", shuffle=True, dtype=None):
        import torch

        module = copy.deepcopy(module)
        if not module.training:  # otherwise only frozen parts are in evaluation mode, and stay in it
            module.train()
        if dtype is not None:
            module = module.to(getattr(torch, np.dtype(dtype).name))
        self.whole = TorchStage(module, loss)
        self.module, self.name, self.shuffle, self.dtype = module, name, shuffle, self.whole.dtype
        self.x, self.target = map(self._fitting, train)
        self.held_out = tuple(map(self._fitting, test))
        self.held_out_samples = len(self.held_out[1])
        self.samples, self.parameters = len(self.x), self.whole.parameters
        self.tensors, self.activations = self.whole.tensors, self.whole.activations
        self.over_batch = torch_buffers.is_over_batch(module)
        torch_buffers.check(module, (self.x[:2], self.x[-2:]))
        outside = copy.deepcopy(module)
        self.norms = torch_buffers.norms(outside)
        self.evaluated = TorchStage(outside.eval(), loss)  # another module, as ranks may be training this one
        if isinstance(module, torch.nn.Sequential) and self.parameters == sum(map(_count, module)):
            self.depth = len(self._groups())

    def start(self, seed: int = 0) -> np.ndarray:
        """Return the module's own parameters as the initial ones. Seed torch's later random draws (dropout)."""
        return self.whole.start(seed)

    def batch(self, indices: np.ndarray) -> tuple:
        return self.x[indices], self.target[indices]

    def gradient(self, w, batch: tuple) -> tuple:
        x, target = batch
        y, saved = self.whole.forward(w, x)
        loss, dy = self.whole.loss(y, target)
        return loss, self.whole.backward(w, saved, dy)[1]

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """Return loss and accuracy on the held-out samples, with dropout off."""
        import torch

        x, target = map(torch.from_numpy, self.held_out)
        forward = partial(self.evaluated.apply, torch.from_numpy(w))
        with torch.no_grad():
            if self.norms:
                torch_buffers.take_statistics(self.norms, lambda: forward(torch.from_numpy(population(self.x))))
            y = forward(x)
            loss = float(self.whole.criterion(y, target))
        classes = y.ndim == 2 and target.ndim == 1 and not target.is_floating_point()
        return Evaluation(loss, float((y.argmax(1) == target).double().mean()) if classes else math.nan)

    def split(self, stages: int | Sequence[int]) -> list[TorchStage]:
        """Return the module split into stages of consecutive children.

        `stages` is their number, balanced by parameters, or a sequence with the number of children of each. Children
        without parameters belong to the child before and do not count. Raise ValueError if this is not possible.
        """
        import torch

        if type(self.module) is not torch.nn.Sequential:
            raise ValueError(
                f"{type(self.module).__name__} cannot be cut into stages; give it as an nn.Sequential of its layers."
            )
        groups = self._groups()
        parts, offset = [], 0
        for some in cut_layers([sum(map(_count, group)) for group in groups], stages, "children with parameters"):
            children = [child for group in groups[some] for child in group]
            parts.append(TorchStage(torch.nn.Sequential(*children), self.whole.criterion, offset))
            offset += parts[-1].parameters
        if offset != self.parameters:
            raise ValueError(
                "some children share parameters, so the module cannot be cut into stages; give each child its own."
            )
        return parts

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Return the number of values per sample that pass from each stage to the next."""
        x, crossing = self.x[:1], []
        for stage in self.split(stages)[:-1]:
            x, _ = stage.forward(stage.start(), x)
            crossing.append(x.size)
        return tuple(crossing)

    def _groups(self) -> list[list]:
        """Return the children of a Sequential that have parameters, each with the children after it that have none."""
        groups: list[list] = [[]]
        for child in self.module:
            if _count(child) and any(map(_count, groups[-1])):
                groups.append([])
            groups[-1].append(child)
        return groups

    def _fitting(self, samples) -> np.ndarray:
        samples = np.ascontiguousarray(samples)
        return samples.astype(self.dtype, copy=False) if samples.dtype.kind == "f" else samples


def _count(module) -> int:
    return sum(p.numel() for p in module.parameters())
