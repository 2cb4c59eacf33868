"""GELU backward: how much more passes when a little more comes.

    dz = dy (s + a z s (1 - s) (1 + 3 b z^2))          s = s(z), a and b as in gelu_forward

s is computed anew from z: keeping it would cost a word per number, and memory is what bounds this kernel.
Price: 3 words per number; the FLOPs depend on the library and are counted as 20.
"""

import math

import numpy as np
from numba import cuda

from kernels.compiled import exact, formula
from kernels.launch import over
from kernels.layers.gelu_forward import A, B

FLOPS, WORDS = 20, 3


@formula
def element(dy, z, a, b, one):
    s = one / (one + math.exp(-a * (z + b * z * z * z)))
    return dy * (s + a * z * s * (one - s) * (one + (b + b + b) * z * z))


def reference(dz, dy, z):
    t = np.tanh(A / 2 * (z + B * z**3))
    dz[:] = dy * ((1 + t) / 2 + z / 2 * (1 - t * t) * A / 2 * (1 + 3 * B * z * z))


@exact
def cpu(dz, dy, z):
    dz, dy, z = dz.ravel(), dy.ravel(), z.ravel()  # views: arrays are contiguous
    kind = dz.dtype.type
    for i in range(dz.size):
        dz[i] = element(dy[i], z[i], kind(A), kind(B), kind(1))


@cuda.jit
def _launch(dz, dy, z):
    kind = dz.dtype.type
    for i in range(cuda.grid(1), dz.size, cuda.gridsize(1)):
        dz[i] = element(dy[i], z[i], kind(A), kind(B), kind(1))


def gpu(dz, dy, z):
    dz, dy, z = dz.ravel(), dy.ravel(), z.ravel()
    _launch[over(dz)](dz, dy, z)
