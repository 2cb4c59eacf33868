"""Every kernel's twins compute the same: reference, cpu, gpu in the simulator, and gpu on a GPU."""

from __future__ import annotations

import copy
import os

import numpy as np
import pytest

import kernels
from tests.kernels.cases import CASES, SIZES

NAMES = [name for family in kernels.FAMILIES.values() for name in family]
SIMULATING = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
SIMULATED_SIZES = (0, 1, 33, 257)  # one OS thread per CUDA thread: seconds, not milliseconds

each_kernel = pytest.mark.parametrize("name", [name for name in NAMES if name in CASES])
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def arguments(name: str, n: int, dtype: type) -> tuple:
    return CASES[name].arguments(np.random.default_rng(n), n, dtype)


def outcome(twin, args: tuple) -> list:
    """All arrays after the call, and what it returned."""
    with np.errstate(all="ignore"):
        returned = twin(*args)
    parts = [x for x in args if hasattr(x, "shape")]
    if returned is not None:
        parts += returned if isinstance(returned, tuple) else [returned]
    return [kernels.to_numpy(x) if hasattr(x, "shape") else np.asarray(x) for x in parts]


def expect_same(name: str, dtype: type, actual: list, expected: list, bits: bool = False) -> None:
    assert len(actual) == len(expected)
    for a, e in zip(actual, expected, strict=True):
        if bits or e.dtype.kind in "iub":
            np.testing.assert_array_equal(a, e)
        else:
            scale = np.abs(e).max(initial=1.0)
            np.testing.assert_allclose(a, e, rtol=0, atol=CASES[name].ulps * np.finfo(dtype).eps * scale)


def test_every_kernel_has_a_case():
    assert sorted(NAMES) == sorted(CASES)


@each_kernel
@both_types
@pytest.mark.parametrize("n", SIZES)
def test_the_cpu_twin_computes_the_reference(name, dtype, n):
    kernel, args = getattr(kernels, name).module, arguments(name, n, dtype)
    expected = outcome(kernel.reference, copy.deepcopy(args))
    expect_same(name, dtype, outcome(kernel.cpu, args), expected, CASES[name].bits)


@pytest.mark.cudasim
@pytest.mark.skipif(not SIMULATING, reason="needs NUMBA_ENABLE_CUDASIM=1, set before Numba is imported")
@each_kernel
@both_types
@pytest.mark.parametrize("n", SIMULATED_SIZES)
def test_the_gpu_twin_computes_the_reference_in_the_simulator(name, dtype, n):
    kernel, args = getattr(kernels, name).module, arguments(name, n, dtype)
    expected = outcome(kernel.reference, copy.deepcopy(args))
    expect_same(name, dtype, outcome(kernel.gpu, args), expected)
