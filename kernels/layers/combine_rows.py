"""Combine rows: add to each token's row the weighted rows that its experts return.

    y[t] = x[t] + sum over the choices c of weight[t, c] rows[place[t, c]]

A choice whose place is negative adds nothing. x and y (n, width), rows (m, width), place and weight (n, k). Each token
reads its own rows, so the order of the sum is fixed; y may be x. With weights of 1 this is also the backward pass of
`dispatch_rows`.
Price: 2 FLOPs per number of rows; every array once.
"""

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("y (n, width), x (n, width), rows (m, width), place (n, k), weight (n, k)")


def price(y, x, rows, place, weight):
    (n, width), m, k = y.shape, rows.shape[0], place.shape[1]
    return 2 * m * width, (2 * n + m) * width + 2 * n * k


def reference(y, x, rows, place, weight):
    y[:] = x
    for c in range(place.shape[1]):
        here = place[:, c] >= 0
        y[here] += weight[here, c, None] * rows[place[here, c]]


def element(x, rows, place, weight, j):
    """Return element j of a token's new row, given x, element j of its old row. place and weight have shape (k,)."""
    total = x
    for c in range(place.size):
        if place[c] >= 0:
            total += weight[c] * rows[place[c], j]
    return total


element_cpu, element_gpu = formula(element), cuda.jit(device=True)(element)


@exact
def cpu(y, x, rows, place, weight):
    check(y, x, rows, place, weight)
    for t in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[t, j] = element_cpu(x[t, j], rows, place[t], weight[t], j)


@cuda.jit
def _launch(y, x, rows, place, weight):
    width = y.shape[1]
    for number in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        t, j = number // width, number % width
        y[t, j] = element_gpu(x[t, j], rows, place[t], weight[t], j)


def gpu(y, x, rows, place, weight):
    check(y, x, rows, place, weight)
    _launch[over(y, x)](y, x, rows, place, weight)
