"""From bfloat16: append 16 zero bits, which makes it a float32.

    out_i <- the number whose bits are codes_i, 0

codes (d,) are uint16, as `to_bf16` leaves them; out (d,). Exact.
Price: 1 operation per number; its code is read, it is written.
"""

import numpy as np

from kernels.arrays import empty
from kernels.compiled import exact, formula
from kernels.compression.magnitude import bits
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (d), codes (d)")


def price(out, codes):
    return len(out), len(out) + codes.nbytes / out.itemsize


def reference(out, codes):
    halves = np.stack([np.zeros_like(codes), codes], axis=1)
    out[:] = halves.astype("<u2").reshape(-1).view("<f4")


@formula
def element(code):
    return np.int32(np.uint32(code) << np.uint32(16))


@exact
def _cpu(words, codes):
    for i in range(words.size):
        words[i] = element(codes[i])


@cuda.jit
def _launch(words, codes):
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        words[i] = element(codes[i])


def cpu(out, codes):
    _widened(out, codes, _cpu)


def gpu(out, codes):
    _widened(out, codes, _launch[over(out)])


def _widened(out, codes, write):
    check(out, codes)
    narrow = out if out.itemsize == 4 else empty(len(out), out, "float32")
    write(bits(narrow), codes)
    if narrow is not out:
        out[:] = narrow
