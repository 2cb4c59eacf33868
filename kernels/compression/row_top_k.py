"""Row top-k: the k numbers of largest magnitude in each row of a table, and their positions in the table.

    index[r] <- the k places of largest |x| in row r, the largest first        values <- x at these places

x (rows, columns), values and index (rows, k). A position counts from the start of the table, row by row, so that
`scatter_add` can use it. Of equal magnitudes the first comes first. NaN is above everything, because its bits are (see
`kernels/compression/magnitude.py`).

Rows are meant to be short, of tens or hundreds of numbers: for the largest of a whole vector use `kth_largest` and
`select`.

Price: 2 operations per number, and it is read once. A CPU keeps the k largest so far in order; on a GPU every number is
compared with all others of its row, which needs no memory.
"""

import numpy as np

from kernels.compiled import exact
from kernels.compression.magnitude import bits, mask
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("values (n, k), index (n, k), x (n, columns)")
TOO_MANY = "a row has fewer numbers than k, the number to choose; use a k of at most the number of columns."


def price(values, index, x):
    (n, columns), k = x.shape, index.shape[1]
    return 2 * n * columns, n * columns + 2 * n * k


def reference(values, index, x):
    k = index.shape[1]
    places = np.argsort(-(bits(x) & mask(x)), axis=1, kind="stable")[:, :k]
    values[:] = np.take_along_axis(x, places, 1)
    index[:] = places + x.shape[1] * np.arange(len(x))[:, None]


@exact
def _select_rows(values, index, x, numbers, sign_off):
    check(values, index, x)
    n, columns = x.shape
    k = index.shape[1]
    if k > columns:
        raise ValueError(TOO_MANY)
    for r in range(n if k else 0):
        found, least = 0, -1  # the least magnitude that is kept, once there are k
        for j in range(columns):
            magnitude = numbers[r, j] & sign_off
            if magnitude <= least:
                continue
            place = found = min(found + 1, k)
            while place > 1 and magnitude > numbers[r, index[r, place - 2]] & sign_off:
                place -= 1
                index[r, place] = index[r, place - 1]
            index[r, place - 1] = j  # in the row; in the table below
            if found == k:
                least = numbers[r, index[r, k - 1]] & sign_off
        for place in range(k):
            values[r, place] = x[r, index[r, place]]
            index[r, place] += r * columns


def cpu(values, index, x):
    _select_rows(values, index, x, bits(x), mask(x))


@cuda.jit
def _launch(values, index, x, numbers, sign_off):
    columns, k = x.shape[1], index.shape[1]
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        r, j = i // columns, i % columns
        magnitude = numbers[r, j] & sign_off
        place = 0
        for other in range(columns):
            rival = numbers[r, other] & sign_off
            place += rival > magnitude or (rival == magnitude and other < j)
        if place < k:
            values[r, place], index[r, place] = x[r, j], i


def gpu(values, index, x):
    check(values, index, x)
    if index.shape[1] > x.shape[1]:
        raise ValueError(TOO_MANY)
    _launch[over(x)](values, index, x, bits(x), mask(x))
