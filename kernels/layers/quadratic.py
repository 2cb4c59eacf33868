"""Quadratic: loss and gradient of a convex quadratic at a mini-batch of points.

    f(w) = mean over samples of 1/2 sum_i h_i (w_i - p_i)^2          g = h (w - mean of p)

w, g, curvature h (d,), points p (n, d): each sample has its own minimum, which is the gradient noise.
Price: 6 FLOPs and one word per number of p; w, h and g once.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("g (d), w (d), points (n, d), curvature (d)")


def price(g, w, points, curvature):
    n, d = points.shape
    return 6 * n * d, n * d + 3 * d


def reference(g, w, points, curvature):
    g[:] = curvature * (w - points.mean(0))
    return float((curvature * np.square(w - points)).sum()) / (2 * len(points))


def coordinate(g, w, points, curvature, i):
    """Write g[i]; return this coordinate's part of the loss."""
    n = w.dtype.type(points.shape[0])
    total = squares = w.dtype.type(0)
    for j in range(points.shape[0]):
        total += points[j, i]
        squares += (w[i] - points[j, i]) * (w[i] - points[j, i])
    g[i] = curvature[i] * (w[i] - total / n)
    return curvature[i] * (squares / n) * w.dtype.type(0.5)


coordinate_cpu, coordinate_gpu = formula(coordinate), cuda.jit(device=True)(coordinate)


@exact
def cpu(g, w, points, curvature):
    check(g, w, points, curvature)
    loss = 0.0
    for i in range(w.size):
        loss += coordinate_cpu(g, w, points, curvature, i)
    return loss


@cuda.jit
def _launch(losses, g, w, points, curvature):
    for i in range(cuda.grid(1), w.size, cuda.gridsize(1)):
        losses[i] = coordinate_gpu(g, w, points, curvature, i)


def gpu(g, w, points, curvature):
    check(g, w, points, curvature)
    losses = empty(w.shape[0], g)
    _launch[over(losses)](losses, g, w, points, curvature)
    return float(losses.sum())
