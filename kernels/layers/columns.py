"""Columns: the sum of each column of a matrix on a GPU, in a fixed order.

              32 columns
             . # # # # . .         a block of 32 x 32 threads takes 32 columns: a warp reads 32 neighbouring numbers,
    32 rows  . # # # # . .         the next warp the next row, and the block moves on by 32 rows;
             . # # # # . .         in the end the 32 sums of a column are added up in shared memory

One thread per column would be simpler, but would leave a GPU mostly idle if there are many rows and few columns. Atomic
additions would be simpler, too, but their results differ from run to run.
"""

from kernels.gpu import cuda
from kernels.launch import stream_of

COLUMNS, ROWS = 32, 32


def over_columns(x, sums: int = 1) -> tuple:
    """Return the launch configuration of a kernel that forms `sums` sums of each column of x (..., width)."""
    return max(1, sums * -(-x.shape[-1] // COLUMNS)), (COLUMNS, ROWS), stream_of(x)


@cuda.jit(device=True)
def column_sum(scratch, mine):
    """In the thread of the first row, return the sum of `mine` over the threads of this column; elsewhere, `mine`.

    `scratch`, (ROWS, COLUMNS), is in shared memory.
    """
    column = cuda.threadIdx.x
    cuda.syncthreads()  # until all threads have read an earlier sum from the scratch
    scratch[cuda.threadIdx.y, column] = mine
    cuda.syncthreads()
    if cuda.threadIdx.y == 0:
        for other in range(1, ROWS):
            mine += scratch[other, column]
    return mine


@cuda.jit
def _launch(out, x, add):
    scratch = cuda.shared.array((ROWS, COLUMNS), x.dtype)
    j = cuda.blockIdx.x * COLUMNS + cuda.threadIdx.x
    mine = x.dtype.type(0)
    if j < out.size:
        for i in range(cuda.threadIdx.y, x.shape[0], ROWS):
            mine += x[i, j]
    total = column_sum(scratch, mine)
    if cuda.threadIdx.y == 0 and j < out.size:
        out[j] = out[j] + total if add else total


def sum_columns(out, x, add=False):
    """Write the column sums of x (rows, width) to out (width,) on a GPU; with `add`, add them to it."""
    _launch[over_columns(x)](out, x, add)
