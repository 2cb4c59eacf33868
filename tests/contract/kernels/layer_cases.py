"""Arguments of the layer kernels for a size n: mostly the number of samples, kept small where the simulator is slow."""

from __future__ import annotations

import numpy as np


def normal(rng: np.random.Generator, dtype: type, *shapes: tuple) -> tuple:
    return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)


def _samples(n: int) -> int:
    return min(n, 17)  # more than a tile of the GPU's product


def dense_forward(relu: bool):
    return lambda rng, n, dtype: (*normal(rng, dtype, (_samples(n), 5), (_samples(n), 17), (17, 5), (5,)), relu)


def dense_backward_input(rng, n, dtype):
    return normal(rng, dtype, (_samples(n), 17), (_samples(n), 5), (17, 5))


def dense_backward_weights(add: bool):
    return lambda rng, n, dtype: (*normal(rng, dtype, (17, 5), (5,), (_samples(n), 17), (_samples(n), 5)), add)


def tables(count: int, *scalars: float):
    """Arguments of an elementwise layer kernel: `count` tables of n samples, then scalars."""
    return lambda rng, n, dtype: (*normal(rng, dtype, *[(n, 3)] * count), *scalars)


def conv2d_forward(rng, n, dtype):
    n = min(n, 3)
    return (*normal(rng, dtype, (n, 4, 5, 6), (n, 2, 5, 6), (4, 2, 3, 3), (4,)), True)


def conv2d_backward_input(rng, n, dtype):
    n = min(n, 3)
    return normal(rng, dtype, (n, 2, 5, 6), (n, 4, 5, 6), (4, 2, 3, 3))


def conv2d_backward_weights(rng, n, dtype):
    n = min(n, 3)
    filters, k = (3, 1) if n < 2 else (2, 3)  # not as many as channels; each weight takes a block of 256 threads
    return normal(rng, dtype, (filters, 2, k, k), (filters,), (n, 2, 5, 6), (n, filters, 5, 6))


def max_pool_forward(rng, n, dtype):
    return (*normal(rng, dtype, (min(n, 5), 2, 2, 3), (min(n, 5), 2, 5, 6)), 2)


def max_pool_backward(rng, n, dtype):
    dx, dy = normal(rng, dtype, (min(n, 5), 2, 5, 6), (min(n, 5), 2, 2, 3))
    x = np.maximum(rng.integers(-3, 3, dx.shape), 0).astype(dtype)  # many ties, as after a ReLU
    y = np.maximum.reduce([x[:, :, u:4:2, v::2] for u in (0, 1) for v in (0, 1)])
    return dx, dy, x, y, 2


def batch_norm_forward(relu: bool):
    def arguments(rng, n, dtype):
        n = min(max(n, 1), 65)  # the mean of no samples is not a number
        y, x, *channels = normal(rng, dtype, (n, 2, 3, 4), (n, 2, 3, 4), (2,), (2,), (2,), (2,))
        mean, variance, gain, bias = channels
        return y, mean, variance, 2 * x + 5, gain, bias, 1e-5, relu

    return arguments


def batch_norm_apply(rng, n, dtype):
    y, mean, variance, x, *others = batch_norm_forward(relu=True)(rng, n, dtype)
    return y, x, mean, variance**2 + 1, *others


def batch_norm_backward_weights(rng, n, dtype):
    dgain, dbias, dy, x, mean, variance = normal(rng, dtype, (2,), (2,), *[(min(n, 65), 2, 3, 4)] * 2, (2,), (2,))
    return dgain, dbias, dy + x + 1, x, mean, variance**2 + 1, 1e-5  # sums that do not cancel


def batch_norm_backward_input(rng, n, dtype):
    dx, dy, x, mean, variance, *weights = normal(rng, dtype, *[(min(n, 65), 2, 3, 4)] * 3, *[(2,)] * 5)
    return dx, dy, x, mean, variance**2 + 1, *weights, 1e-5


def softmax_cross_entropy(rng, n, dtype):
    return (*normal(rng, dtype, (n, 5), (n, 5)), rng.integers(0, 5, n))


def squared_error(rng, n, dtype):
    return normal(rng, dtype, *[(n, 3)] * 3)


def quadratic(rng, n, dtype):
    g, w, points, curvature = normal(rng, dtype, (n,), (n,), (7, n), (n,))
    return g, w, points, curvature**2


LAYERS = {
    "dense_forward": dense_forward(relu=True),
    "dense_backward_input": dense_backward_input,
    "dense_backward_weights": dense_backward_weights(add=True),
    "relu_backward": tables(3),
    "tanh_forward": tables(2),
    "tanh_backward": tables(3),
    "residual_add": tables(3, 0.3),
    "conv2d_forward": conv2d_forward,
    "conv2d_backward_input": conv2d_backward_input,
    "conv2d_backward_weights": conv2d_backward_weights,
    "max_pool_forward": max_pool_forward,
    "max_pool_backward": max_pool_backward,
    "batch_norm_forward": batch_norm_forward(relu=True),
    "batch_norm_apply": batch_norm_apply,
    "batch_norm_backward_weights": batch_norm_backward_weights,
    "batch_norm_backward_input": batch_norm_backward_input,
    "softmax_cross_entropy": softmax_cross_entropy,
    "squared_error": squared_error,
    "quadratic": quadratic,
}
