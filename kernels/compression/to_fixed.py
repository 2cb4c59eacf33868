"""To block floating point: each block of numbers shares one exponent, and each number keeps a sign and seven bits.

    e <- the least with max |v_i| <= 127 * 2^e        codes_i <- v_i / 2^e, rounded        over each block

codes (d,) and exponents (blocks,) are int8, v (d,) is cut into blocks of `block`, the last one possibly shorter.
Numbers that are multiples of 2^e are exact. e is at least -126, so tiny numbers become 0. A block whose largest number
is not finite, or beyond float32, has the exponent NO_NUMBER.

Price: 4 operations per number, which is read twice; its code is written.
Source: the dynamic fixed point of MLSL, Sridharan et al., arXiv:1801.08030.
"""

import math

import numpy as np

from kernels.compiled import exact, formula
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("codes (d), exponents (-(-d // block)), v (d)", "block")

NO_NUMBER = 127
LEAST, MOST = -126, 122  # 127 * 2^122 is just beyond the largest float32


def price(codes, exponents, v, block):
    return 4 * len(v), len(codes) + len(exponents) + 2 * v.nbytes  # words of the first argument: bytes


def reference(codes, exponents, v, block):
    for b in range(len(exponents)):
        part = slice(b * block, (b + 1) * block)
        largest = float(np.abs(v[part]).max())
        if not largest <= 127 * 2.0**MOST:
            exponents[b], codes[part] = NO_NUMBER, 0
            continue
        exponents[b] = e = next(e for e in range(LEAST, MOST + 1) if largest <= 127 * 2.0**e)
        scaled = v[part] * v.dtype.type(2.0**-e)
        codes[part] = np.trunc(scaled + np.copysign(v.dtype.type(0.5), scaled))


def one_block(codes, exponents, v, block, b):
    number = v.dtype.type
    v, codes = v[b * block : (b + 1) * block], codes[b * block : (b + 1) * block]
    largest = number(0)
    for i in range(v.size):
        size = abs(v[i])
        if size > largest or size != size:
            largest = size
    if not largest / number(127) <= number(2.0**MOST):
        exponents[b] = NO_NUMBER
        for i in range(v.size):
            codes[i] = 0
        return
    half = number(0.5)
    fraction, e = math.frexp(largest / number(127))  # largest = 127 fraction 2^e
    if fraction == half:
        e -= 1
    e = LEAST if e < LEAST or largest == number(0) else e
    exponents[b] = e
    factor = number(math.ldexp(number(1), -e))
    for i in range(v.size):
        scaled = v[i] * factor
        codes[i] = int(scaled + math.copysign(half, scaled))


one_block_cpu, one_block_gpu = formula(one_block), cuda.jit(device=True)(one_block)


@exact
def cpu(codes, exponents, v, block):
    check(codes, exponents, v, block)
    for b in range(exponents.size):
        one_block_cpu(codes, exponents, v, block, b)


@cuda.jit
def _launch(codes, exponents, v, block):
    for b in range(cuda.grid(1), exponents.size, cuda.gridsize(1)):
        one_block_gpu(codes, exponents, v, block, b)


def gpu(codes, exponents, v, block):
    check(codes, exponents, v, block)
    _launch[over(exponents)](codes, exponents, v, block)
