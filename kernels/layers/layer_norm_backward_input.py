"""Layer norm backward, input half: remove the components that change a row's mean or variance.

    du = gain dy          dx = r (du - mean of du - u (mean of u du))

dx, dy, u (rows, width), r (rows,), gain (width,); u and r are those of the forward pass. This is B of a split backward
pass; see dense_backward_input.
Price: 9 FLOPs per number; dy and u read, dx written once.
"""

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("dx (rows, width), dy (rows, width), u (rows, width), r (rows), gain (width)")


def price(dx, dy, u, r, gain):
    rows, width = dx.shape
    return 9 * rows * width, 3 * rows * width + rows + width


def reference(dx, dy, u, r, gain):
    du = gain * dy
    dx[:] = r[:, None] * (du - du.mean(1, keepdims=True) - u * (u * du).mean(1, keepdims=True))


def row(dx, dy, u, r, gain):
    """Write dx of one row; all arguments are (width,) except r, a number."""
    width = dx.dtype.type(dx.size)
    mean = along = dx.dtype.type(0)
    for j in range(dx.size):
        mean += gain[j] * dy[j]
        along += u[j] * (gain[j] * dy[j])
    mean /= width
    along /= width
    for j in range(dx.size):
        dx[j] = r * (gain[j] * dy[j] - mean - u[j] * along)


row_cpu, row_gpu = formula(row), cuda.jit(device=True)(row)


@exact
def cpu(dx, dy, u, r, gain):
    check(dx, dy, u, r, gain)
    for i in range(dx.shape[0]):
        row_cpu(dx[i], dy[i], u[i], r[i], gain)


@cuda.jit
def _launch(dx, dy, u, r, gain):
    for i in range(cuda.grid(1), r.size, cuda.gridsize(1)):
        row_gpu(dx[i], dy[i], u[i], r[i], gain)


def gpu(dx, dy, u, r, gain):
    check(dx, dy, u, r, gain)
    _launch[over(r)](dx, dy, u, r, gain)
