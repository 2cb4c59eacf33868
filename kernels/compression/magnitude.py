"""Magnitude: the order in which selections compare numbers, and stable compaction on a GPU.

The bits of a float without its sign, read as an integer, are in the order of |v|: 0 first, then infinity, then NaN,
which a selection therefore always includes.

A block of threads processes one share of the vector, a tile at a time. First the picks of all shares are counted, which
tells each block where its own begin; then a scan over each tile tells where each pick goes:

    picked      . x x . | x . . x        share 0 has 2, so share 1 begins at place 2
    place       . 0 1 . | 2 . . 3
"""

import numpy as np

from kernels.gpu import cuda
from kernels.launch import THREADS, stream_of

MAX_BLOCKS = 256


def bits(v):
    """Return a view of v's memory as integers of the same size."""
    name = f"int{8 * v.itemsize}"
    if isinstance(v, np.ndarray):
        return v.view(name)
    import torch

    return v.view(getattr(torch, name))


def mask(v) -> int:
    """Return a mask of all bits except the sign, for numbers of v's size."""
    return 2 ** (8 * v.itemsize - 1) - 1


def key(cut: float, v) -> int:
    """Return the bits of |cut| as an integer, comparable with those of v."""
    return int(np.array(cut, f"f{v.itemsize}").view(f"i{v.itemsize}")) & mask(v)


def partition(v) -> tuple[tuple, int]:
    """Return (a launch configuration, the number of elements of v for each block, in whole tiles)."""
    blocks = max(1, min(MAX_BLOCKS, -(-len(v) // THREADS)))
    return (blocks, THREADS, stream_of(v)), THREADS * -(-len(v) // (blocks * THREADS))


@cuda.jit(device=True)
def scan(flag, scratch):
    """Return the inclusive prefix sum of `flag` over the threads of the block; scratch[-1] becomes the total.

    `scratch` holds a number per thread; synchronise between reading it and using it again.
    """
    thread, step = cuda.threadIdx.x, 1
    scratch[thread] = flag
    cuda.syncthreads()
    while step < THREADS:
        before = scratch[thread - step] if thread >= step else 0
        cuda.syncthreads()
        scratch[thread] += before
        cuda.syncthreads()
        step *= 2
    return scratch[thread]
