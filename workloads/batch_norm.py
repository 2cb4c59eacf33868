"""Batch norm: a convolution with batch norm whose running statistics are parameters like all others.

In training each channel of z = conv(x, w) is normalised to mean 0 and variance 1 over the current batch: a worker's
mini-batch, a pipeline's micro-batch. How a batch is split therefore changes what is learned, as with no other layer.
Evaluation uses running statistics, so samples do not depend on each other; a small auxiliary loss trains these:

    1/2 (mean - m)^2 + 1/2 (variance - q)^2        m, q: the means of z and of (z - mean)^2 over the batch
    gradient: mean - m, variance - q               in q, mean is a constant

A step of SGD is then the exponential average, mean <- (1 - lr) mean + lr m, with momentum lr. m and q are means over
samples, which the batch's own variance is not: so the mean of the gradients of micro-batches, or of workers, is that of
the whole mini-batch (deferred batch norm), and since passes have no side effects, recomputation counts nothing twice.
(Means of z^2 are equivalent on paper, but square - mean^2 suffers from cancellation and unequal steps.)

Other update rules do not give this average, which affects evaluation but not training. With momentum, and with delayed
gradients, statistics oscillate around their targets; rules that divide by the gradient's size (Adam, RMSprop, Adagrad)
move by about lr a step, whatever the distance. A variance below 0 counts as 0, and the model then evaluates far worse
than its weights deserve.
Source: Ioffe & Szegedy, ICML 2015; Huang et al., NeurIPS 2019 (micro-batches); torchgpipe (deferred).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

import kernels
from workloads.layers import Convolution

EPS = 1e-5  # keeps the division by a channel's standard deviation finite


@dataclass(frozen=True)
class NormedConvolution(Convolution):
    """y = maxpool(relu(gain (z - m) / sqrt(v + EPS) + bias)), z = conv(x, w), m and v its mean and variance."""

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return super().shapes[0], *[(self.filters,)] * 4  # w, gain, bias, mean, variance

    @property
    def flops(self) -> int:
        return super().flops + 8 * self.filters * math.prod(self.inputs[1:])

    def start(self, generator):
        w, zeros = super().start(generator)
        return w, zeros + 1, zeros, zeros, zeros + 1

    @np.errstate(over="ignore", invalid="ignore")  # a diverging run is detected by its loss
    def forward(self, parts, x):
        w, gain, bias, mean, variance = parts
        z = kernels.empty((len(x), self.filters, *self.inputs[1:]), x)
        a, y = kernels.empty_like(z), kernels.empty((len(x), *self.outputs), x)
        m, v = kernels.empty_like(gain), kernels.empty_like(gain)
        kernels.conv2d_forward(z, x, w, kernels.zeros_like(bias), False)  # a bias here would be subtracted with m
        kernels.batch_norm_forward(a, m, v, z, gain, bias, EPS, True)
        kernels.max_pool_forward(y, a, self.pool)
        return y, (x, z, m, v, mean - m, variance - (v + (m - mean) ** 2), a, y)

    def backward_input(self, parts, saved, dy, needed=True):
        w, gain, *_ = parts
        x, z, m, v, dmean, dvariance, a, y = saved
        da, dz, dx = kernels.empty_like(a), kernels.empty_like(z), None
        kernels.max_pool_backward(da, dy, a, y, self.pool)
        kernels.relu_backward(da, da, a)
        dgain, dbias = kernels.empty_like(gain), kernels.empty_like(gain)
        kernels.batch_norm_backward_weights(dgain, dbias, da, z, m, v, EPS)
        kernels.batch_norm_backward_input(dz, da, z, m, v, gain, dgain, dbias, EPS)
        if needed:
            dx = kernels.empty_like(x)
            kernels.conv2d_backward_input(dx, dz, w)
        return dx, ((dgain, dbias, dmean, dvariance), x, dz)

    def backward_weights(self, gradients, pending):
        dw, *others = gradients
        ready, x, dz = pending
        kernels.conv2d_backward_weights(dw, kernels.empty_like(others[0]), x, dz)
        for gradient, value in zip(others, ready, strict=True):
            gradient[:] = value

    @np.errstate(over="ignore", invalid="ignore")
    def evaluate(self, parts, x):
        """Return y by the running statistics: with these fixed, batch norm folds into the filters."""
        w, gain, bias, mean, variance = parts
        slope = gain / np.sqrt(np.maximum(variance, 0) + EPS)
        return super().forward((w * slope[:, None, None, None], bias - slope * mean), x)[0]
