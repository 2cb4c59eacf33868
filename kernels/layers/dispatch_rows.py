"""Dispatch rows: copy each token's row to the places that its experts keep for it.

    out[place[t, c]] = x[t]          for each token t and choice c whose place is not negative

x (n, width), place (n, k) of whole numbers, out (m, width). Each of the m rows of out is the place of one choice, so
the order of the copies does not matter. A choice whose expert is full has place -1, and is left out.
Price: no FLOPs; rows read and written once, and the places.
"""

import numpy as np

from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import THREADS, grid, stream_of
from kernels.shapes import shapes

check = shapes("out (m, width), x (n, width), place (n, k)")


def price(out, x, place):
    (m, width), (n, k) = out.shape, place.shape
    return 0, 2 * m * width + n * k


def reference(out, x, place):
    token, choice = np.nonzero(place >= 0)
    out[place[token, choice]] = x[token]


@exact
def cpu(out, x, place):
    check(out, x, place)
    for t in range(place.shape[0]):
        for c in range(place.shape[1]):
            at = place[t, c]
            if at >= 0:
                for j in range(x.shape[1]):
                    out[at, j] = x[t, j]


@cuda.jit
def _launch(out, x, place):
    (n, width), k = x.shape, place.shape[1]
    for number in range(cuda.grid(1), n * k * width, cuda.gridsize(1)):
        j, c, t = number % width, number // width % k, number // (width * k)
        at = place[t, c]
        if at >= 0:
            out[at, j] = x[t, j]


def gpu(out, x, place):
    check(out, x, place)
    (n, width), k = x.shape, place.shape[1]
    _launch[grid(n * k * width), THREADS, stream_of(x)](out, x, place)
