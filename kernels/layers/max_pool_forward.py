"""Max pooling forward: the maximum of each window.

    y[n, c, i, j] = max over u, v < window of x[n, c, window i + u, window j + v]

x (n, c, h, w), y (n, c, h // window, w // window); incomplete windows are left out. NaN propagates.
Price: 1 FLOP and one word per input, one word per output.
"""

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("y (n, c, height // window, width // window), x (n, c, height, width)", "window")


def price(y, x, window):
    outputs = y.shape[0] * y.shape[1] * y.shape[2] * y.shape[3]
    return outputs * window * window, outputs * (window * window + 1)


def reference(y, x, window):
    n, c, height, width = y.shape
    used = x[:, :, : height * window, : width * window]
    y[:] = used.reshape(n, c, height, window, width, window).max((3, 5))


def largest(x, n, c, i, j, window):
    """Return the largest value in window (i, j) of x[n, c]."""
    found = x[n, c, i * window, j * window]
    for u in range(window):
        for v in range(window):
            value = x[n, c, i * window + u, j * window + v]
            if value > found or value != value:
                found = value
    return found


largest_cpu, largest_gpu = formula(largest), cuda.jit(device=True)(largest)


@exact
def cpu(y, x, window):
    check(y, x, window)
    for n in range(y.shape[0]):
        for c in range(y.shape[1]):
            for i in range(y.shape[2]):
                for j in range(y.shape[3]):
                    y[n, c, i, j] = largest_cpu(x, n, c, i, j, window)


@cuda.jit
def _launch(y, x, window):
    _, channels, height, width = y.shape
    for at in range(cuda.grid(1), y.size, cuda.gridsize(1)):
        j, i = at % width, at // width % height
        c, n = at // (width * height) % channels, at // (width * height * channels)
        y[n, c, i, j] = largest_gpu(x, n, c, i, j, window)


def gpu(y, x, window):
    check(y, x, window)
    _launch[over(y)](y, x, window)
