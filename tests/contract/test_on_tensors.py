"""Every algorithm computes on tensors as on NumPy arrays, so that it runs on GPUs, and learns the same to the bit.

Tensors of torch in CPU memory stand in for a GPU's, which have the same methods. Kernels compute in that memory by
their cpu implementations; their GPU ones have tests of their own.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import algorithms
import kernels
from cluster import simulated
from experiments.execution.run import train
from experiments.specification.catalogue import COMPRESSIONS
from experiments.specification.experiment import Experiment

torch = pytest.importorskip("torch")

NAMES = [name for name in algorithms.names() if algorithms.family(name) != "shared_memory"]
WORKLOADS = [
    *({"workload": name} for name in ("quadratic", "sparse", "spirals", "text")),
    *({"workload": "digits", "data": {"model": model}} for model in ("residual", "cnn")),
]


def plain(x):
    """What a tensor, or each of a tuple, is to NumPy: the same memory."""
    if isinstance(x, tuple | list):
        return type(x)(map(plain, x))
    return x.numpy() if isinstance(x, torch.Tensor) else x


@pytest.fixture
def kernels_of_tensors(monkeypatch):
    """Kernels take tensors, and nothing else where the first argument is one: a GPU would not find it."""
    called = kernels.Kernel.__call__

    def call(kernel, *args):
        if isinstance(args[0], torch.Tensor):
            mixed = [x for x in args if isinstance(x, np.ndarray) and x.size]
            assert not mixed, f"{kernel.name} is called with arrays of both kinds"
            kernel.price(*args)
        returned = called(kernel, *map(plain, args))
        return torch.from_numpy(returned) if isinstance(returned, np.ndarray) else returned

    monkeypatch.setattr(kernels.Kernel, "__call__", call)


def shipped(e: Experiment, place: str) -> list[np.ndarray]:
    """The results of all ranks of a run of `e` with their arrays at `place`."""
    outcome = simulated.run(partial(train, e), e.ranks, collective="ring", place=place)
    assert outcome.error is None, outcome.error
    assert place == "cpu" or any(isinstance(result, torch.Tensor) for result in outcome.results)
    return [kernels.to_numpy(result) for result in outcome.results if result is not None]


def expect_the_same(**settings) -> None:
    e = Experiment(steps=3, evaluations=1, **settings)
    with np.errstate(all="ignore"):
        for ours, theirs in zip(shipped(e, "cpu:0"), shipped(e, "cpu"), strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", NAMES)
def test_an_algorithm_learns_the_same_on_tensors(name, kernels_of_tensors):
    expect_the_same(algorithm=name)


@pytest.mark.parametrize("name", [name for name in COMPRESSIONS if name != "none"])
def test_a_compression_sends_the_same_of_tensors(name, kernels_of_tensors):
    expect_the_same(algorithm="sync_sgd", compression=name)


@pytest.mark.parametrize("settings", WORKLOADS, ids=str)
def test_a_model_has_the_same_gradient_of_tensors(settings, kernels_of_tensors):
    expect_the_same(algorithm="sync_sgd", **settings)
