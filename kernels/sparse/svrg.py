"""SVRG: variance-reduced steps over rows in shared memory; other threads may overwrite its updates.

    for every row i:    u <- u - rate (f_i'(u) - f_i'(a) + G)

a is the anchor and G the gradient of the mean of all f_i at a: row i's deviation from G at a is about
its deviation at u. u may be shared memory, acc (d,) is this thread's own, all 0 before and after; a, G (d,), the rest
as in `kernels/sparse/hogwild.py`. G is dense, so every row costs a pass over all of u. Returns the sum of f_i(u).

On a GPU one block of threads works on one row after the other; all its threads share the pass along u.

Price: 20 FLOPs and 13 words for each number of these rows, 3 FLOPs and 5 words for each coordinate and row.
Source: Johnson & Zhang, NIPS 2013; without locks: Zhao & Li, AAAI 2016.
"""

from kernels.arrays import empty
from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import THREADS, stream_of
from kernels.shapes import shapes
from kernels.sparse.rows import (
    atomic_add,
    fault_cpu,
    fault_gpu,
    gradients,
    margin_cpu,
    margin_gpu,
    numbers,
    pull_cpu,
    pull_gpu,
)

check = shapes(
    "u (d), acc (d), target (n), indptr (n + 1), index (size), values (size), penalty (d), anchor (d), slope (d)"
)


def price(u, acc, rows, target, indptr, index, values, penalty, anchor, slope, rate, atomic):
    count = numbers(rows, indptr)
    return 20 * count + 3 * len(rows) * len(u), 13 * count + 5 * len(rows) * len(u)


def reference(u, acc, rows, target, indptr, index, values, penalty, anchor, slope, rate, atomic):
    total = 0.0
    for k in range(len(rows)):
        (loss,), (here,) = gradients(u, rows[k : k + 1], target, indptr, index, values, penalty)
        _, (there,) = gradients(anchor, rows[k : k + 1], target, indptr, index, values, penalty)
        u -= u.dtype.type(rate) * ((here - there) + slope)
        total += float(loss)
    return total


@exact
def cpu(u, acc, rows, target, indptr, index, values, penalty, anchor, slope, rate, atomic):
    check(u, acc, target, indptr, index, values, penalty, anchor, slope)
    rate = u.dtype.type(rate)
    total = 0.0
    for i in rows:
        m = margin_cpu(u, i, target, indptr, index, values)
        here = pull_cpu(m, target[i])
        there = pull_cpu(margin_cpu(anchor, i, target, indptr, index, values), target[i])
        square = u.dtype.type(0)
        for j in range(indptr[i], indptr[i + 1]):
            v = index[j]
            square += penalty[v] * u[v] * u[v]
            acc[v] = (here * values[j] + penalty[v] * u[v]) - (there * values[j] + penalty[v] * anchor[v])
        if atomic:
            for v in range(u.size):
                atomic_add(u, v, -(rate * (acc[v] + slope[v])))
        else:
            for v in range(u.size):
                u[v] -= rate * (acc[v] + slope[v])
        for j in range(indptr[i], indptr[i + 1]):
            acc[index[j]] = 0
        total += fault_cpu(m) + square * u.dtype.type(0.5)
    return total


@cuda.jit
def _launch(losses, u, acc, rows, target, indptr, index, values, penalty, anchor, slope, rate):
    rate = u.dtype.type(rate)
    for k in range(rows.size):
        i = rows[k]
        m = margin_gpu(u, i, target, indptr, index, values)
        here = pull_gpu(m, target[i])
        there = pull_gpu(margin_gpu(anchor, i, target, indptr, index, values), target[i])
        for j in range(indptr[i] + cuda.threadIdx.x, indptr[i + 1], cuda.blockDim.x):
            v = index[j]
            acc[v] = (here * values[j] + penalty[v] * u[v]) - (there * values[j] + penalty[v] * anchor[v])
        if cuda.threadIdx.x == 0:
            square = u.dtype.type(0)
            for j in range(indptr[i], indptr[i + 1]):
                square += penalty[index[j]] * u[index[j]] * u[index[j]]
            losses[k] = fault_gpu(m) + square * u.dtype.type(0.5)
        cuda.syncthreads()  # all threads have read u, and acc is complete
        for v in range(cuda.threadIdx.x, u.size, cuda.blockDim.x):
            u[v] -= rate * (acc[v] + slope[v])
            acc[v] = 0
        cuda.syncthreads()


def gpu(u, acc, rows, target, indptr, index, values, penalty, anchor, slope, rate, atomic):
    check(u, acc, target, indptr, index, values, penalty, anchor, slope)
    losses = empty(len(rows), u)
    _launch[1, THREADS, stream_of(u)](losses, u, acc, rows, target, indptr, index, values, penalty, anchor, slope, rate)
    return float(losses.sum())
