"""Rows: sparse logistic regression, one row at a time; shared by the kernels of this family.

Rows are compressed (CSR): row i has the numbers values[a:b] at the distinct coordinates index[a:b], with
a, b = indptr[i], indptr[i + 1]. Its target y is 1 or -1, and with the margin m = y x.w

    f_i(w) = log(1 + exp(-m)) + 1/2 sum over v in row i of penalty_v w_v^2          penalty_v = l2 n / n_v

where n_v of the n rows have a number at v. The mean of all f_i has the penalty l2 |w|^2 / 2, and yet a row's gradient
is zero wherever the row is: an update touches only the coordinates at which the row has numbers. No other coordinate of
w is read, so a NaN there has no effect.
Source of the penalty's form: Niu, Recht, Re & Wright, NIPS 2011, section 2.
"""

import math

import numpy as np

from kernels.compiled import WHOLE, exact, formula
from kernels.compiler import intrinsic
from kernels.gpu import cuda


def numbers(rows, indptr) -> int:
    """Return the total number of entries of these rows."""
    return int((indptr[rows + 1] - indptr[rows]).sum())


def entries(i, indptr, index, values) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates of row i and its numbers there; plain NumPy."""
    inside = slice(indptr[i], indptr[i + 1])
    return index[inside], values[inside]


def gradients(w, rows, target, indptr, index, values, penalty) -> tuple[np.ndarray, np.ndarray]:
    """Return (f, g), the losses (rows,) and gradients (rows, d) of these rows at w; plain NumPy."""
    losses, slopes = np.zeros(len(rows), w.dtype), np.zeros((len(rows), len(w)), w.dtype)
    for k, i in enumerate(rows):
        v, x = entries(i, indptr, index, values)
        y, here, ridge = target[i], w[v], penalty[v]
        m = y * (x @ here)
        losses[k] = np.logaddexp(0, -m) + ridge @ (here * here) / 2
        slopes[k, v] = -(y / (1 + np.exp(m))) * x + ridge * here
    return losses, slopes


def _margin(w, i, target, indptr, index, values):
    """Return y x.w of row i."""
    total = w.dtype.type(0)
    for j in range(indptr[i], indptr[i + 1]):
        total += values[j] * w[index[j]]
    return target[i] * total


def _fault(m):
    """Return log(1 + exp(-m)) without overflow."""
    return math.log1p(math.exp(-m)) if m > 0 else math.log1p(math.exp(m)) - m


def _pull(m, y):
    """Return the derivative of log(1 + exp(-m)) with respect to x.w."""
    return -y / (y * y + math.exp(m))  # y y is 1, of y's own type


margin_cpu, margin_gpu = formula(_margin), cuda.jit(device=True)(_margin)
fault_cpu, fault_gpu = formula(_fault), cuda.jit(device=True)(_fault)
pull_cpu, pull_gpu = formula(_pull), cuda.jit(device=True)(_pull)


@formula
def gather(acc, w, i, target, indptr, index, values, penalty):
    """Add the gradient of f_i at w to acc, (d,); return f_i(w)."""
    m = margin_cpu(w, i, target, indptr, index, values)
    c = pull_cpu(m, target[i])
    square = w.dtype.type(0)
    for j in range(indptr[i], indptr[i + 1]):
        v = index[j]
        square += penalty[v] * w[v] * w[v]
        acc[v] += c * values[j] + penalty[v] * w[v]
    return fault_cpu(m) + square * w.dtype.type(0.5)


def _add_gradients(acc, w, rows, *data):
    total = 0.0
    for k in range(len(rows)):
        (loss,), (slope,) = gradients(w, rows[k : k + 1], *data)
        acc += slope
        total += float(loss)
    return total


@exact(plain=_add_gradients)
def add_gradients(acc, w, rows, target, indptr, index, values, penalty):
    """Add the gradients of these rows at w to acc, (d,), row after row; return the sum of f_i(w)."""
    total = 0.0
    for i in rows:
        total += gather(acc, w, i, target, indptr, index, values, penalty)
    return total


@cuda.jit(device=True)
def gather_gpu(acc, w, i, target, indptr, index, values, penalty):
    """Add the gradient of f_i at w to acc, (d,), atomically, since other threads may add to it; return f_i(w)."""
    m = margin_gpu(w, i, target, indptr, index, values)
    c = pull_gpu(m, target[i])
    square = w.dtype.type(0)
    for j in range(indptr[i], indptr[i + 1]):
        v = index[j]
        square += penalty[v] * w[v] * w[v]
        cuda.atomic.add(acc, v, c * values[j] + penalty[v] * w[v])
    return fault_gpu(m) + square * w.dtype.type(0.5)


@intrinsic
def atomic_add(typing, array, i, value):
    """Add `value` to array[i] on a CPU, without losing concurrent additions by other threads or processes."""
    from numba import types
    from numba.core import cgutils
    from numba.core.errors import TypingError
    from numba.np.arrayobj import make_array

    if not isinstance(array.dtype, types.Float):
        raise TypingError(WHOLE)  # LLVM would refuse it with a long message of its own

    def generate(context, builder, signature, args):
        kind = signature.args[0]
        array = make_array(kind)(context, builder, args[0])
        place = cgutils.get_item_pointer(context, builder, kind, array, [args[1]], wraparound=False)
        builder.atomic_rmw("fadd", place, args[2], "monotonic")
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), generate
