"""Threshold (Strom): encode the position and sign of each number beyond tau in one word.

    words <- i for v_i > tau, ~i for v_i < -tau, in order of i

~i, the complement of i, is negative: the first bit of the word is the sign, the other 31 are the position. The number
of words is returned; it is -1 if a number of v is not finite, which no word can encode. The words are useless then.

Price: 2 operations per number, and it is read once; on a GPU twice, once to count.
Source: Strom, Interspeech 2015.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact, formula
from kernels.compiler import int32
from kernels.compression.magnitude import partition, scan
from kernels.gpu import cuda
from kernels.launch import THREADS
from kernels.shapes import shapes

check = shapes("words (>= d), v (d)")


def price(words, v, tau):
    return 2 * len(v), len(v)


def reference(words, v, tau):
    if not np.isfinite(v).all():
        return -1
    found = np.flatnonzero(np.abs(v) > np.array(tau, v.dtype))
    words[: len(found)] = np.where(v[found] > 0, found, ~found)
    return len(found)


@formula
def beyond(x, tau):
    return not -tau <= x <= tau


@formula
def finite(x):
    return x - x == 0


@exact
def cpu(words, v, tau):
    check(words, v)
    tau, found = v.dtype.type(tau), 0
    for i in range(v.size):
        if beyond(v[i], tau):
            if not finite(v[i]):
                return -1
            words[found] = i if v[i] > 0 else ~i
            found += 1
    return found


@cuda.jit
def _count(counts, v, tau, share):
    """Add to `counts`, (blocks, 2), how many numbers of each block's share are beyond tau and how many are not
    finite.
    """
    tau, block, out, lost = v.dtype.type(tau), cuda.blockIdx.x, 0, 0
    for tile in range(block * share, (block + 1) * share, THREADS):
        i = tile + cuda.threadIdx.x
        if i < v.size:
            out += beyond(v[i], tau)
            lost += not finite(v[i])
    cuda.atomic.add(counts, (block, 0), out)
    cuda.atomic.add(counts, (block, 1), lost)


@cuda.jit
def _write(words, counts, v, tau, share):
    until = cuda.shared.array(THREADS, int32)
    tau, block, before = v.dtype.type(tau), cuda.blockIdx.x, 0
    for earlier in range(block):
        before += counts[earlier, 0]
    for tile in range(block * share, (block + 1) * share, THREADS):
        i = tile + cuda.threadIdx.x
        picked = i < v.size and beyond(v[i], tau)
        place = before + scan(int32(picked), until) - 1
        if picked:
            words[place] = i if v[i] > 0 else ~i
        before += until[THREADS - 1]
        cuda.syncthreads()  # before the next tile's scan


def gpu(words, v, tau):
    check(words, v)
    (blocks, *where), share = partition(v)
    counts = empty((blocks, 2), words)
    counts[:] = 0
    _count[blocks, *where](counts, v, tau, share)
    found, lost = (int(total) for total in counts.sum(0))
    if lost:
        return -1
    _write[blocks, *where](words, counts, v, tau, share)
    return found
