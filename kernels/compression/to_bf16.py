"""To bfloat16: the upper 16 bits of a float32, rounded to nearest.

    codes_i <- the nearest number with 8 significant bits, ties to the even one        its bits

codes (d,) are uint16; v (d,). Overflow becomes infinite. NaN is handled separately, since the rounding increment could
carry into its exponent and sign.
Price: 5 operations per number; it is read, its code written.
Source: Kalamkar et al., arXiv:1905.12322.
"""

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.compression.magnitude import bits
from kernels.gpu import cuda
from kernels.launch import over


def price(codes, v):
    return 5 * len(v), len(codes) + v.nbytes / codes.itemsize


def reference(codes, v):
    with np.errstate(over="ignore"):
        wide = v.astype(np.float32).astype(np.float64)
    digits = 8 - np.maximum(np.frexp(wide)[1], -125)  # bits of the mantissa before the point of 2^digits v
    with np.errstate(over="ignore"):
        rounded = np.ldexp(np.rint(np.ldexp(wide, digits)), -digits).astype(np.float32)
    codes[:] = rounded.view(np.uint32) >> 16


@formula
def element(word):
    word = int(word) & 0xFFFFFFFF
    if word & 0x7FFFFFFF > 0x7F800000:  # NaN: an exponent of all ones and a non-zero mantissa
        return word >> 16 | 0x40
    return word + 0x7FFF + (word >> 16 & 1) >> 16


@exact
def _cpu(codes, words):
    for i in range(length(codes, words)):
        codes[i] = element(words[i])


def cpu(codes, v):
    with np.errstate(over="ignore"):
        _cpu(codes, bits(v.astype(np.float32, copy=False)))


@cuda.jit
def _launch(codes, words):
    for i in range(cuda.grid(1), codes.size, cuda.gridsize(1)):
        codes[i] = element(words[i])


def gpu(codes, v):
    narrow = v.astype(np.float32) if isinstance(v, np.ndarray) else v.float()
    _launch[over(codes, narrow)](codes, bits(narrow))
