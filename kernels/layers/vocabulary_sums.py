"""Vocabulary sums: this rank's terms of a softmax over classes that are split over ranks.

    sums[0, i] = sum over j of exp(z[i, j] - largest[i])
    sums[1, i] = z[i, target[i] - first] - largest[i]  if that class is here, else 0

z (n, classes here), the first of which is class `first`; target and largest (n,), the latter over all classes. Summed
over the ranks that have the others, they are the total of the softmax and the target's logit.
Price: about 4 FLOPs per logit; z is read once.
Source: Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3.
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("sums (2, n), z (n, classes), largest (n), target (n)")


def price(sums, z, largest, target, first):
    n, classes = z.shape
    return 4 * n * classes, n * classes + 4 * n


def reference(sums, z, largest, target, first):
    shifted = z - largest[:, None]
    sums[0] = np.exp(shifted).sum(1)
    here = np.arange(first, first + z.shape[1]) == target[:, None]
    sums[1] = np.where(here, shifted, 0).sum(1)


def row(z, largest, place):
    """Return both sums of one sample, given its logits z, (classes here,), and the place of its target among them."""
    total = z.dtype.type(0)
    for j in range(z.size):
        total += math.exp(z[j] - largest)
    return total, z[place] - largest if 0 <= place < z.size else z.dtype.type(0)


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(sums, z, largest, target, first):
    check(sums, z, largest, target)
    for i in range(z.shape[0]):
        sums[0, i], sums[1, i] = row_cpu(z[i], largest[i], target[i] - first)


@cuda.jit
def _launch(sums, z, largest, target, first):
    for i in range(cuda.grid(1), largest.size, cuda.gridsize(1)):
        sums[0, i], sums[1, i] = row_gpu(z[i], largest[i], target[i] - first)


def gpu(sums, z, largest, target, first):
    check(sums, z, largest, target)
    _launch[over(largest)](sums, z, largest, target, first)
