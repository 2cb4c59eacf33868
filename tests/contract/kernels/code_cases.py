"""Arguments of the kernels that make codes of numbers, and numbers of codes, for a vector of n numbers."""

from __future__ import annotations

import numpy as np

from kernels.compression import pack


def edges(n: int) -> np.ndarray:
    """Runs of several lengths, one of them empty."""
    return np.array([0, n // 3, n // 3, n - n // 8, n])


def draw(rng, n, dtype):
    return rng.standard_normal(n).astype(dtype)


def norms(order):
    return lambda rng, n, dtype: (np.empty(4, dtype), draw(rng, n, dtype), edges(n), order)


def two_means(rng, n, dtype):
    return np.empty(4, dtype), np.empty(4, dtype), draw(rng, n, dtype), edges(n)


def choose(rng, n, dtype):
    packed = rng.integers(0, 256, pack.size(n, 1), np.uint8)
    return np.empty(n, dtype), packed, draw(rng, 4, dtype), draw(rng, 4, dtype), edges(n)


def packed(width, kind):
    return lambda rng, n, dtype: (
        np.empty(pack.size(n, width), np.uint8),
        rng.integers(0, 2**width, n).astype(kind or dtype),
        width,
    )


def stochastic_quantize(levels, kind):
    def arguments(rng, n, dtype):
        scales = np.array([1.0, 1.0, 0.0, 3.0], dtype)  # the first run is cut off, the third has nothing to send
        return np.empty(n, kind), draw(rng, n, dtype), scales, edges(n), levels, 1234567

    return arguments


def stochastic_dequantize(levels):
    def arguments(rng, n, dtype):
        width = (2 * levels).bit_length()
        packed = np.empty(pack.size(n, width), np.uint8)
        pack.reference(packed, rng.integers(0, 2 * levels + 1, n), width)
        return np.empty(n, dtype), packed, draw(rng, 4, dtype), edges(n), levels, width

    return arguments


def majority_vote(voters):
    return lambda rng, n, dtype: (
        np.empty(n, np.uint8),
        rng.integers(0, 256, (voters, n), np.uint8),
        voters - 1,
    )


def to_fixed(rng, n, dtype):
    v = draw(rng, n, dtype) * (10.0 ** rng.integers(-60, 36, n)).astype(dtype)
    return np.empty(n, np.int8), np.empty(-(-n // 3), np.int8), v, 3


def from_fixed(rng, n, dtype):
    exponents = rng.integers(-20, 20, -(-n // 3)).astype(np.int8)
    return np.empty(n, dtype), rng.integers(-127, 128, n).astype(np.int8), exponents, 3


def to_bf16(rng, n, dtype):
    v = draw(rng, n, dtype) * (10.0 ** rng.integers(-42, 38, n)).astype(dtype)
    v[::5] = np.float32(1 + 2**-8) * 2.0 ** rng.integers(-3, 3, len(v[::5]))  # half way
    return np.empty(n, np.uint16), v


def from_bf16(rng, n, dtype):
    codes = np.empty(n, np.uint16)
    codes[:] = draw(rng, n, np.float32).view(np.uint32) >> 16
    return np.empty(n, dtype), codes


def matmul(transposed):
    def arguments(rng, n, dtype):
        n = max(min(n, 33), 1)
        a = draw(rng, n * 20, dtype).reshape(n, 20) if not transposed else draw(rng, n * 20, dtype).reshape(20, n).T
        return np.empty((n, 3), dtype), a, draw(rng, 60, dtype).reshape(20, 3)

    return arguments


def gram_schmidt(rng, n, dtype):
    n = min(n, 40)
    p = draw(rng, 3 * n, dtype).reshape(n, 3)
    p[:, 2] = p[:, 0]  # depends on the first
    return p, 1e-5


CODES = {
    "norms": norms(2),
    "two_means": two_means,
    "choose": choose,
    "pack": packed(3, np.uint8),
    "stochastic_quantize": stochastic_quantize(4, np.uint8),
    "stochastic_dequantize": stochastic_dequantize(4),
    "majority_vote": majority_vote(4),
    "to_fixed": to_fixed,
    "from_fixed": from_fixed,
    "to_bf16": to_bf16,
    "from_bf16": from_bf16,
    "matmul": matmul(transposed=True),
    "gram_schmidt": gram_schmidt,
}
MORE = {
    "norms": (norms(0), norms(1)),
    "pack": (packed(1, bool), packed(1, np.uint8), packed(8, np.uint8), packed(11, np.uint16), packed(6, None)),
    "stochastic_quantize": (
        stochastic_quantize(1, np.uint8),
        stochastic_quantize(127, np.uint8),
        stochastic_quantize(1000, np.uint16),
    ),
    "stochastic_dequantize": (stochastic_dequantize(1), stochastic_dequantize(127), stochastic_dequantize(1000)),
    "majority_vote": (majority_vote(1), majority_vote(5)),
    "matmul": (matmul(transposed=False),),
}
