"""K-th largest magnitude of a vector, by radix selection.

    cut <- the k-th of |v| from above        ties <- how many of those equal to it are among the k

Exact, and without sorting: a pass over v makes a histogram of the leading digits (of 8 bits) of all magnitudes, which
gives the digit of the k-th, and the next pass does the same with the next digit of those that share it. NaN is above
everything, because its bits are (see `kernels/compression/magnitude.py`).

    k = 3    4711 4802 1174 4790 ..      first digit:  4: 3, 1: 1      the third is a 4...
                                         second:       8: 1, 7: 2      and then, 2 of those, a 47..

Price: as many passes as a number has bytes, 3 operations per number and pass. Between two passes a GPU synchronises
with the CPU: below 10^5 numbers that costs more than the work.
Source: Alabi, Blanchard, Gordon & Steinbach, ACM JEA 17, 2012 (radix selection).
"""

import numpy as np

from kernels.arrays import empty, to_numpy
from kernels.compiled import exact
from kernels.compiler import int32
from kernels.compression.magnitude import bits, mask
from kernels.gpu import cuda
from kernels.launch import THREADS, over
from kernels.shapes import shapes

check = shapes("v (d)")


def price(v, k):
    return 3 * v.itemsize * len(v), v.itemsize * len(v)


def reference(v, k):
    if k == 0:
        return np.nan, 0
    magnitudes = np.sort(bits(v) & mask(v))
    return magnitudes[-k].view(v.dtype), k - int((magnitudes > magnitudes[-k]).sum())


@exact
def _count(counts, numbers, sign_off, shift, chosen):
    counts[:] = 0
    for x in numbers:
        digits = (x & sign_off) >> shift
        if digits >> 8 == chosen:
            counts[digits & 255] += 1


def cpu(v, k):
    return _descend(v, k, np.empty(256, np.int64), _count)


@cuda.jit
def _count_gpu(counts, numbers, sign_off, shift, chosen):
    mine = cuda.shared.array(256, int32)  # per block, so that its threads do not wait for those of all other blocks
    mine[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), numbers.size, cuda.gridsize(1)):
        digits = (numbers[i] & sign_off) >> shift
        if digits >> 8 == chosen:
            cuda.atomic.add(mine, digits & 255, 1)
    cuda.syncthreads()
    cuda.atomic.add(counts, cuda.threadIdx.x, mine[cuda.threadIdx.x])


def gpu(v, k):
    def count(counts, *args):
        counts[:] = 0
        _count_gpu[over(v)](counts, *args)

    return _descend(v, k, empty(THREADS, bits(v)), count)  # one thread for each of the 256 digits


def _descend(v, k, counts, count):
    """Return (cut, ties), found digit by digit from above; `count(counts, numbers, ...)` fills the histogram."""
    check(v)
    if not 0 <= k <= len(v):
        raise ValueError(f"{len(v)} numbers have no {k}-th largest; k is 1 to {len(v)}, or 0 for none.")
    if k == 0:
        return np.nan, 0
    chosen, ties = 0, k
    for shift in range(8 * v.itemsize - 8, -1, -8):
        count(counts, bits(v), mask(v), shift, chosen)
        from_above = np.cumsum(to_numpy(counts)[::-1])
        place = int(np.searchsorted(from_above, ties))
        ties -= int(from_above[place - 1]) if place else 0
        chosen = chosen << 8 | 255 - place
    return np.array(chosen & mask(v), f"i{v.itemsize}").view(f"f{v.itemsize}")[()], ties
