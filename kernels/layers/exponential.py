"""Exponential and tanh in plain arithmetic, which the compiler vectorises: eight single-precision numbers at once.

    exp(x) = 2^n exp(r),  n = round(x / ln 2),  r = x - n ln 2, |r| <= ln(2) / 2          exp(r) by a polynomial
    tanh(x) = 1 - 2 / (exp(2 x) + 1)                             below 0.625, where that cancels, by a polynomial

The C library's functions take one number at a time: exp takes four times as long, tanh fifteen times. ln 2 is
subtracted in two parts, of which the first has few digits, so that n times it is exact; 2^n is written into the bits of
a number's exponent. The error is below one unit in the last place, of tanh below one and a half. In double precision
and on a GPU both are the library's.
Source: Moshier, Cephes Mathematical Library, expf.c and tanhf.c, for the polynomials and the parts of ln 2.
"""

import math

import numpy as np

from kernels.compiler import overload

LOWEST, HIGHEST = -87.33654, 88.376  # from the least normal number, 2^-126, to where n would be 128: no 2^128 is finite
LN2, REST = 0.693359375, -2.12194440e-4  # their sum is ln 2
C5, C4, C3 = 1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3
C2, C1, C0 = 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1  # exp(r) = 1 + r + r^2 (C0 + C1 r + ... + C5 r^5)
SMALL = 0.625  # up to it tanh(x) = x + x^3 (T0 + T1 x^2 + ... + T4 x^8)
T4, T3, T2 = -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2
T1, T0 = 1.33314422036e-1, -3.33332819422e-1
EXPONENT, BIAS = 23, 127  # where the bits of an exponent begin, and what is stored there for 2^0


def exp(x):
    """Return e^x, NaN for NaN. In single precision, infinity if e^x is above 2.4e38, and 0 if it is subnormal."""
    return math.exp(x)


def tanh(x):
    """Return the hyperbolic tangent of x, NaN for NaN."""
    return math.tanh(x)


@overload(exp, inline="always", jit_options={"error_model": "numpy"})
def _exp(x):
    from numba import types

    return _single_exp if x == types.float32 else _double_exp


@overload(tanh, inline="always", jit_options={"error_model": "numpy"})
def _tanh(x):
    from numba import types

    return _single_tanh if x == types.float32 else _double_tanh


def _double_exp(x):
    return math.exp(x)


def _double_tanh(x):
    return math.tanh(x)


def _single_exp(x):
    kind = np.float32
    n = np.floor(x * kind(1 / math.log(2)) + kind(0.5))
    r = x - n * kind(LN2) - n * kind(REST)
    p = ((((kind(C5) * r + kind(C4)) * r + kind(C3)) * r + kind(C2)) * r + kind(C1)) * r + kind(C0)
    power = np.int32((np.int32(n) + np.int32(BIAS)) << np.int32(EXPONENT)).view(np.float32)
    y = (p * r * r + r + kind(1)) * power
    return kind(0) if x < kind(LOWEST) else kind(np.inf) if x > kind(HIGHEST) else y


def _single_tanh(x):
    kind = np.float32
    s = x * x
    small = ((((kind(T4) * s + kind(T3)) * s + kind(T2)) * s + kind(T1)) * s + kind(T0)) * s * x + x
    large = kind(1) - kind(2) / (exp(abs(x) * kind(2)) + kind(1))
    return small if abs(x) < kind(SMALL) else -large if x < kind(0) else large
