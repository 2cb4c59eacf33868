"""Torch stage: part of a torch module on a flat vector of parameters, differentiated by autograd.

A backward pass may use other weights than its forward pass. Autograd's graph is built on a private copy of w, and
backward writes its own weights into that copy. Products with transposed weights use these, and everything else comes
from the forward pass, as in our own layers.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np

from kernels.meter import METER

TURN = Lock()  # for putting parameters into a module for a forward pass, since ranks that are threads share modules


@dataclass(eq=False, slots=True)
class ForwardPass:
    """A forward pass recorded by autograd: the copy of the weights, the inputs, the outputs, and the bytes it keeps.

    Its memory can be counted like that of an array (`kernels.arrays.extents`).
    """

    own: Any
    x: Any
    y: Any
    nbytes: int

    def data_ptr(self) -> int:
        """Return an address that is unique while this object exists."""
        return id(self)


class TorchStage:
    """A whole module, or some consecutive children of it. Arrays are NumPy's, or torch tensors if w is one."""

    def __init__(self, module, loss, offset: int = 0):
        self.module, self.criterion, self.offset = module, loss, offset
        named = dict(module.named_parameters())
        kinds = {p.dtype for p in named.values()}
        if len(kinds) != 1:
            raise ValueError(
                f"a module needs parameters of a single type, but this one has {sorted(map(str, kinds)) or 'none'}."
            )
        self.shapes = {name: p.shape for name, p in named.items()}
        self.origin = np.concatenate([p.detach().cpu().numpy().ravel() for p in named.values()])
        self.parameters, self.dtype = self.origin.size, self.origin.dtype
        ends = np.cumsum([0, *(math.prod(shape) for shape in self.shapes.values())])
        places = map(slice, ends[:-1].tolist(), ends[1:].tolist())
        self.tensors = tuple((place, tuple(shape)) for place, shape in zip(places, self.shapes.values(), strict=True))
        self.activations: dict[int, int] = {}  # samples -> bytes that a forward pass keeps for backward
        self._flops: dict[tuple, int] = {}  # of a forward pass, by the shape of x

    def __str__(self) -> str:
        """Return the kinds of the children, such as "linear, relu"."""
        return ", ".join(type(child).__name__.lower() for child in [*self.module.children()] or [self.module])

    def start(self, seed: int = 0) -> np.ndarray:
        """Return the module's own parameters as the initial ones. Seed torch's later random draws (dropout)."""
        import torch

        torch.manual_seed(seed)  # otherwise a dropout would continue where the previous run of this process ended
        return self.origin.copy()

    def apply(self, vector, x):
        """Return the outputs for the parameters in `vector`. All arrays are torch tensors."""
        from torch.func import functional_call

        parts = vector.split([shape.numel() for shape in self.shapes.values()])
        named = {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}
        if vector.device.type != "cpu":  # the module's own buffers are on the CPU
            named |= {name: buffer.to(vector.device) for name, buffer in self.module.named_buffers()}
        with TURN:
            return functional_call(self.module, named, (x,))

    def forward(self, w, x) -> tuple:
        """Return (y, saved): the outputs, and what the backward pass needs."""
        own = _tensor(w).clone().requires_grad_()
        x = _tensor(x)
        if self.offset:
            x = x.detach().clone().requires_grad_()
        y = self._counted(own, x)
        if len(x) not in self.activations:
            constant = own, *self.module.buffers()
            self.activations[len(x)] = _kept_bytes(y.grad_fn, {_storage(part).data_ptr() for part in constant})
        return _like(w, y.detach()), ForwardPass(own, x, y, self.activations[len(x)])

    def backward(self, w, saved, dy, g=None, add=False) -> tuple:
        """Return (dx, g), the gradients of the inputs and of the parameters. dx is None on the first stage.

        A given g is overwritten or, with `add`, added to.
        """
        # .data bypasses autograd's check that the weights are those of the forward pass
        saved.own.data.copy_(_tensor(w))
        self._charge(saved.x, saved.y, times=2)
        *dx, new = _gradients(saved.y, (saved.x, saved.own) if self.offset else (saved.own,), dy)
        return (dx[0] if dx else None), _put(new, g, add)

    def backward_factors(self, w, saved, dy) -> tuple:
        """Return (dx, g, None), since autograd does not expose a gradient's factors."""
        return *self.backward(w, saved, dy), None

    def backward_input(self, w, saved, dy) -> tuple:
        """Return (dx, pending): the gradient of the inputs (None on the first stage), and what `backward_weights`
        needs.
        """
        saved.own.data.copy_(_tensor(w))
        dx = None
        if self.offset:
            self._charge(saved.x, saved.y)
            (dx,) = _gradients(saved.y, (saved.x,), dy)
        return dx, (saved, dy)

    def backward_weights(self, pending, g=None, add=False):
        """Return g, the gradient of the parameters. Autograd traverses the stage a second time for this, unlike our own
        layers.
        """
        saved, dy = pending
        self._charge(saved.x, saved.y, times=2 if self.offset else 1)
        return _put(_gradients(saved.y, (saved.own,), dy)[0], g, add)

    def loss(self, y, target) -> tuple:
        import torch

        outputs = _tensor(y).detach().requires_grad_()
        value = self.criterion(outputs, _tensor(target))
        (dy,) = torch.autograd.grad(value, outputs)
        return float(value.detach()), _like(y, dy)

    def _counted(self, own, x):
        shape = tuple(x.shape)
        if METER.get() is None or shape in self._flops:
            y = self.apply(own, x)
        else:
            from torch.utils.flop_counter import FlopCounterMode

            with FlopCounterMode(display=False) as counter:
                y = self.apply(own, x)
            self._flops[shape] = counter.get_total_flops()
        self._charge(x, y)
        return y

    def _charge(self, x, y, times: int = 1) -> None:
        """Charge `times` passes, with FLOPs as torch counts them, and parameters, inputs and outputs moved once."""
        if meter := METER.get():
            nbytes = (self.parameters + x.numel() + y.numel()) * self.dtype.itemsize
            meter.charge("torch", times * self._flops.get(tuple(x.shape), 0), times * nbytes)


