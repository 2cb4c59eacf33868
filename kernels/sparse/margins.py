"""Margins: y x.w of each row at the model w, positive if the row is classified correctly.

    out_k <- y x.w of row rows_k

out (k,); rows (k,), row numbers; w (d,); the rows are those of `kernels/sparse/rows.py`.
Price: 2 FLOPs and 3 words for each number of these rows.
"""

from kernels.compiled import exact, length
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes
from kernels.sparse.rows import entries, margin_cpu, margin_gpu, numbers

check = shapes("out (k), w (d), rows (k), target (n), indptr (n + 1), index (size), values (size)")


def price(out, w, rows, target, indptr, index, values):
    count = numbers(rows, indptr)
    return 2 * count, 3 * count + 4 * len(rows)


def reference(out, w, rows, target, indptr, index, values):
    for k, i in enumerate(rows):
        v, x = entries(i, indptr, index, values)
        out[k] = target[i] * (x @ w[v])


@exact
def cpu(out, w, rows, target, indptr, index, values):
    check(out, w, rows, target, indptr, index, values)
    for k in range(length(out, rows)):
        out[k] = margin_cpu(w, rows[k], target, indptr, index, values)


@cuda.jit
def _launch(out, w, rows, target, indptr, index, values):
    for k in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        out[k] = margin_gpu(w, rows[k], target, indptr, index, values)


def gpu(out, w, rows, target, indptr, index, values):
    check(out, w, rows, target, indptr, index, values)
    _launch[over(out, rows)](out, w, rows, target, indptr, index, values)
