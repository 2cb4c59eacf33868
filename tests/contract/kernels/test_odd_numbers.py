"""NaN, infinities and negative squares: a kernel's implementations lead them to the same places, and none raises."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator

import numpy as np
import pytest

import kernels
from kernels.gpu import simulate_gpu
from tests.contract.kernels.cases import CASES
from tests.contract.kernels.test_implementations import NAMES, expect_same, outcome

SIZE = 12
ODD = {"NaN": [np.nan], "infinite": [-np.inf], "negative, none or tiny": [-2.0, -0.0, 1e-45]}
PROMISED = {
    "hogwild": {"acc", "target"},
    "svrg": {"acc", "target"},
    "logistic": {"target"},
    "margins": {"target"},
    "attention_backward": {"p"},
    "max_pool_backward": {"x", "y"},
    "gelu_backward": {"z", "y"},
}
"""Arguments that a kernel may rely on: targets are 1 or -1, an accumulator and what attention masks are 0, and what
came out of a forward pass belongs to what went in."""


def odd_calls(name: str) -> Iterator[tuple[str, tuple]]:
    """Yield (what is odd, arguments): each float array in turn has some odd numbers, all that are only written one."""
    usual = CASES[name].arguments(np.random.default_rng(3), SIZE, np.float32)
    names = list(inspect.signature(getattr(kernels, name).module.reference).parameters)
    floats = [place for place, x in enumerate(usual) if isinstance(x, np.ndarray) and x.dtype.kind == "f"]
    places = [place for place in floats if names[place] not in PROMISED.get(name, ())]
    written = [place for place in places if is_only_written(name, usual, place)]
    if written:
        yield "NaN in all that is only written", with_odd(usual, written, ODD["NaN"])
    for place in places:
        for kind, numbers in ODD.items() if place not in written else ():
            yield f"{kind} in {names[place]}", with_odd(usual, [place], numbers)


def with_odd(usual: tuple, places: list[int], numbers: list[float]) -> tuple:
    args = copy.deepcopy(usual)
    for place in places:
        x = args[place]
        where = np.random.default_rng(5).choice(x.size, min(x.size, len(numbers)), replace=False)
        np.put(x, where, np.float32(numbers[: len(where)]))
    return args


def is_only_written(name: str, usual: tuple, place: int) -> bool:
    """Return whether the results are the same whatever numbers the array in this place has."""
    other = copy.deepcopy(usual)
    other[place][...] = 7 - 3 * other[place]
    reference = getattr(kernels, name).module.reference
    results = zip(outcome(reference, copy.deepcopy(usual)), outcome(reference, other), strict=True)
    return all(np.array_equal(a, b, equal_nan=True) for a, b in results)


def marks(name: str) -> tuple:
    return (pytest.mark.slow,) if name == "conv2d_backward_weights" else ()  # 72 blocks of 256 threads a launch


@pytest.mark.cudasim
@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in NAMES])
def test_an_odd_number_reaches_the_same_results_in_every_implementation(name):
    kernel = getattr(kernels, name).module
    for said, args in odd_calls(name):
        expected, cpu = (outcome(which, copy.deepcopy(args)) for which in (kernel.reference, kernel.cpu))
        with simulate_gpu():
            gpu = outcome(kernel.gpu, args)
        useful = slice(-1, None) if name == "threshold" else slice(None)  # words of what no word can encode are not
        expect_same(name, np.float32, cpu[useful], expected[useful], said=f"cpu, {said}")
        expect_same(name, np.float32, gpu[useful], expected[useful], said=f"gpu, {said}")
