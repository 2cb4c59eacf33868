"""Runs: consecutive pieces of a vector that share something, a scale or two means.

    edges 0      4         9  10        run r is v[edges[r]:edges[r + 1]]; edges are whole numbers of 64 bits
    v     . . . .  . . . . .  .

On a GPU a block of threads takes a run after the other, so a single run of millions of numbers keeps one block busy
and the rest of the GPU idle; many runs of some thousands are what it likes.
"""

from itertools import pairwise

from kernels.gpu import cuda
from kernels.launch import MAX_BLOCKS, THREADS, stream_of

SUMMERS = 16  # threads that each add up a sixteenth of the others' numbers


def pieces(edges) -> list[slice]:
    """The runs, as slices."""
    return [slice(a, b) for a, b in pairwise(edges.tolist())]


def over_runs(edges) -> tuple:
    """The launch of a kernel whose blocks take run after run."""
    return max(1, min(MAX_BLOCKS, len(edges) - 1)), THREADS, stream_of(edges)


@cuda.jit(device=True)
def block_sum(scratch, mine):
    """The sum of `mine` over the threads of the block; scratch holds a number per thread."""
    thread = cuda.threadIdx.x
    cuda.syncthreads()  # whoever reads an earlier sum in the scratch has read it
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
    """The largest of `mine` over the threads of the block, NaN if one is."""
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
