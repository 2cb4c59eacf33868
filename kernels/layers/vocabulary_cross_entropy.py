"""Vocabulary cross-entropy: loss and gradient of this rank's logits, given sums over all ranks.

    loss = mean over samples of log(sums[0]) - sums[1]
    dz   = (exp(z - largest) / sums[0] - onehot(target)) / n          of the classes here

z and dz (n, classes here), the first of which is class `first`; sums (2, n) of `vocabulary_sums`, added up over
all ranks; largest (n,). With all classes here it is `softmax_cross_entropy`.
Price: about 6 FLOPs per logit; z is read and dz written once.
Source: Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3.
"""

import math

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("dz (n, classes), z (n, classes), largest (n), sums (2, n), target (n)")


def price(dz, z, largest, sums, target, first):
    n, classes = z.shape
    return 6 * n * classes, 2 * n * classes + 4 * n


def reference(dz, z, largest, sums, target, first):
    here = np.arange(first, first + z.shape[1]) == target[:, None]
    dz[:] = (np.exp(z - largest[:, None]) / sums[0][:, None] - here) / len(z)
    return float((np.log(sums[0]) - sums[1]).sum() / len(z))


def row(dz, z, largest, total, logit, place, samples):
    """Write dz of one sample, and return its loss. dz and z have shape (classes here,)."""
    for j in range(z.size):
        dz[j] = math.exp(z[j] - largest) / (total * samples)
    if 0 <= place < z.size:
        dz[place] -= z.dtype.type(1) / samples
    return math.log(total) - logit


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(dz, z, largest, sums, target, first):
    check(dz, z, largest, sums, target)
    n = z.shape[0]
    total = 0.0
    for i in range(n):
        total += row_cpu(dz[i], z[i], largest[i], sums[0, i], sums[1, i], target[i] - first, z.dtype.type(n))
    return total / n


@cuda.jit
def _launch(losses, dz, z, largest, sums, target, first):
    samples = z.dtype.type(losses.size)
    for i in range(cuda.grid(1), losses.size, cuda.gridsize(1)):
        losses[i] = row_gpu(dz[i], z[i], largest[i], sums[0, i], sums[1, i], target[i] - first, samples)


def gpu(dz, z, largest, sums, target, first):
    check(dz, z, largest, sums, target)
    if not len(z):
        return math.nan  # as the mean of no losses
    losses = empty(len(z), dz)
    _launch[over(losses)](losses, dz, z, largest, sums, target, first)
    return float(losses.sum()) / len(z)
