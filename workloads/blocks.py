"""Blocks: the parts of a model between two all-reduces of tensor parallelism.

The middle of a block is split, its first matrices by columns and the last by rows, so that each rank has its own units
or heads in between. Every rank computes what surrounds the middle.

    enter   h = norm(x)                 if the block has a norm
    inner   z = this rank's share       `partial`: a summand of the whole z; else, in a last block, some of the outputs
    leave   y = act(z + bias),  or  x + z + bias

x, h, z and y are (rows, width), where a row is a sample or a position of a sample. `axes` is the axis along which each
parameter of the block's layers is split, or None if every rank has all of it. The first `norms` parameters belong to
`enter`. The communication in between is in `algorithms/model_parallel/tensor.py`.
Source: Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3.
"""

from dataclasses import dataclass
from typing import Protocol

import kernels
from workloads.layers import Dense, Layer
from workloads.transformer import back


class Block(Protocol):
    """One rank's part of a block. `parts` are its parameters, and `g` receives their gradients."""

    axes: tuple[int | None, ...]
    norms: int
    partial: bool

    def enter(self, parts, x) -> tuple:
        """Return (h, saved): the inputs of the block's middle, and what `enter_back` needs."""

    def inner(self, parts, h) -> tuple:
        """Return (z, saved): this rank's share of the middle's outputs, and what `inner_back` needs."""

    def leave(self, parts, z, x) -> tuple:
        """Return (y, saved): the outputs, and what `leave_back` needs. May write into z."""

    def leave_back(self, saved, dy) -> tuple:
        """Return (dz, past), the gradients of z and along the residual path. `past` is None without such a path."""

    def inner_back(self, parts, saved, dz, g, needed: bool):
        """Write the gradients of all parameters except those of `enter` to g. Return this rank's contribution to dh, or
        None if it is not `needed`.
        """

    def enter_back(self, parts, saved, dh, past, g):
        """Write the gradients of the parameters of `enter`, if there are any, to g. Return dx, the gradient of the
        block's inputs.
        """


class PlainBlock:
    """The methods before and after the middle of a block without norm, bias and residual path."""

    norms, partial = 0, True

    def enter(self, parts, x):
        return x, ()

    def leave(self, parts, z, x):
        return z, ()

    def leave_back(self, saved, dy):
        return dy, None

    def enter_back(self, parts, saved, dh, past, g):
        return dh


@dataclass(frozen=True)
class DensePair(PlainBlock):
    """Two dense layers. A rank has columns of the first layer's weights, and the same rows of the second layer's."""

    first: Dense  # with the units of this rank
    second: Dense
    axes = (1, 0, 0, None)

    def inner(self, parts, h):
        y, kept = self.first.forward(parts[:2], h)
        z = kernels.empty((len(y), self.second.units), y)
        kernels.matmul(z, y, parts[2])
        return z, (kept, y)

    def leave(self, parts, z, x):
        kernels.bias_forward(z, z, parts[3], self.second.activation == "relu")
        if self.second.activation == "tanh":
            kernels.tanh_forward(z, z)
        return z, (z,)

    def leave_back(self, saved, dy):
        if self.second.activation == "none":
            return dy, None
        dz = kernels.empty_like(dy)
        undo = kernels.relu_backward if self.second.activation == "relu" else kernels.tanh_backward
        undo(dz, dy, *saved)
        return dz, None

    def inner_back(self, parts, saved, dz, g, needed):
        kept, y = saved
        kernels.dense_backward_weights(g[2], g[3], y, dz)
        dh, pending = self.first.backward_input(parts[:2], kept, back(dz, parts[2]), needed)
        self.first.backward_weights(g[:2], pending)
        return dh


@dataclass(frozen=True)
class Outputs(PlainBlock):
    """Some outputs of a layer on one rank: columns of a dense layer's weights, or filters of a convolution."""

    layer: Layer  # with the outputs of this rank
    axes: tuple[int, ...] = (1, 0)

    partial = False

    def inner(self, parts, h):
        return self.layer.forward(parts, h)

    def inner_back(self, parts, saved, dz, g, needed):
        dh, pending = self.layer.backward_input(parts, saved, dz, needed)
        self.layer.backward_weights(g, pending)
        return dh


@dataclass(frozen=True)
class ResidualOutputs(Outputs):
    """Some outputs of a residual block on one rank, and the inputs to which they are added."""

    scale: float = 1.0

    def leave(self, parts, z, x):
        y = kernels.empty_like(x)
        kernels.residual_add(y, x, z, self.scale)
        return y, ()

    def leave_back(self, saved, dy):
        return self.scale * dy, dy

    def enter_back(self, parts, saved, dh, past, g):
        kernels.residual_add(dh, dh, past, 1.0)
        return dh
