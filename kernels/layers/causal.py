"""Causal products: products with a matrix that is 0 above the diagonal, so that no position sees later ones.

    earlier      y[i] = sum over j <= i of a[i, j] x[j]          what i takes from the positions that it sees
    later        y[j] = sum over i >= j of a[i, j] x[i]          what j gets back from the positions that see it
    from_seen    y[i] = sum over j < seen[i] of a[i, j] x[j]     the same for a block of other positions, a (time, keys)
    to_seen      y[j] = sum over i of a[i, j] x[i], where j < seen[i]

a (time, time), x and y (time, d). BLAS multiplies the zeros, too, and is faster than a loop that leaves them out. But 0
times NaN is NaN: where x has a number that is not finite, the loop keeps it from those that do not see it.
"""

import numpy as np

from kernels.compiled import exact


def earlier(a, x):
    """Return the products a x of all samples and heads; x (n, heads, time, d); plain NumPy."""
    return np.concatenate([a[:, :, i : i + 1, : i + 1] @ x[:, :, : i + 1] for i in range(a.shape[2])], axis=2)


def later(a, x):
    """Return the products a^T x of all samples and heads; x (n, heads, time, d); plain NumPy."""
    a = a.swapaxes(2, 3)
    return np.concatenate([a[:, :, j : j + 1, j:] @ x[:, :, j:] for j in range(a.shape[2])], axis=2)


@exact
def _is_finite(x):
    odd = False
    for value in x.ravel():
        odd |= value - value != 0
    return not odd


@exact
def _from_seen(a, x, seen):
    y = np.zeros((a.shape[0], x.shape[1]), x.dtype)
    for i in range(a.shape[0]):
        for j in range(seen[i]):
            for column in range(x.shape[1]):
                y[i, column] += a[i, j] * x[j, column]
    return y


@exact
def _to_seen(a, x, seen):
    y = np.zeros((a.shape[1], x.shape[1]), x.dtype)
    for i in range(a.shape[0]):
        for j in range(seen[i]):
            for column in range(x.shape[1]):
                y[j, column] += a[i, j] * x[i, column]
    return y


@exact
def from_seen(a, x, seen):
    if _is_finite(x):
        return np.dot(a, x)
    return _from_seen(a, x, seen)


@exact
def to_seen(a, x, seen):
    if _is_finite(x):
        return np.dot(a.T, x)
    return _to_seen(a, x, seen)


@exact
def earlier_cpu(a, x):
    if _is_finite(x):
        return np.dot(a, x)
    return _from_seen(a, x, np.arange(1, a.shape[0] + 1))


@exact
def later_cpu(a, x):
    if _is_finite(x):
        return np.dot(a.T, x)
    return _to_seen(a, x, np.arange(1, a.shape[0] + 1))
