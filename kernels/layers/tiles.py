"""Tiles: a matrix product on a GPU through shared memory, in tiles of 16 x 16.

Every thread owns one number of c = a b, every block a tile of it. Reading a row of a and a column of b from global
memory for each number would read everything n times; instead the block copies one tile of a and one of b into
shared memory, all threads use them sixteen times, and the block moves on along the inner dimension:

                 . # .                    # tiles in shared memory
              b  . # .                    C the block's tile of the result
                 . # .
    a  # # #  c  . C .

It is written to be read: cuBLAS also keeps numbers in registers, fetches ahead, and uses tensor cores.
"""

from kernels.arrays import empty
from kernels.gpu import cuda
from kernels.launch import stream_of

TILE = 16


@cuda.jit
def _product(c, a, b, bias, relu, add):
    left = cuda.shared.array((TILE, TILE), a.dtype)
    right = cuda.shared.array((TILE, TILE), a.dtype)  # on its own line, by which the simulator names it
    across, down = cuda.threadIdx.x, cuda.threadIdx.y
    j = cuda.blockIdx.y * TILE + across  # neighbouring threads take neighbouring columns, so that reads are coalesced
    i = cuda.blockIdx.x * TILE + down
    total = zero = a.dtype.type(0)
    for k in range(0, a.shape[1], TILE):
        left[down, across] = a[i, k + across] if i < a.shape[0] and k + across < a.shape[1] else zero
        right[down, across] = b[k + down, j] if k + down < b.shape[0] and j < b.shape[1] else zero
        cuda.syncthreads()
        for inner in range(TILE):
            total += left[down, inner] * right[inner, across]
        cuda.syncthreads()  # before overwriting a tile that another thread still reads
    if i < c.shape[0] and j < c.shape[1]:
        if bias.size:
            total += bias[j]
        if add:
            total += c[i, j]
        c[i, j] = zero if relu and total < zero else total


def product(c, a, b, bias=None, relu=False, add=False):
    """Write the matrix product a b to c, on a GPU.

    Add the bias if it is given, and the old c with `add`; then, with `relu`, replace negative numbers by 0.

    c (m, n), a (m, k), b (k, n) and bias (n,) may have any strides.
    """
    rows, columns = c.shape
    # rows along x, since a large batch of texts has millions: along y a grid has at most 65,535 blocks
    blocks = (max(1, -(-rows // TILE)), max(1, -(-columns // TILE)))
    bias = empty((0,), c) if bias is None else bias  # a launch does not accept None
    _product[blocks, (TILE, TILE), stream_of(c)](c, a, b, bias, relu, add)
