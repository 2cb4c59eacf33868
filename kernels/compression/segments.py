"""Segments: consecutive pieces of a vector that share a scale or two means.

    edges 0      4         9  10        segment r is v[edges[r]:edges[r + 1]]; edges are int64
    v     . . . .  . . . . .  .

On a GPU a block of threads processes one segment after the other, so a single segment of millions of numbers leaves
most of the GPU idle; many segments of a few thousand are best.
"""

from itertools import pairwise

from kernels.gpu import cuda
from kernels.launch import THREADS, blocks_over

SUMMERS = 16  # threads that each add up a sixteenth of the others' numbers


def pieces(edges) -> list[slice]:
    """Return the segments as slices."""
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


def over_segments(edges) -> tuple:
    """Return the launch configuration of a kernel whose blocks process one segment at a time."""
    return blocks_over(len(edges) - 1, edges)


@cuda.jit(device=True)
def block_sum(scratch, mine):
    """Return the sum of `mine` over the threads of the block; `scratch` holds a number per thread."""
    thread = cuda.threadIdx.x
    cuda.syncthreads()  # until all threads have read an earlier sum from the scratch
    scratch[thread] = mine
    cuda.syncthreads()
    if thread < SUMMERS:
        for other in range(thread + SUMMERS, THREADS, SUMMERS):
            scratch[thread] += scratch[other]
    cuda.syncthreads()
    total = scratch[0]
    for other in range(1, SUMMERS):
        total += scratch[other]
    return total


@cuda.jit(device=True)
def block_largest(scratch, mine):
    """Return the largest `mine` over the threads of the block, or NaN if any is NaN."""
    thread = cuda.threadIdx.x
    cuda.syncthreads()
    scratch[thread] = mine
    cuda.syncthreads()
    if thread < SUMMERS:
        for other in range(thread + SUMMERS, THREADS, SUMMERS):
            if not scratch[other] <= scratch[thread] and scratch[thread] == scratch[thread]:
                scratch[thread] = scratch[other]
    cuda.syncthreads()
    largest = scratch[0]
    for other in range(1, SUMMERS):
        if not scratch[other] <= largest and largest == largest:
            largest = scratch[other]
    return largest
