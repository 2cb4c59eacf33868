"""Numbers of an independent program in float64, and the closed form of when workers agree."""

import numpy as np
import pytest

from algorithms.decentralized.noloco import Settings, contraction, elements_sent, partner
from tests.contract.algorithms.test_choco import Still
from tests.training import Springs, train


class Given(Still):
    """Displacements that are given: the gradient of step t is -moves[t], at a learning rate of 1."""

    def __init__(self, start, moves):
        super().__init__([start])
        self.moves = list(moves)

    def gradient(self, w, batch):
        return 0.0, np.full_like(w, -self.moves.pop(0))


PLAIN = {"update": "sgd", "learning_rate": 1.0, "period": 1}


def test_two_replicas_move_as_in_an_independent_program():
    moves = ((-0.5, -0.2), (-1.0, 0.1))
    run = train("noloco", lambda rank: Given((1.0, 3.0)[rank], moves[rank]), 2, PLAIN, steps=2)
    after = [[float(row[4][0]) for row in event_log.reports] for event_log in run.outcome.event_logs]
    assert after == [pytest.approx([1.475, 1.6775]), pytest.approx([1.475, 0.6775])]


@pytest.mark.parametrize(
    ("mu", "gamma", "factor"),
    [
        (0.0, 1.0, 0.5),
        (0.5, 1.0, 0.7916),
        (0.5, 1.4, 0.9518),
        (0.5, 1.6, 1.0519),
        (0.9, 0.3, 0.9777),
        (0.9, 0.45, 1.0202),
    ],
)
def test_the_closed_form_of_the_contraction_is_that_of_the_recursion(mu, gamma, factor):
    assert contraction(mu, gamma) == pytest.approx(factor, abs=1e-4)


def apart(seed, **settings):
    """The squared disagreement of 64 workers that do not train, after each of 25 exchanges."""
    start = np.random.default_rng(seed).standard_normal((64, 50))
    run = train("noloco", lambda rank: Still(start[rank]), 64, PLAIN | settings, steps=25, seed=seed)
    models = np.array([[row[4] for row in event_log.reports] for event_log in run.outcome.event_logs])
    return models.var(axis=0).sum(axis=1)


@pytest.mark.parametrize(("mu", "gamma"), [(0.0, 1.0), (0.5, 1.0), (0.5, 1.6)])
def test_the_disagreement_of_many_workers_falls_or_grows_by_the_closed_form(mu, gamma):
    course = np.log([apart(seed, outer_momentum=mu, pull=gamma) for seed in range(4)]).mean(axis=0)
    assert np.exp((course[-1] - course[4]) / 20) == pytest.approx(contraction(mu, gamma), rel=0.05)


def test_the_mean_of_all_slow_models_moves_with_heavy_ball_momentum():
    springs = [Springs([centre] * 4, starts=[0.0]) for centre in (1.0, 2.0, 5.0, 8.0)]
    settings = {"update": "sgd", "learning_rate": 0.1, "period": 3, "outer_momentum": 0.6, "pull": 0.5}
    run = train("noloco", lambda rank: springs[rank], 4, settings, steps=18)
    means = np.mean([[row[4][0] for row in event_log.reports] for event_log in run.outcome.event_logs], axis=0)
    x, v = 0.0, 0.0
    for mean in means:
        v = 0.6 * v + 0.7 * (1 - 0.9**3) * (4.0 - x)  # springs are linear: the mean displacement is that of the mean
        x += v
        assert mean == pytest.approx(x, rel=1e-12)


def test_everybody_has_a_partner_and_an_odd_one_rests():
    for size in (2, 5, 8):
        for turn in range(20):
            pairs = [partner(rank, size, turn, 3) for rank in range(size)]
            assert [pairs[other] for other in pairs] == list(range(size))
            assert sum(rank == other for rank, other in enumerate(pairs)) == size % 2


def test_an_exchange_sends_two_models_between_partners():
    run = train("noloco", Springs([1.0] * 5, parameters=7), 5, {"period": 4}, steps=10)
    shape = type("Shape", (), {"workers": 5, "parameters": 7, "steps": 10})
    assert run.outcome.trace().traffic().sum() / 8 == elements_sent(shape, Settings(period=4)) == 3 * 4 * 2 * 7
