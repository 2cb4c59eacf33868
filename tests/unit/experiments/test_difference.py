"""Differences of runs: to the bit, up to rounding, and what they were computed with."""

from dataclasses import replace

import numpy as np
import pytest
import threadpoolctl

from experiments.runs import summary
from experiments.runs.difference import alike_until, difference, largest, other_arithmetic, tolerance

TOLD = ("accuracy", "loss", "bytes", "seconds", "digest", "weights")


def test_equal_records_have_no_difference_and_every_other_has_one(small_run):
    assert difference(small_run, replace(small_run)) == ""

    def changed(table, column, row=0):
        columns = {**table, column: table[column].copy()}
        columns[column][row] = columns[column][row] + 1
        return columns

    w = small_run.parameters.copy()
    w[3] = np.nextafter(w[3], 9, dtype=w.dtype)
    for other, part in (
        (replace(small_run, status="failed"), "failed"),
        (replace(small_run, losses=changed(small_run.losses, "loss", 2)), "losses: loss in row 2"),
        (replace(small_run, losses={k: v[:-1] for k, v in small_run.losses.items()}), "losses: 24 rows instead of 23"),
        (replace(small_run, evaluations=changed(small_run.evaluations, "seconds")), "evaluations: seconds"),
        (replace(small_run, trace=replace(small_run.trace, spans=changed(small_run.trace.spans, "step"))), "spans"),
        (
            replace(small_run, trace=replace(small_run.trace, messages=changed(small_run.trace.messages, "tag"))),
            "messages",
        ),
        (replace(small_run, parameters=w), "1 of"),
        (replace(small_run, parameters=w[:-1]), "differ in shape"),
        (replace(small_run, parameters=None), "only one"),
        *((replace(small_run, summary={**small_run.summary, name: 0}), f"summary: {name} is") for name in TOLD),
        (replace(small_run, quantities=("speed",)), "different names"),
        (replace(small_run, trace=replace(small_run.trace, labels=("x",) * 99)), "different names"),
        (replace(small_run, held_out_samples=1), "held out: samples"),
    ):
        assert part in difference(small_run, other)


def test_a_message_or_note_in_other_words_is_no_difference(small_run):
    assert difference(small_run, replace(small_run, error="all is well", notes=("all is well",))) == ""


def test_nan_is_equal_to_itself(small_run):
    losses = {**small_run.losses, "loss": np.full(24, np.nan)}
    assert difference(replace(small_run, losses=losses), replace(small_run, losses=losses)) == ""


def scaled(run, factor, only=slice(None)):
    """The run with losses and parameters that are this factor of its own."""
    losses = {**run.losses, "loss": run.losses["loss"].copy()}
    losses["loss"][only] *= factor
    return replace(run, losses=losses, parameters=(run.parameters * factor).astype(run.parameters.dtype))


def test_runs_that_differ_in_the_last_digits_are_equal_to_rounding_and_others_are_not(small_run):
    share = tolerance(small_run)
    assert share == pytest.approx(3.5e-4, rel=0.02)
    other = scaled(small_run, 1 + 1e-6)
    assert difference(small_run, other).startswith("losses: loss in row 0") and not difference(small_run, other, share)
    assert largest(small_run, other) == pytest.approx(1e-6, rel=0.1)
    real = scaled(small_run, 1 + 1e-3)
    assert difference(small_run, real, share).startswith("losses: loss in row")
    assert largest(small_run, real) == pytest.approx(1e-3, rel=0.01)


def test_bit_for_bit_is_more_than_equal(small_run):
    one, other = (replace(small_run, losses={**small_run.losses, "loss": np.full(24, zero)}) for zero in (0.0, -0.0))
    assert "losses: loss in row 0" in difference(one, other) and not difference(one, other, tolerance(one))


