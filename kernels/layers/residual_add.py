"""Residual add: the input plus a scaled block output.

    y = x + scale a          y may be x or a itself

The same kernel joins the two paths of the backward pass, dx = dy + (gradient through the block).
Price: 2 FLOPs and 3 words per number: bound by memory everywhere.
Source: He et al., Deep Residual Learning for Image Recognition, CVPR 2016.
"""

from kernels.compiled import exact, flat, formula, length
from kernels.gpu import cuda
from kernels.launch import flatten, over

FLOPS, WORDS = 2, 3


@formula
def element(x, a, scale):
    return x + scale * a


def reference(y, x, a, scale):
    y[:] = x + scale * a


@exact
def cpu(y, x, a, scale):
    y, x, a = flat(y), flat(x), flat(a)
    factor = y.dtype.type(scale)
    for i in range(length(y, x, a)):
        y[i] = element(x[i], a[i], factor)


@cuda.jit
def _launch(y, x, a, scale):
    factor = y.dtype.type(scale)
    for i in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        y[i] = element(x[i], a[i], factor)


def gpu(y, x, a, scale):
    y, x, a = flatten(y, x, a)
    _launch[over(y, x, a)](y, x, a, scale)
