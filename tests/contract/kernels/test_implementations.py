"""A kernel's implementations compute the same: reference, cpu, gpu in the simulator, gpu on a GPU.

`pytest tests/contract/kernels` runs the cpu implementations, and the gpu ones in our simulator (alone: `-m cudasim`);
`pytest tests/contract/kernels -m gpu` runs them on a GPU.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator

import numpy as np
import pytest

import kernels
from kernels.gpu import simulate_gpu
from tests.contract.kernels.cases import CASES, SIZES

NAMES = [name for family in kernels.FAMILIES.values() for name in family]
SIMULATED = {np.float32: (0, 1, 33, 257), np.float64: (33,)}

each_kernel = pytest.mark.parametrize("name", [name for name in NAMES if name in CASES])
both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def arguments(name: str, n: int, dtype: type) -> tuple:
    return CASES[name].arguments(np.random.default_rng(n), n, dtype)


def calls(name: str, sizes: Iterable[int], dtype: type) -> Iterator[tuple[int, tuple]]:
    """Yield (n, arguments) for each of the sizes that gives shapes of its own; many cases have an upper limit."""
    seen = set()
    for n in sizes:
        args = arguments(name, n, dtype)
        shapes = tuple(x.shape if isinstance(x, np.ndarray) else x for x in args)
        if shapes not in seen:
            seen.add(shapes)
            yield n, args


def outcome(implementation, args: tuple) -> list[np.ndarray]:
    """All arrays as they are after the call, and what it returned."""
    with np.errstate(all="ignore"):
        returned = implementation(*args)
    parts = [x for x in args if hasattr(x, "shape")]
    if returned is not None:
        parts += returned if isinstance(returned, tuple) else (returned,)
    return [kernels.to_numpy(x) if hasattr(x, "detach") else np.asarray(x) for x in parts]


def expect_same(name: str, dtype: type, actual: list, expected: list, bits: bool = False, said: str = "") -> None:
    for a, e in zip(actual, expected, strict=True):
        if bits or e.dtype.kind in "iub":
            np.testing.assert_array_equal(a, e, said)
        else:
            within = CASES[name].ulps * np.finfo(dtype).eps * np.abs(e[np.isfinite(e)]).max(initial=1.0)
            np.testing.assert_allclose(a, e, rtol=0, atol=within, err_msg=said)


def test_every_kernel_has_a_case():
    assert sorted(NAMES) == sorted(CASES)


@each_kernel
@both_types
def test_the_cpu_implementation_computes_the_reference_whatever_the_size(name, dtype):
    kernel = getattr(kernels, name).module
    for n, args in calls(name, SIZES, dtype):
        expected = outcome(kernel.reference, copy.deepcopy(args))
        expect_same(name, dtype, outcome(kernel.cpu, args), expected, CASES[name].bits, f"of {n}")


@pytest.mark.cudasim
@each_kernel
@both_types
def test_the_gpu_implementation_computes_the_reference_in_the_simulator(name, dtype):
    kernel = getattr(kernels, name).module
    for n, args in calls(name, SIMULATED[dtype], dtype):
        expected = outcome(kernel.reference, copy.deepcopy(args))
        with simulate_gpu():
            expect_same(name, dtype, outcome(kernel.gpu, args), expected, said=f"of {n}")


@pytest.mark.gpu
@each_kernel
@both_types
def test_the_gpu_implementation_computes_the_reference_on_a_gpu(name, dtype, gpu):
    for n, args in calls(name, SIZES, dtype):
        expected = outcome(getattr(kernels, name).module.reference, copy.deepcopy(args))
        there = tuple(kernels.to_device(x, gpu) if isinstance(x, np.ndarray) else x for x in args)
        expect_same(name, dtype, outcome(getattr(kernels, name), there), expected, said=f"of {n}")


@pytest.fixture
def gpu() -> str:
    """The first GPU, as torch calls it."""
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch sees no GPU here")
    return "cuda:0"