@pytest.mark.parametrize("edge", [0.99995, 1.00005, 1.5])
def test_no_number_is_on_an_edge_of_rounding(small_run, edge):
    losses = np.full(24, edge)
    below, above = (
        replace(small_run, losses={**small_run.losses, "loss": losses * factor}) for factor in (1 - 1e-9, 1 + 1e-9)
    )
    assert difference(below, above) and not difference(below, above, tolerance(below))
    one, other = (np.array(summary.digest_to_rounding(run).split(), float) for run in (below, above))
    np.testing.assert_allclose(one, other, rtol=1.1e-3)  # one in the last of four digits


def test_counts_and_times_are_never_equal_to_rounding(small_run):
    for table, column, change in (("losses", "seconds", 1e-9), ("losses", "samples", 1), ("evaluations", "bytes", 1)):
        columns = getattr(small_run, table)
        other = replace(small_run, **{table: {**columns, column: columns[column] + type(change)(change)}})
        assert f"{table}: {column}" in difference(small_run, other, 0.1)


def test_a_loss_that_is_infinite_in_one_run_alone_is_a_difference(small_run):
    losses = small_run.losses["loss"].copy()
    losses[3] = np.inf
    other = replace(small_run, losses={**small_run.losses, "loss": losses})
    assert "loss in row 3" in difference(small_run, other, 0.1)
    assert not difference(other, replace(other), 0.1)


def test_losses_are_alike_until_the_first_that_is_not_equal_to_rounding(small_run):
    assert alike_until(small_run, scaled(small_run, 1 + 1e-6)) == 24
    assert alike_until(small_run, scaled(small_run, 2, only=slice(7, None))) == 7


def test_environments_that_compute_differently_say_in_what():
    before = {
        "blas_numpy": "openblas 0.3.31.1 SkylakeX", "blas_scipy": "openblas 0.3.30 SkylakeX", "blas": "",
        "vectors": "X86_V3 X86_V4", "numpy": "2.4.6", "code": "1", "cpus": 2,
    }  # fmt: skip
    assert other_arithmetic(before, {**before, "code": "2", "cpus": 8}) == []
    now = {**before, "blas_numpy": "openblas 0.3.31.1 Zen", "blas_scipy": "openblas 0.3.30 Zen", "blas": "mkl 2024"}
    assert other_arithmetic(before, now) == ["other BLAS kernels: SkylakeX then, Zen here"]
    newer = {"vectors": "X86_V3", "numpy": "2.5", "blas_scipy": "openblas 0.4 SkylakeX"}
    assert other_arithmetic(before, {**before, **newer}) == [
        "other BLAS kernels: openblas 0.3.30 SkylakeX then, openblas 0.4 SkylakeX here",
        "other vector instructions: X86_V4 then, X86_V3 here",
        "other NumPy: 2.4.6 then, 2.5 here",
    ]


def test_a_blas_is_named_by_the_package_that_brought_it(monkeypatch):
    def library(path, api="blas", **more):
        return {"filepath": path, "user_api": api, "internal_api": "openblas", "version": "0.3", **more}

    found = [
        library("/x/torch/site-packages/numpy.libs/libscipy_openblas64_.so", architecture="Zen"),
        library("/x/site-packages/scipy/.dylibs/libscipy_openblas.dylib", architecture="neoversen1"),
        library("/x/lib/libopenblas.so"),
        library("/x/torch/lib/libgomp.so", "openmp"),
    ]
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: found[1:])
    assert summary.blas() == {"blas_scipy": "openblas 0.3 neoversen1", "blas": "openblas 0.3"}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: found[:1])
    assert summary.blas() == {"blas_numpy": "openblas 0.3 Zen"}


def test_a_run_records_the_kernels_that_numpy_and_numba_multiply_matrices_with(small_run):
    loaded = {library["internal_api"] for library in threadpoolctl.threadpool_info() if library["user_api"] == "blas"}
    told = [text for name, text in small_run.environment.items() if name.startswith("blas")]
    assert {text.split()[0] for text in told} == loaded and "vectors" in small_run.environment
