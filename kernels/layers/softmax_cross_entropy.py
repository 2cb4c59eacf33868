"""Softmax cross-entropy: the mean loss, and the gradient of the logits.

    p = softmax(z)          loss = mean over samples of -log p[target]          dz = (p - onehot(target)) / n

z (n, classes), target (n,) of integers, dz like z: the gradient of the mean loss. The largest logit is
subtracted before the exponential, so that large logits do not overflow.
Price: about 8 FLOPs per logit; z is read and dz written once.
"""

import math

import numpy as np

from kernels.arrays import empty
from kernels.capturing import sum_on_host
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("dz (n, classes), z (n, classes), target (n)")

FLOPS, WORDS = 8, 2


def reference(dz, z, target):
    rows = np.arange(len(z))
    shifted = z - z.max(1, keepdims=True)
    log_p = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    dz[:] = np.exp(log_p)
    dz[rows, target] -= 1
    dz /= len(z)
    return -float(log_p[rows, target].sum() / len(z))


def row(dz, z, target, samples):
    """Write dz of one sample, and return its loss. dz and z have shape (classes,)."""
    largest = z[0]
    for j in range(1, z.size):
        if z[j] > largest:
            largest = z[j]
    total = z.dtype.type(0)
    for j in range(z.size):
        dz[j] = math.exp(z[j] - largest)
        total += dz[j]
    for j in range(z.size):
        dz[j] /= total * samples
    loss = math.log(total) + largest - z[target]
    dz[target] -= z.dtype.type(1) / samples
    return loss


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(dz, z, target):
    check(dz, z, target)
    n = z.shape[0]
    total = 0.0
    for i in range(n):
        total += row_cpu(dz[i], z[i], target[i], z.dtype.type(n))
    return total / n


@cuda.jit
def _launch(losses, dz, z, target):
    for i in range(cuda.grid(1), losses.size, cuda.gridsize(1)):
        losses[i] = row_gpu(dz[i], z[i], target[i], z.dtype.type(losses.size))


def gpu(dz, z, target):
    check(dz, z, target)
    if not len(z):
        return math.nan  # as the mean of no losses
    losses = empty(len(z), dz)
    _launch[over(losses)](losses, dz, z, target)
    return sum_on_host(losses, len(z))
