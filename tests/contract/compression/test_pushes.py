"""What workers push to a server may be compressed, too."""

import numpy as np
import pytest

import algorithms
from algorithms.compression import COMPRESSIONS, find
from experiments.execution.run import run
from experiments.specification.experiment import Experiment

PUSHING = [name for name in algorithms.names() if algorithms.find(name).compresses == "push"]
each = pytest.mark.parametrize("compression", [name for name in COMPRESSIONS if find(name).pushable])


def small(algorithm="asgd", **values):
    return Experiment.of({"algorithm": algorithm, "workers": 3, "steps": 30, "evaluations": 2, **values})


@each
def test_pushes_shrink_and_answers_do_not(compression):
    done, plain = run(small(compression=compression)), run(small())
    assert done.status == "finished"
    there, back = done.trace.traffic()[1:, 0], done.trace.traffic()[0, 1:]
    assert (there < 0.6 * plain.trace.traffic()[1:, 0]).all()
    assert np.array_equal(back, plain.trace.traffic()[0, 1:])


@pytest.mark.parametrize("algorithm", PUSHING)
def test_every_method_that_pushes_learns_with_compressed_pushes(algorithm):
    done = run(small(algorithm, steps=200, compression="top_k", density=0.05))
    assert done.status == "finished" and done.summary["accuracy"] > 0.85
    assert (
        run(small(algorithm, steps=200, compression="top_k", density=0.05)).summary["digest"] == done.summary["digest"]
    )


def test_what_is_left_out_is_late_and_not_lost():
    kept, lost = (
        run(small(steps=100, compression="top_k", density=0.01, error_feedback=feedback)) for feedback in (True, False)
    )
    assert kept.summary["held_out_loss"] < 0.8 * lost.summary["held_out_loss"]


def test_a_mean_of_all_ranks_cannot_be_pushed():
    with pytest.raises(ValueError, match=r"random_k .*all ranks.*asgd"):
        small(compression="random_k")


def test_a_gradient_that_is_no_number_is_seen_through_the_code():
    done = run(small(compression="sign", learning_rate=1000))
    assert done.status in ("diverged", "finished")
    assert run(small(compression="one_bit", learning_rate=1000)).status == "diverged"
