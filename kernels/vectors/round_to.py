"""Round to a shorter floating-point format: what storing numbers in 16 bits does to them.

    out_i <- the number nearest to v_i with `digits` significant bits, ties to the even one          key < 0
    out_i <- one of v_i's two neighbours, the upper one with probability (v_i - lower) / (upper - lower)     key >= 0

The smallest normal number is 2^lowest; below it the spacing stays the same (subnormals), and 2^(2 - lowest) and above
become infinite, as in every IEEE format. (8, -126) is bfloat16 and (11, -14) is float16. out may be v. The second form
is stochastic rounding, which is unbiased; the random number of i is a hash of `key` and i, the same on every machine.

Price: 5 operations per number; it is read in 32 bits and written in 16, or the other way around.
Source: Gupta et al., arXiv:1502.02551 (stochastic rounding); the hash is that of `stochastic_quantize`.
"""

import numpy as np

from kernels.compiled import exact, formula, length
from kernels.compression.magnitude import bits
from kernels.compression.stochastic_quantize import _dice, dice
from kernels.gpu import cuda
from kernels.launch import over
from kernels.shapes import shapes

check = shapes("out (d), v (d)", "digits", "lowest", "key")


def price(out, v, digits, lowest, key):
    return 5 * len(v), (v.nbytes + 2 * len(v)) / out.itemsize


def reference(out, v, digits, lowest, key):
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        wide = v.astype(np.float32).astype(np.float64)
        last = np.maximum(np.frexp(wide)[1], lowest + 1) - digits  # exponent of the last digit that is kept
        steps = np.ldexp(np.abs(wide), -last)
        if key < 0:
            steps = np.rint(steps)
        else:
            throws = _dice(np.uint64(key), np.arange(len(v), dtype=np.uint64))
            steps = np.floor(steps + throws * 2.0**-24)
        short = np.ldexp(steps, last)
        short[short >= 2.0 ** (2 - lowest)] = np.inf
        out[:] = np.copysign(short, wide)


@formula
def element(word, digits, lowest, throw):
    """Return the bits of the rounded number. `throw` holds 24 random bits; if it is negative, round to nearest."""
    word = int(word)
    size = word & 0x7FFFFFFF
    if size > 0x7F800000:
        return word  # NaN
    exponent = max(size >> 23, 1)
    drop = 24 - digits + max(0, lowest + 127 - exponent)
    if drop < 24:
        extra = throw >> (24 - drop) if throw >= 0 else (1 << (drop - 1)) - 1 + (size >> drop & 1)
        short = size + extra >> drop << drop
    else:  # between 0 and the least subnormal number
        whole = size & 0x7FFFFF | (0x800000 if size >= 0x800000 else 0)
        drop = min(drop, 60)
        up = throw + (whole >> (drop - 24)) >= 1 << 24 if throw >= 0 else whole > 1 << (drop - 1)
        short = lowest - digits + 128 << 23 if up else 0
    if short >= 129 - lowest << 23:
        short = 0x7F800000
    return short if word >= 0 else short - (1 << 31)


@exact
def _cpu(out, words, digits, lowest, key):
    random, seed = key >= 0, np.uint64(max(key, 0))
    for i in range(length(out, words)):
        throw = np.int64(dice(seed, np.uint64(i))) if random else np.int64(-1)
        out[i] = element(words[i], digits, lowest, throw)


@np.errstate(over="ignore", under="ignore", invalid="ignore")
def cpu(out, v, digits, lowest, key):
    check(out, v, digits, lowest, key)
    short = out if out.itemsize == 4 else np.empty(out.shape, np.float32)
    _cpu(bits(short), bits(v.astype(np.float32, copy=False)), digits, lowest, key)
    if short is not out:
        out[:] = short


@cuda.jit
def _launch(out, words, digits, lowest, key):
    random, seed = key >= 0, np.uint64(max(key, 0))
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        throw = np.int64(dice(seed, np.uint64(i))) if random else np.int64(-1)
        out[i] = element(words[i], digits, lowest, throw)


def gpu(out, v, digits, lowest, key):
    check(out, v, digits, lowest, key)
    grid = over(out, v)
    narrow = v.astype(np.float32) if isinstance(v, np.ndarray) else v.float()
    short = out if out.itemsize == 4 else narrow
    _launch[grid](bits(short), bits(narrow), digits, lowest, key)
    if short is not out:
        out[:] = short
