import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, train
from theory.zero_memory import RECIPES, nbytes
from tracing import HELD

PARAMETERS, GRADIENTS, STATE, ACTIVATIONS, _ = range(len(HELD))


def digits(name, **options):
    return run(Experiment.of({"algorithm": name, "steps": 2, "evaluations": 1} | options))


@pytest.mark.parametrize(("rule", "recipe"), [("sgd", "SGD"), ("momentum", "momentum"), ("adam", "Adam")])
def test_but_for_one_layer_it_holds_what_the_formula_says(rule, recipe):
    done = digits("zero3", workers=2, update=rule)
    states = done.peaks()[:, [PARAMETERS, GRADIENTS, STATE]].sum(axis=1)
    largest = 4 * (128 * 128 + 128)
    expected = nbytes(len(done.parameters), 2, 3, RECIPES[f"float32 {recipe}"]) + 2 * largest
    assert states.tolist() == [expected] * 2


def test_a_deep_model_needs_little_more_than_the_nth_part_on_each_rank():
    deep = {"model": "residual", "depth": 30, "width": 32, "workers": 8, "update": "adam", "batch": 4}
    whole, dealt = (digits(name, **deep).summary["memory"] for name in ("sync_sgd", "zero3"))
    assert whole / 8 < dealt < whole / 5


def test_it_moves_one_and_a_half_times_what_zero_1_moves():
    moved = {name: digits(name, workers=4).summary["bytes"] for name in ("zero1", "zero2", "zero3")}
    assert moved["zero3"] == 1.5 * moved["zero1"] == 1.5 * moved["zero2"]


def test_the_model_is_put_together_from_the_pieces_of_all_ranks():
    dealt, whole = (digits(name, workers=3, steps=5) for name in ("zero3", "zero2"))
    assert np.array_equal(dealt.parameters, whole.parameters)
    assert dealt.evaluations["loss"].tolist() == whole.evaluations["loss"].tolist()
    assert not dealt.evaluations["spread"].any()


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_it_trains_the_same_bits_though_there_may_be_fewer_parameters_than_ranks(workers):
    settings = {"update": "adam", "learning_rate": 0.05}
    dealt, whole = (
        train(name, ScalarChain(dtype=np.float32), workers, settings, steps=9) for name in ("zero3", "zero2")
    )
    assert np.array_equal(dealt.shipped, whole.models[0])
