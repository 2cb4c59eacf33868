"""GELU backward: multiply the gradient by the derivative of GELU.

    dz = dy (s + a y (1 - s) (1 + 3 b z^2)),  s = y / z          s, a and b as in gelu_forward

z and y are those of the forward pass; with both at hand, no exponential is needed. At z = 0, s is 1/2.
Price: 12 FLOPs and 4 words per number: bound by memory everywhere.
"""

import numpy as np

from kernels.compiled import exact, flat, formula, length
from kernels.gpu import cuda
from kernels.launch import flatten, over
from kernels.layers.gelu_forward import A, B

FLOPS, WORDS = 12, 4


@formula
def element(dy, z, y, a, b, one, half):
    s = y / z if z != 0 else half
    return dy * (s + a * y * (one - s) * (one + (b + b + b) * z * z))


def reference(dz, dy, z, y):
    t = np.tanh(A / 2 * (z + B * z**3))
    dz[:] = dy * ((1 + t) / 2 + z / 2 * (1 - t * t) * A / 2 * (1 + 3 * B * z * z))


@exact
def cpu(dz, dy, z, y):
    dz, dy, z, y = flat(dz), flat(dy), flat(z), flat(y)
    kind = dz.dtype.type
    for i in range(length(dz, dy, z, y)):
        dz[i] = element(dy[i], z[i], y[i], kind(A), kind(B), kind(1), kind(0.5))


@cuda.jit
def _launch(dz, dy, z, y):
    kind = dz.dtype.type
    for i in range(cuda.grid(1), dz.size, cuda.gridsize(1)):
        dz[i] = element(dy[i], z[i], y[i], kind(A), kind(B), kind(1), kind(0.5))


def gpu(dz, dy, z, y):
    dz, dy, z, y = flatten(dz, dy, z, y)
    _launch[over(dz, dy, z, y)](dz, dy, z, y)
