"""Torch stage: part of a torch module on a flat vector of parameters, differentiated by autograd.

A backward pass may use other weights than its forward pass. Autograd's graph is built on a private copy of w, and
backward writes its own weights into that copy. Products with transposed weights use these, and everything else comes
from the forward pass, as in our own layers.
"""

import math
from threading import Lock

import numpy as np

from kernels.meter import METER

TURN = Lock()  # for putting parameters into a module for a forward pass, since ranks that are threads share modules


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
        self._flops: dict[tuple, int] = {}  # of a forward pass, by the shape of x

    def __str__(self) -> str:
        """Return the kinds of the children: "linear, relu"."""
        return ", ".join(type(child).__name__.lower() for child in [*self.module.children()] or [self.module])

    def start(self, seed: int = 0) -> np.ndarray:
        """Return the module's own parameters as the initial ones. Seed torch for what it draws from now on."""
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
        """Return (y, saved)."""
        own = _tensor(w).clone().requires_grad_()
        x = _tensor(x)
        if self.offset:
            x = x.detach().clone().requires_grad_()
        y = self._counted(own, x)
        return _like(w, y.detach()), (own, x, y)

    def backward(self, w, saved, dy, g=None, add=False) -> tuple:
        """Return (dx, g). dx is None on the first stage. A given g is overwritten or, with `add`, added to."""
        own, x, y = saved
        own.data.copy_(_tensor(w))  # .data bypasses autograd's check that the weights are those of the forward pass
        self._charge(x, y, times=2)
        *dx, new = _gradients(y, (x, own) if self.offset else (own,), dy)
        return (dx[0] if dx else None), _put(new, g, add)

    def backward_factors(self, w, saved, dy) -> tuple:
        """Return (dx, g, None), since autograd does not expose a gradient's factors."""
        return *self.backward(w, saved, dy), None

    def backward_input(self, w, saved, dy) -> tuple:
        """Return (dx, pending)."""
        own, x, y = saved
        own.data.copy_(_tensor(w))
        dx = None
        if self.offset:
            self._charge(x, y)
            (dx,) = _gradients(y, (x,), dy)
        return dx, (own, x, y, dy)

    def backward_weights(self, pending, g=None, add=False):
        """Return g. Autograd traverses the stage a second time for this, unlike our own layers."""
        own, x, y, dy = pending
        self._charge(x, y, times=2 if self.offset else 1)
        return _put(_gradients(y, (own,), dy)[0], g, add)

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


def _put(new, g, add: bool):
    """Return `new`, or, if given, g with `new` written over it or added to it."""
    if g is None:
        return new
    g[:] = g + new if add else new
    return g


def _tensor(array):
    import torch

    return torch.from_numpy(array) if isinstance(array, np.ndarray) else array


def _like(array, tensor):
    """Return `tensor` as the kind of array that `array` is."""
    return tensor.numpy() if isinstance(array, np.ndarray) else tensor


def _gradients(y, wanted: tuple, dy) -> list:
    """Return the gradients of `wanted`, given the gradient `dy` of y, as dy's kind of array. Retain y's graph."""
    import torch

    return [_like(dy, g) for g in torch.autograd.grad(y, wanted, _tensor(dy), retain_graph=True)]