def _kept_bytes(node, constant: set[int]) -> int:
    """Return the number of bytes that autograd keeps for the backward pass from `node`, except storages at `constant`
    addresses.

    Hooks for saved tensors would give the same number, but networks that use torch.func do not allow them.
    """
    storages, seen, left = {}, set(), [node]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        left += [before for before, _ in node.next_functions]
        for tensor in _saved_tensors(node):
            storage = _storage(tensor)
            if storage.data_ptr() not in constant:
                storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def _saved_tensors(node) -> Iterator:
    """Yield the tensors that a node of autograd's graph keeps."""
    import torch

    found = [getattr(node, name) for name in dir(node) if name.startswith("_saved_")]
    for value in (*found, getattr(node, "saved_tensors", ())):  # the latter by functions written in Python
        yield from (x for x in (value if isinstance(value, tuple | list) else (value,)) if torch.is_tensor(x))


def _storage(tensor):
    return tensor.untyped_storage()


def _put(new, g, add: bool):
    """Return `new` if g is None. Otherwise write `new` over g or, with `add`, add it to g, and return g."""
    if g is None:
        return new
    g[:] = g + new if add else new
    return g


def _tensor(array):
    import torch

    return torch.from_numpy(array) if isinstance(array, np.ndarray) else array


def _like(array, tensor):
    """Convert `tensor` to the kind of array that `array` is."""
    return tensor.numpy() if isinstance(array, np.ndarray) else tensor


def _gradients(y, wanted: tuple, dy) -> list:
    """Return the gradients of `wanted`, given the gradient `dy` of y, as dy's kind of array. Retain y's graph."""
    import torch

    return [_like(dy, g) for g in torch.autograd.grad(y, wanted, _tensor(dy), retain_graph=True)]
