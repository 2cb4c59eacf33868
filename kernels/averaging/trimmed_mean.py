"""Trimmed mean of several vectors, coordinate by coordinate; with the widest cut it is the median.

    out[j] <- mean of rows[.., j] without the `cut` largest and the `cut` smallest

Equal values count in the order of their rows. A value that is not a number counts as the largest.

Price: n^2 comparisons and n additions per column, n + 1 words. On a GPU every value is compared with every other, which
needs no memory: vectors come from tens of ranks, not from thousands. On a CPU NumPy sorts, with the processor's vector
instructions: for 16 vectors that is 5 times as fast as a compiled insertion sort.
Source: Yin, Chen, Ramchandran & Bartlett, ICML 2018, arXiv:1803.01498.
"""

import numpy as np

from kernels.compiled import formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (d), rows (n, d)")


def price(out, rows, cut):
    n, d = rows.shape
    return (n * n + n) * d, (n + 1) * d


def reference(out, rows, cut):  # (d,), (n, d) with n above 2 cut
    order = np.sort(rows, axis=0)  # NaN last
    out[:] = order[cut : len(rows) - cut].mean(axis=0)


@formula
def comes_before(a, b, earlier):
    """True if value a comes before b. `earlier` is True if a's row comes before b's."""
    if a != a:
        return b != b and earlier
    return b != b or a < b or (a == b and earlier)


def cpu(out, rows, cut):
    check(out, rows)
    reference(out, rows, cut)


@cuda.jit
def _launch(out, rows, cut):
    n, d = rows.shape
    for j in range(cuda.grid(1), d, cuda.gridsize(1)):
        total = out.dtype.type(0)
        for i in range(n):
            place = 0
            for k in range(n):
                place += comes_before(rows[k, j], rows[i, j], k < i)
            if cut <= place < n - cut:
                total += rows[i, j]
        out[j] = total / out.dtype.type(n - 2 * cut)


def gpu(out, rows, cut):
    check(out, rows)
    _launch[over(out, rows[0])](out, rows, cut)
