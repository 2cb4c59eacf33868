"""From block floating point: turn codes with shared exponents into numbers.

    out_i <- codes_i 2^e        e: the exponent of i's block; NaN where there is none

codes (d,) and exponents (blocks,) are int8, as `to_fixed` leaves them; out (d,).
Price: 1 operation per number; its code is read, it is written.
"""

import math

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.compression.to_fixed import NO_NUMBER
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (d), codes (d), exponents (-(-d // block))", "block")


def price(out, codes, exponents, block):
    return len(out), len(out) + (len(codes) + len(exponents)) / out.itemsize


def reference(out, codes, exponents, block):
    units = np.where(exponents == NO_NUMBER, np.nan, 2.0 ** exponents.astype(float))
    out[:] = codes * np.repeat(units, block)[: len(codes)]


@formula
def unit(e, one, no_number):
    return math.ldexp(one, e) if e != NO_NUMBER else no_number


@exact
def cpu(out, codes, exponents, block):
    check(out, codes, exponents, block)
    number, d = out.dtype.type, length(out, codes)
    one, no_number = number(1), number(math.nan)
    for b in range(exponents.size):
        step = number(unit(int(exponents[b]), one, no_number))
        for i in range(b * block, min((b + 1) * block, d)):
            out[i] = number(codes[i]) * step


@cuda.jit
def _launch(out, codes, exponents, block):
    number = out.dtype.type
    one, no_number = number(1), number(math.nan)
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[i] = number(codes[i]) * number(unit(int(exponents[i // block]), one, no_number))


def gpu(out, codes, exponents, block):
    check(out, codes, exponents, block)
    _launch[over(out, codes)](out, codes, exponents, block)
