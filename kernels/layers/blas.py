"""BLAS: the one product that NumPy lacks, c <- c + x^T z.

np.dot overwrites c with its result, so a sum would take another array for the product and another pass over it.
"""

import numpy as np

from kernels.compiled import STRIDED
from kernels.compiler import overload


def add_product(c, x, z):
    """Add x^T z to c, in place, on a CPU. c (i, o), x (n, i), z (n, o), all contiguous."""
    c += x.T @ z


@overload(add_product)
def _add_product(c, x, z):
    from numba import types
    from numba.np.linalg import ensure_blas, get_blas_kind

    ensure_blas()
    pointer, char, length = types.CPointer(c.dtype), types.char, types.intp
    arguments = char, char, char, length, length, length, pointer, pointer, length, pointer, length, pointer, pointer
    gemm = types.ExternalFunction("numba_xxgemm", types.intc(*arguments, length))  # np.dot calls it with beta = 0
    kind, plain, transposed = ord(get_blas_kind(c.dtype)), ord("n"), ord("t")

    def call(c, x, z):
        if not (c.flags.c_contiguous and x.flags.c_contiguous and z.flags.c_contiguous):
            raise ValueError(STRIDED)
        (n, i), o = x.shape, z.shape[1]
        one = np.ones(1, c.dtype)
        if n and c.size:  # BLAS is column-major: it sees c as (o, i), z as (o, n) and x as (i, n)
            gemm(kind, plain, transposed, o, i, n, one.ctypes, z.ctypes, o, x.ctypes, i, one.ctypes, c.ctypes, o)

    return call
