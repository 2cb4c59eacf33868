"""Hogwild: SGD over rows in shared memory; other threads may overwrite its updates.

    for every `examples` rows:    acc <- sum of the gradients of f_i at w          w_v <- w_v - rate acc_v

v runs over the coordinates of these rows; no others are read or written. w (d,) may be the same memory for
several threads or processes; acc (d,) is this thread's own, all 0 before and after; rows (k,), the rest as in
`kernels/sparse/rows.py`. Returns the sum of f_i, each at the w it was computed at. With `atomic` no concurrent
addition is lost; without, one of two may be.

On the CPU this is one thread, which does not hold the interpreter lock. On a GPU, threads process groups concurrently
and share acc: one thread may apply what another has added.

Price: 10 FLOPs and 7 words for each number of these rows.
Source: Niu, Recht, Re & Wright, NIPS 2011; with several examples per write: Sallinen et al., IPDPS 2016.
"""

from kernels.arrays import empty
from kernels.compiled import exact
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes
from kernels.sparse.rows import atomic_add, fault_cpu, gather, gather_gpu, gradients, margin_cpu, numbers, pull_cpu

check = shapes(
    "w (d), acc (>= d * (examples > 1)), target (n), indptr (n + 1), index (size), values (size), penalty (d)",
    "examples",
)


def price(w, acc, rows, target, indptr, index, values, penalty, rate, examples, atomic):
    count = numbers(rows, indptr)
    return 10 * count + 40 * len(rows), 7 * count + 4 * len(rows)


def reference(w, acc, rows, target, indptr, index, values, penalty, rate, examples, atomic):
    total = 0.0
    for first in range(0, len(rows), examples):
        losses, slopes = gradients(w, rows[first : first + examples], target, indptr, index, values, penalty)
        w -= w.dtype.type(rate) * slopes.sum(0)
        total += float(losses.sum())
    return total


@exact
def cpu(w, acc, rows, target, indptr, index, values, penalty, rate, examples, atomic):
    check(w, acc, target, indptr, index, values, penalty, examples)
    rate = w.dtype.type(rate)
    total = 0.0
    if examples == 1:  # nothing to add up
        for i in rows:
            m = margin_cpu(w, i, target, indptr, index, values)
            c = pull_cpu(m, target[i])
            square = w.dtype.type(0)
            for j in range(indptr[i], indptr[i + 1]):
                v = index[j]
                square += penalty[v] * w[v] * w[v]
                g = c * values[j] + penalty[v] * w[v]
                if atomic:
                    atomic_add(w, v, -(rate * g))
                else:
                    w[v] -= rate * g
            total += fault_cpu(m) + square * w.dtype.type(0.5)
        return total
    for first in range(0, rows.size, examples):
        some = rows[first : first + examples]
        for i in some:
            total += gather(acc, w, i, target, indptr, index, values, penalty)
        for i in some:
            for j in range(indptr[i], indptr[i + 1]):
                v = index[j]
                g = acc[v]
                if g != 0:  # no other row of the batch has touched this coordinate
                    acc[v] = 0
                    if atomic:
                        atomic_add(w, v, -(rate * g))
                    else:
                        w[v] -= rate * g
    return total


@cuda.jit
def _launch(losses, w, acc, rows, target, indptr, index, values, penalty, rate, examples, atomic):
    rate = w.dtype.type(rate)
    for group in range(cuda.grid(1), losses.size, cuda.gridsize(1)):
        first, last = group * examples, (group + 1) * examples
        if last > rows.size:
            last = rows.size
        losses[group] = 0
        for k in range(first, last):
            losses[group] += gather_gpu(acc, w, rows[k], target, indptr, index, values, penalty)
        for k in range(first, last):
            i = rows[k]
            for j in range(indptr[i], indptr[i + 1]):
                v = index[j]
                g = acc[v]
                if g != 0:
                    if g - g == 0:
                        cuda.atomic.add(acc, v, -g)
                    else:  # anything added to NaN or infinity is lost anyway
                        acc[v] = 0
                    if atomic:
                        cuda.atomic.add(w, v, -(rate * g))
                    else:
                        w[v] -= rate * g


def gpu(w, acc, rows, target, indptr, index, values, penalty, rate, examples, atomic):
    check(w, acc, target, indptr, index, values, penalty, 2)  # threads share acc, also for single examples
    losses = empty(-(-len(rows) // examples), w)
    _launch[over(losses)](losses, w, acc, rows, target, indptr, index, values, penalty, rate, examples, atomic)
    return float(losses.sum())
