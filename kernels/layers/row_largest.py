"""Row maximum, for example a sample's largest logit.

    largest[i] = max over j of z[i, j]          largest (n,), z (n, columns)

NaN propagates.
Price: 1 FLOP per number; z is read once.
"""

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("largest (n), z (n, columns)")


def price(largest, z):
    n, columns = z.shape
    return n * columns, n * columns + n


def reference(largest, z):
    largest[:] = z.max(1)


def row(z):
    """Return the largest number of a row, (columns,)."""
    largest = z[0]
    for j in range(1, z.size):
        if z[j] > largest or z[j] != z[j]:
            largest = z[j]
    return largest


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(largest, z):
    check(largest, z)
    for i in range(z.shape[0]):
        largest[i] = row_cpu(z[i])


@cuda.jit
def _launch(largest, z):
    for i in range(cuda.grid(1), largest.size, cuda.gridsize(1)):
        largest[i] = row_gpu(z[i])


def gpu(largest, z):
    check(largest, z)
    _launch[over(largest)](largest, z)
