"""The contents of a rank's memory: the parameters of its optimizers, their gradients, their state, and activations.

The first three are measured at the end of a step. Sizes are those of local storage: of a sharded parameter, only the
local shard counts. Activations are the results of operations that autograd records, for as long as backward or the
script uses them. Their largest total within a step is recorded. Views share the storage of their base, so nothing is
counted twice. Buffers, inputs and temporaries of the backward pass are not recorded.
"""

from collections.abc import Iterable
from typing import Any
from weakref import ref

import torch

KINDS = "parameters", "gradients", "optimizer state", "activations"


def take_stock(optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """Return this rank's bytes of parameters, gradients and optimizer state of `optimizer`, by kind."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = [x for values in optimizer.state.values() if isinstance(values, dict) for x in values.values()]
    sizes = (parameters, [p.grad for p in parameters], state)
    return {kind: _local_bytes(tensors) for kind, tensors in zip(KINDS, sizes, strict=False)}


def _local_bytes(tensors: Iterable[Any]) -> int:
    total = 0
    for x in tensors:
        local = getattr(x, "_local_tensor", x)  # of a DTensor
        if isinstance(local, torch.Tensor):
            total += local.numel() * local.element_size()
    return total


class _Storage(ref):
    """A storage that is in use, and its size in bytes."""

    __slots__ = ("nbytes",)
    nbytes: int


class Activations:
    """The size of one rank's activations, in bytes: now, and at its peak in this step."""

    def __init__(self):
        self.nbytes = self.peak = 0
        self._in_use: dict[int, _Storage] = {}
        self._freed: list[_Storage] = []

    def add(self, out: Any) -> None:
        """Count the storage of these new tensors until it is freed."""
        if isinstance(out, torch.Tensor):
            self._remove_freed()
            storage = out.untyped_storage()
            one = _Storage(storage, self._freed.append)  # in C, as our own Python would be charged to the script
            one.nbytes = storage.nbytes()
            self._in_use[id(one)] = one
            self.nbytes += one.nbytes
            self.peak = max(self.peak, self.nbytes)
        elif isinstance(out, list | tuple):
            for x in out:
                self.add(x)

    def _remove_freed(self) -> None:
        while self._freed:
            one = self._freed.pop()
            self.nbytes -= one.nbytes
            del self._in_use[id(one)]

    def take_peak(self) -> int:
        """Return the peak since the last call, and start a new one."""
        self._remove_freed()
        peak, self.peak = self.peak, self.nbytes
        return peak
