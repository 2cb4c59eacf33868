"""Batch norm: a convolution whose outputs are normalised by statistics of the batch or, in evaluation, of training
samples.

In training, each channel of z = conv(x, w) is normalised to mean 0 and variance 1 over the current batch: a worker's
mini-batch or a pipeline's micro-batch. How a batch is split therefore changes what is learned, unlike for any other
layer. A synchronised batch norm uses the mini-batches of all workers: they exchange mean and variance in the forward
pass, and the sums through which every input changes these in the backward pass (`workloads.batch_statistics`).
In evaluation, a sample must not depend on the rest of its batch. Mean and variance are therefore computed from training
samples, in an extra forward pass with the weights being evaluated (`Sequential.statistics`).

A model therefore consists of its weights only, and these are all that algorithms average, compress, correct and send.
Frameworks keep running averages of the batch statistics instead. As part of w, these would be updated like parameters
(an outer step of DiLoCo overshot them to a loss of 700, where the weights gave 0.2), and even if they are averaged as
statistics, they belong to the replicas' models, not to the mean of these.
Source: Ioffe & Szegedy, ICML 2015, Algorithm 2 (population statistics after training); Wu & Johnson,
arXiv:2105.07576, section 3 (PreciseBN: a thousand samples or more suffice; running averages lag behind the weights).
"""

import math
from dataclasses import dataclass

import numpy as np

import kernels
from workloads.batch_statistics import GATHER, average, pool
from workloads.layers import Convolution

EPS = 1e-5  # keeps the division by a channel's standard deviation finite


@dataclass(frozen=True)
class NormedConvolution(Convolution):
    """y = maxpool(relu(gain (z - m) / sqrt(v + EPS) + bias)), z = conv(x, w), m and v its mean and variance."""

    over_batch = True

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return super().shapes[0], (self.filters,), (self.filters,)  # w, gain, bias

    @property
    def flops(self) -> int:
        return super().flops + 8 * self.filters * math.prod(self.inputs[1:])

    def start(self, generator):
        w, zeros = super().start(generator)
        return w, zeros + 1, zeros

    @np.errstate(over="ignore", invalid="ignore")  # a diverging run is detected by its loss
    def forward(self, parts, x):
        w, gain, bias = parts
        z = kernels.empty((len(x), self.filters, *self.inputs[1:]), x)
        a, y = kernels.empty_like(z), kernels.empty((len(x), *self.outputs), x)
        m, v = kernels.empty_like(gain), kernels.empty_like(gain)
        kernels.conv2d_forward(z, x, w, kernels.zeros_like(bias), False)  # a bias here would be subtracted with m
        kernels.batch_norm_forward(a, m, v, z, gain, bias, EPS, True)
        if gather := GATHER.get():
            m, v = pool(gather, m, v)
            kernels.batch_norm_apply(a, z, m, v, gain, bias, EPS, True)
        kernels.max_pool_forward(y, a, self.pool)
        return y, (x, z, m, v, a, y)

    def backward_input(self, parts, saved, dy, needed=True):
        w, gain, _ = parts
        x, z, m, v, a, y = saved
        da, dz, dx = kernels.empty_like(a), kernels.empty_like(z), None
        kernels.max_pool_backward(da, dy, a, y, self.pool)
        kernels.relu_backward(da, da, a)
        dgain, dbias = kernels.empty_like(gain), kernels.empty_like(gain)
        kernels.batch_norm_backward_weights(dgain, dbias, da, z, m, v, EPS)
        gather = GATHER.get()  # the mean sum over a worker's batch is to it what the whole sum is to all samples
        sums = average(gather, dgain, dbias) if gather else (dgain, dbias)
        kernels.batch_norm_backward_input(dz, da, z, m, v, gain, *sums, EPS)
        if needed:
            dx = kernels.empty_like(x)
            kernels.conv2d_backward_input(dx, dz, w)
        return dx, ((dgain, dbias), x, dz)

    def backward_weights(self, gradients, pending):
        dw, *others = gradients
        ready, x, dz = pending
        kernels.conv2d_backward_weights(dw, kernels.empty_like(others[0]), x, dz)
        for gradient, value in zip(others, ready, strict=True):
            gradient[:] = value

    def statistics(self, saved):
        """Return (m, v), the mean and variance of each channel of z, from the forward pass that returned `saved`."""
        _, _, m, v, _, _ = saved
        return m, v

    @np.errstate(over="ignore", invalid="ignore")
    def evaluate(self, parts, x, statistics):
        """Return y for these statistics. Once they are fixed, batch norm folds into the filters."""
        (w, gain, bias), (m, v) = parts, statistics
        slope = gain / np.sqrt(v + EPS)
        return super().forward((w * slope[:, None, None, None], bias - slope * m), x)[0]
