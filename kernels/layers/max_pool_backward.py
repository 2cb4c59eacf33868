"""Max pooling backward: route the gradient to the maximum of each window.

    dx[maximum of each window] = dy[window],  0 elsewhere

x, dx (n, c, h, w), y, dy (n, c, h // window, w // window). Of equal numbers the first, row by row, is the maximum; if
there is a NaN, the first NaN is, as in max_pool_forward.
Price: 1 FLOP and two words per input, two words per output.
"""

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes(
    "dx (n, c, height, width), dy (n, c, height // window, width // window), x (n, c, height, width), "
    "y (n, c, height // window, width // window)",
    "window",
)


def price(dx, dy, x, y, window):
    outputs = y.shape[0] * y.shape[1] * y.shape[2] * y.shape[3]
    return outputs * window * window, outputs * (2 * window * window + 2)


def reference(dx, dy, x, y, window):
    n, c, height, width = y.shape
    tiles = x[:, :, : height * window, : width * window].reshape(n, c, height, window, width, window)
    won = np.zeros((n, c, height, width, window * window), x.dtype)
    first = tiles.transpose(0, 1, 2, 4, 3, 5).reshape(won.shape).argmax(-1)
    np.put_along_axis(won, first[..., None], dy[..., None], -1)
    back = won.reshape(n, c, height, width, window, window).transpose(0, 1, 2, 4, 3, 5)
    dx[:] = 0
    dx[:, :, : height * window, : width * window] = back.reshape(n, c, height * window, width * window)


def spread(dx, dy, x, y, n, c, i, j, window):
    """Pass dy of window (i, j) to the first number of x that equals y or is NaN."""
    waiting = True
    for u in range(window):
        for v in range(window):
            a, b = i * window + u, j * window + v
            if waiting and (x[n, c, a, b] == y[n, c, i, j] or x[n, c, a, b] != x[n, c, a, b]):
                dx[n, c, a, b] = dy[n, c, i, j]
                waiting = False
            else:
                dx[n, c, a, b] = 0.0


spread_cpu, spread_gpu = formula(spread), cuda.jit(device=True)(spread)


@exact
def cpu(dx, dy, x, y, window):
    check(dx, dy, x, y, window)
    dx[:] = 0
    for n in range(y.shape[0]):
        for c in range(y.shape[1]):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    spread_cpu(dx, dy, x, y, n, c, i, j, window)


@cuda.jit
def _launch(dx, dy, x, y, window):
    _, channels, height, width = y.shape
    for at in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        j, i = at % width, at // width % height
        c, n = at // (width * height) % channels, at // (width * height * channels)
        spread_gpu(dx, dy, x, y, n, c, i, j, window)


@cuda.jit
def _clear_rest(dx, height, width):
    _, channels, rows, columns = dx.shape
    for at in range(cuda.grid(1), dx.size, cuda.gridsize(1)):
        j, i = at % columns, at // columns % rows
        if i >= height or j >= width:  # the edges that do not fill a window
            dx[at // (columns * rows * channels), at // (columns * rows) % channels, i, j] = 0.0


def gpu(dx, dy, x, y, window):
    check(dx, dy, x, y, window)
    _clear_rest[over(dx)](dx, y.shape[2] * window, y.shape[3] * window)
    _launch[over(y)](dx, dy, x, y, window)
