"""Without a compiler, greenlets or processes, as in a browser, runs are the same: exactly in time, nearly in loss."""

from __future__ import annotations

import numpy as np
import pytest

import algorithms
from algorithms import compression
from tests.bare_python import measure, measure_bare

FAMILIES = (
    *({"algorithm": name} for name in ("sync_sgd", "zero3", "easgd", "diloco", "asgd", "hogwild", "adpsgd", "gpipe")),
    {"compression": "qsgd", "workers": 2}, {"workload": "sparse", "algorithm": "hogwild"},
)  # fmt: skip
OTHERS = (
    *({"compression": name} for name in compression.COMPRESSIONS),
    *({"data": {"model": name}} for name in ("residual", "cnn", "cnn_bn")),
    *({"workload": "text", "algorithm": name} for name in ("sync_sgd", "gpipe", "hogwild")),
    *({"collective": name, "workers": 5} for name in ("ring", "stream", "tree")),
    {"workload": "quadratic"}, {"precision": "float64"}, {"per_node": 2, "workers": 4}, {"pause": "1:0.01-0.02"},
    {"algorithm": "easgd", "crash": "2:0.01-0.02"},
)  # fmt: skip


def expect_same(experiments: list[dict]) -> None:
    """Run these experiments here and in a bare Python, and compare."""
    for settings, bare, usual in zip(experiments, measure_bare(experiments), measure(experiments), strict=True):
        said = str(settings)
        note, *notes = reversed(bare["notes"])
        assert "Numba" in note, said
        assert notes[::-1] == usual["notes"], said
        for exact in ("status", "rank", "seconds", "end"):
            assert bare[exact] == usual[exact], (said, exact)
        assert usual["loss"], said
        np.testing.assert_allclose(bare["loss"], usual["loss"], rtol=0, atol=1e-4, err_msg=said)


def test_a_run_of_every_family_is_the_same_without_a_compiler_greenlets_and_processes():
    expect_same([{"steps": 3, **settings} for settings in FAMILIES])


@pytest.mark.slow
def test_a_run_of_every_algorithm_is_the_same_without_a_compiler_greenlets_and_processes():
    expect_same([{"algorithm": name, "steps": 3} for name in algorithms.names()])


@pytest.mark.slow
def test_every_compression_and_workload_is_the_same_without_a_compiler_greenlets_and_processes():
    expect_same([{"steps": 3, **settings} for settings in OTHERS])
