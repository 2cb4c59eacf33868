import sys
from pathlib import Path

import numpy as np
import pytest

import algorithms
import workloads
from algorithms.algorithm import Shape
from algorithms.parts.pipeline.executor import Executor
from algorithms.pipelined import gpipe
from tests.training import ScalarChain, train

CHAIN = ScalarChain(w=(0.5, 0.6, 0.7, 1.2, 0.9), x=np.linspace(0.5, 2, 16))


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("chunks", [1, 2, 4, 8])
def test_any_number_of_stages_and_micro_batches_is_the_same_sgd(stages, chunks):
    settings = {"learning_rate": 0.1, "chunks": chunks}
    (w,) = train("gpipe", CHAIN, stages, settings, batch=8, steps=6).models
    (sgd,) = train("sgd", CHAIN, 1, {"learning_rate": 0.1}, batch=8, steps=6).models
    assert np.allclose(w, sgd, rtol=1e-12, atol=0)


def test_going_forward_again_changes_nothing_but_the_work():
    def course(recompute):
        settings = {"learning_rate": 0.1, "chunks": 4, "recompute": recompute}
        return train("gpipe", CHAIN, 3, settings, batch=8, steps=3)

    stored, again = course("none"), course("early")
    assert np.array_equal(stored.models, again.models)
    labels = [row[4] for row in again.outcome.event_logs[1].spans if row[0] == 0]
    assert labels[:12] == ["F0", "F1", "F2", "F3", "R3", "B3", "R2", "B2", "R1", "B1", "R0", "B0"]
    assert again.outcome.trace().busy()[1, 0] == pytest.approx(4 / 3 * stored.outcome.trace().busy()[1, 0], rel=1e-3)


def test_one_forward_of_gpipe_is_read_in_four_files():
    home, opened = Path(algorithms.__file__).parent, {Path(gpipe.__file__).name}  # beside task, communicator, kernels

    def note(frame, event, _):
        file = Path(frame.f_code.co_filename)
        if event == "call" and file.is_relative_to(home):
            while frame and frame.f_code is not Executor._do.__code__:
                frame = frame.f_back
            if frame and frame.f_locals["ops"][0].kind == "F":
                opened.add(file.name)

    sys.setprofile(note)
    try:
        train("gpipe", CHAIN, 3, {"chunks": 4}, batch=8, steps=2)
    finally:
        sys.setprofile(None)
    assert opened == {"gpipe.py", "executor.py", "plan.py", "stage_state.py"}


def test_every_stage_updates_once_per_mini_batch_and_from_fresh_weights():
    run = train("gpipe", CHAIN, 3, {"chunks": 4}, batch=8, steps=5)
    assert run.staleness == [[0] * 5] * 3


def test_micro_batches_that_do_not_divide_the_batch_are_refused_with_those_that_do():
    s = gpipe.Settings(chunks=3)
    gpipe.ALGORITHM.check(2, 12, CHAIN, s)
    with pytest.raises(ValueError, match=r"^3 micro-batches .*batch of 32.* 1, 2, 4, 8, 16 or 32.$"):
        gpipe.ALGORITHM.check(2, 32, CHAIN, s)
    with pytest.raises(ValueError, match=r"^3 micro-batches .*batch of 1\D.* 1.$"):
        gpipe.ALGORITHM.check(2, 1, CHAIN, s)


def test_a_real_network_is_cut_without_changing_what_it_learns():
    digits = workloads.find("digits")
    workload = digits.build(digits.Settings(), np.dtype("float64"))
    (sgd,) = train("sgd", workload, 1, {"learning_rate": 0.1}, batch=32, steps=5).models
    (cut,) = train("gpipe", workload, 2, {"learning_rate": 0.1, "chunks": 1}, batch=32, steps=5).models
    chunked = train("gpipe", workload, 3, {"learning_rate": 0.1, "chunks": 8}, batch=32, steps=5)
    assert np.array_equal(cut, sgd)
    assert np.allclose(chunked.models[0], sgd, rtol=1e-10, atol=1e-12)
    shape = Shape(workload.parameters, 3, steps=5, batch=32, boundaries=workload.boundaries(3))
    assert chunked.outcome.trace().traffic().sum() == 8 * gpipe.ALGORITHM.elements_sent(shape, gpipe.Settings())
    assert shape.boundaries == (128, 128)


def test_more_stages_than_layers_are_refused_with_what_is_possible():
    with pytest.raises(ValueError, match=r"6 stages .*5 layers.*at most 5"):
        gpipe.ALGORITHM.check(6, 8, CHAIN, gpipe.Settings())
