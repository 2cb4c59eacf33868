"""Exponential of single precision in plain arithmetic, which the compiler does for eight numbers at once.

    exp(x) = 2^n exp(r),  n = round(x / ln 2),  r = x - n ln 2, |r| <= ln(2) / 2          exp(r) by a polynomial

The C library's is called for one number at a time and takes four times as long. ln 2 is subtracted in two parts, of
which the first has few digits, so that n times it is exact; 2^n is written into the bits of a number's exponent. The
error is below one unit in the last place. In double precision, and on a GPU, it is the library's.
Source: Moshier, Cephes Mathematical Library, expf.c, for the polynomial and the parts of ln 2.
"""

import math

import numpy as np
from numba import types
from numba.extending import overload

LOWEST, HIGHEST = -87.33654, 88.376  # from the least normal number, 2^-126, to where n would be 128: no 2^128 is finite
LN2, REST = 0.693359375, -2.12194440e-4  # their sum is ln 2
C5, C4, C3 = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3
C2, C1, C0 = 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1  # exp(r) = 1 + r + r^2 (C0 + C1 r + ... + C5 r^5)
EXPONENT, BIAS = 23, 127  # where the bits of an exponent begin, and what stands there for 2^0


def exp(x):
    """Return e^x; of a NaN a NaN. In single precision infinity above 2.4e38, and 0 below the least normal number."""
    return math.exp(x)


@overload(exp, inline="always", jit_options={"error_model": "numpy"})
def _compiled(x):
    return _single if x == types.float32 else _double


def _double(x):
    return math.exp(x)


def _single(x):
    kind = np.float32
    n = np.floor(x * kind(1 / math.log(2)) + kind(0.5))
    r = x - n * kind(LN2) - n * kind(REST)
    p = ((((kind(C5) * r + kind(C4)) * r + kind(C3)) * r + kind(C2)) * r + kind(C1)) * r + kind(C0)
    power = np.int32((np.int32(n) + np.int32(BIAS)) << np.int32(EXPONENT)).view(np.float32)
    y = (p * r * r + r + kind(1)) * power
    return kind(0) if x < kind(LOWEST) else kind(np.inf) if x > kind(HIGHEST) else y
