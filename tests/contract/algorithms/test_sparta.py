"""Numbers of an independent program in float64, and a closed form."""

import numpy as np
import pytest

from algorithms.averaging.sparta import Settings, places
from tests.training import ScalarChain, Springs, train

PARTS = {"choose": "parts", "learning_rate": 0.1}


def two_springs(steps, fraction=0.5, d=4, **settings):
    """Two workers, pulled to 1 and to 3 in every coordinate; the models before and after the last mean."""
    springs = [Springs([centre] * 2, starts=[0.0], parameters=d) for centre in (1.0, 3.0)]
    run = train("sparta", lambda rank: springs[rank], 2, PARTS | {"fraction": fraction} | settings, steps=steps + 1)
    return [springs[rank].seen[centre][steps] for rank, centre in enumerate((1.0, 3.0))], run


def test_two_springs_move_as_in_an_independent_program():
    for steps, first, second in (
        (1, [0.1, 0.1, 0.2, 0.2], [0.2, 0.2, 0.3, 0.3]),
        (4, [0.5878, 0.5878, 0.6878, 0.6878], [0.6878, 0.6878, 0.7878, 0.7878]),
    ):
        one, other = two_springs(steps)[0]
        assert np.allclose(np.sort(one), first, atol=1e-12) and np.allclose(np.sort(other), second, atol=1e-12)


@pytest.mark.parametrize("choose", ["random", "parts"])
def test_the_sum_of_all_models_is_what_local_steps_alone_would_make_it(choose):
    averaged, _ = two_springs(9, fraction=0.3, d=10, choose=choose)
    alone = [(1 - 0.9**9) * centre for centre in (1.0, 3.0)]
    assert np.allclose(sum(averaged), sum(alone), rtol=1e-12)


def test_a_parameter_drifts_apart_for_one_over_fraction_steps_and_then_meets():
    apart = [np.sort(np.abs(np.subtract(*two_springs(steps, fraction=0.25)[0]))) for steps in (4, 5)]
    drift = [0.2 * (1 - 0.9**n) / 0.1 for n in range(5)]  # lr (1 + (1 - lr) + ...) times the distance of the centres
    for gaps in apart:
        assert np.allclose(gaps, drift[:4], atol=1e-12)


def test_all_parameters_take_their_turn_once_in_one_over_fraction_steps():
    turns = [index for index, _ in zip(places(11, Settings(fraction=0.25, choose="parts"), 3), range(4), strict=False)]
    assert np.array_equal(np.sort(np.concatenate(turns)), np.arange(11))


def test_it_sends_the_fraction_in_every_step_and_the_model_once():
    chain = ScalarChain(w=np.linspace(0.9, 1.1, 8))
    run = train("sparta", chain, 2, {"fraction": 0.25, "learning_rate": 0.01}, steps=10)
    assert run.outcome.trace().traffic().sum() == 8 * 2 * (10 * 2 + 8)
