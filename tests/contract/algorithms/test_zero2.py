import numpy as np
import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, train
from theory.zero_memory import RECIPES, nbytes
from tracing import HELD

PARAMETERS, GRADIENTS, STATE, *_ = range(len(HELD))


def digits(name, **options):
    return run(Experiment.of({"algorithm": name, "steps": 2, "evaluations": 1, "precision": "float32"} | options))


def test_every_rank_keeps_its_piece_of_every_layer_and_for_a_moment_one_layer():
    layers = 128 * 10 + 10, 128 * 128 + 128, 64 * 128 + 128  # the last one first
    peaks = digits("zero2", workers=2).peaks()
    kept = np.cumsum(layers) // 2
    assert peaks[:, GRADIENTS].tolist() == [4 * max(layers + kept)] * 2


@pytest.mark.parametrize(("rule", "recipe"), [("sgd", "SGD"), ("momentum", "momentum"), ("adam", "Adam")])
def test_but_for_one_layers_gradient_it_holds_what_the_formula_says(rule, recipe):
    done = digits("zero2", workers=2, update=rule)
    states = done.peaks()[:, [PARAMETERS, GRADIENTS, STATE]].sum(axis=1)
    largest, last = (
        4 * (128 * 128 + 128),
        4 * (64 * 128 + 128) // 2,
    )  # the gradient of the layer before is not there yet
    expected = nbytes(len(done.parameters), 2, 2, RECIPES[f"float32 {recipe}"]) + largest - last
    assert states.tolist() == [expected] * 2


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_every_rank_has_the_same_bits_though_there_may_be_fewer_parameters_than_ranks(workers):
    settings = {"update": "adam", "learning_rate": 0.05}
    dealt = train("zero2", ScalarChain(dtype=np.float32), workers, settings, steps=9)
    whole = train("overlap", ScalarChain(dtype=np.float32), workers, settings | {"bucket_bytes": 0}, steps=9)
    for w in dealt.models:
        assert np.array_equal(w, whole.models[0])
