"""Mean of several vectors.

    out <- (rows[0] + rows[1] + ... ) / n

Rows are added one after the other, so the result depends on their order in the last bit and on nothing else: the same
rows give the same mean on one processor or many.

Price: n FLOPs per column (n - 1 additions and a division), n + 1 words.
"""

from kernels.compiled import exact, length
from kernels.gpu import cuda
from kernels.launch import over


def price(out, rows):
    n, d = rows.shape
    return n * d, (n + 1) * d


def reference(out, rows):  # (d,), (n, d) with n at least 1
    out[:] = sum(rows) / len(rows)


@exact
def cpu(out, rows):
    n, d = len(rows), length(out, rows[0])
    for j in range(d):
        out[j] = rows[0, j]
    for i in range(1, n):
        for j in range(d):
            out[j] += rows[i, j]
    for j in range(d):
        out[j] /= out.dtype.type(n)


@cuda.jit
def _launch(out, rows):
    n, d = rows.shape
    for j in range(cuda.grid(1), d, cuda.gridsize(1)):
        total = rows[0, j]
        for i in range(1, n):
            total += rows[i, j]
        out[j] = total / out.dtype.type(n)


def gpu(out, rows):
    _launch[over(out, rows[0])](out, rows)
