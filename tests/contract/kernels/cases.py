"""One call of every kernel: the arguments that the tests of implementations give to reference, cpu and gpu alike.

`arguments(rng, n, dtype)` builds them for a size n of any of SIZES (0 too), outputs first, as the kernel takes them.
After the call every array among them is compared, and so is what the call returns. A kernel says `bits=True` if its
cpu implementation rounds exactly as its reference does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.contract.kernels.code_cases import CODES
from tests.contract.kernels.expert_cases import MIXTURES
from tests.contract.kernels.layer_cases import LAYERS
from tests.contract.kernels.parallel_cases import PARALLEL
from tests.contract.kernels.sparse_cases import SPARSE
from tests.contract.kernels.transformer_cases import TRANSFORMER

SIZES = (0, 1, 31, 32, 257, 1000)


@dataclass(frozen=True)
class Case:
    """How to call a kernel, and how closely its implementations agree (in ulps of the largest number)."""

    arguments: Callable[[np.random.Generator, int, type], tuple]
    bits: bool = False
    ulps: float = 16.0


def vector(rng: np.random.Generator, n: int, dtype: type) -> np.ndarray:
    return rng.standard_normal(n).astype(dtype)


def vectors(count: int, *scalars: float) -> Callable:
    """Arguments of an elementwise kernel: `count` vectors of size n, then scalars."""
    return lambda rng, n, dtype: (*(vector(rng, n, dtype) for _ in range(count)), *scalars)


def rows(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n, dtype), rng.standard_normal((7, n)).astype(dtype)


def round_to(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    v = vector(rng, n, dtype) * (10.0 ** rng.integers(-10, 6, n)).astype(dtype)
    return np.empty(n, dtype), v, 11, -14, -1


def signs(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n, dtype), vector(rng, n, dtype).round(), 0.1  # rounded: some are 0


def adagrad(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n, dtype), vector(rng, n, dtype) ** 2, vector(rng, n, dtype), 0.1, 1e-8


def rmsprop(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n, dtype), vector(rng, n, dtype) ** 2, vector(rng, n, dtype), 0.1, 0.99, 1e-8, 1e-3


def rmsprop_blend(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    w, D, g = (vector(rng, n, dtype) for _ in range(3))
    return w, D, vector(rng, n, dtype) ** 2, g, 0.1, 0.9, 0.99, 0.3, 0.02, 1e-8


def adam(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    w, m, g = (vector(rng, n, dtype) for _ in range(3))
    return w, m, vector(rng, n, dtype) ** 2, g, 3, 0.1, 0.9, 0.999, 1e-8


def adam_ahead(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    u, w, m = (vector(rng, n, dtype) for _ in range(3))
    return u, w, m, vector(rng, n, dtype) ** 2, 3, 2, 0.1, 0.9, 0.999, 1e-8


def ranked(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n, dtype).round(1), -(-n // 3)  # rounded: several are the k-th largest


def selected(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    v = vector(rng, n, dtype).round(1)
    room = -(-n // 3)
    return np.zeros(room, dtype), np.zeros(room, np.int32), v, dtype(1.1), 2


def ranked_rows(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    x = rng.standard_normal((n, 10)).round(1).astype(dtype)  # rounded: several of a row are equal
    return np.zeros((n, 3), dtype), np.zeros((n, 3), np.int32), x


def places(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.permutation(n)[: n // 2].astype(np.int32)


def scattered(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n, dtype), places(rng, n), vector(rng, n // 2, dtype)


def gathered(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    return vector(rng, n // 2, dtype), vector(rng, n, dtype), places(rng, n)


def signed(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    index = places(rng, n)
    return vector(rng, n, dtype), np.where(rng.random(len(index)) < 0.5, index, ~index), 0.25


def adaptive(rng: np.random.Generator, n: int, dtype: type) -> tuple:
    w, g, backup = (vector(rng, n, dtype) for _ in range(3))
    return w, vector(rng, n, dtype) ** 2, g, backup, 0.1, 2.0, 0.95, 1e-7


CASES: dict[str, Case] = {
    "sgd": Case(vectors(2, 0.1), bits=True),
    "sign_sgd": Case(signs, bits=True),
    "momentum": Case(vectors(3, 0.1, 0.9), bits=True),
    "nesterov": Case(vectors(3, 0.1, 0.9), bits=True),
    "adagrad": Case(adagrad, bits=True),
    "sutskever": Case(vectors(4, 0.1, 0.9), bits=True),
    "rmsprop": Case(rmsprop, bits=True),
    "rmsprop_blend": Case(rmsprop_blend, bits=True),
    "ema": Case(vectors(2, 0.3), bits=True),
    "adam": Case(adam),
    "adam_ahead": Case(adam_ahead),
    "elastic": Case(vectors(3, 0.2), bits=True),
    "mean": Case(rows, bits=True),
    "trimmed_mean": Case(lambda *given: (*rows(*given), 2)),
    "add": Case(vectors(2), bits=True),
    "scale": Case(vectors(1, 0.3), bits=True),
    "squared_norm": Case(vectors(1)),
    "displacement": Case(vectors(3, 0.3), bits=True),
    "block_momentum": Case(vectors(4, 0.9, 0.7, 1.9, 0.4), bits=True),
    "residual": Case(vectors(2), bits=True),
    "kth_largest": Case(ranked),
    "select": Case(selected),
    "row_top_k": Case(ranked_rows),
    "gather": Case(gathered),
    "scatter_add": Case(scattered, bits=True),
    "threshold": Case(lambda rng, n, dtype: (np.zeros(n, np.int32), vector(rng, n, dtype), 1.0)),
    "scatter_signs": Case(signed, bits=True),
    "correct": Case(vectors(3, 0.9, False), bits=True),
    "forget": Case(lambda rng, n, dtype: (vector(rng, n, dtype), places(rng, n))),
    "clip": Case(vectors(1, 0.3)),
    "dot": Case(vectors(2)),
    "round_to": Case(round_to, bits=True),
    "mix": Case(vectors(2, 0.3, 0.7), bits=True),
    "delay_compensated": Case(vectors(3, 0.1, 0.04), bits=True),
    "delay_compensated_adaptive": Case(adaptive, bits=True),
    "distance_scaled": Case(vectors(3, 0.1), bits=True),
    "descend_atomic": Case(vectors(2, 0.1), bits=True),
    **{name: Case(arguments) for name, arguments in CODES.items()},
    **{name: Case(arguments) for name, arguments in SPARSE.items()},
    # ---- layers: cases of the kernels in kernels/layers/ go below this line ----
    **{name: Case(arguments) for name, arguments in LAYERS.items()},
    **{name: Case(arguments) for name, arguments in TRANSFORMER.items()},
    **{name: Case(arguments) for name, arguments in PARALLEL.items()},
    **{name: Case(arguments) for name, arguments in MIXTURES.items()},
}
