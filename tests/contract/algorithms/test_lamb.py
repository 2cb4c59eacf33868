"""Numbers of an independent program in float64: two tensors, (3, 4) and (0.6, 0.8), with a constant gradient."""

import numpy as np
import pytest

from algorithms.synchronous.lamb import Settings
from tests.training import Springs, train
from workloads.workload import Evaluation

W, G = np.array([3, 4, 0.6, 0.8]), np.array([1, -2, 0.5, 0.5])
STEADY = {"warm_up": "none", "base_batch": 1}


class Steady(Springs):
    """The gradient of worker r is G + spread (-1)^r, whatever the weights."""

    def __init__(self, scale=1.0, spread=0.0, shapes=((2,), (2,))):
        super().__init__([0.0] * 64, parameters=4)
        self.scale, self.spread = scale, spread
        self.tensors = ((slice(0, 2), shapes[0]), (slice(2, 4), shapes[1]))

    def start(self, seed):
        return W.copy()

    def gradient(self, w, batch):
        return 0.0, self.scale * (G + self.spread)

    def evaluate(self, w):
        return Evaluation(0.0, np.nan)


def course(steps, workload=None, **settings):
    run = train("lamb", workload or Steady(), 1, STEADY | settings, steps=steps)
    return [row[4] for row in run.outcome.event_logs[0].reports]


LARS = {"rule": "lars", "learning_rate": 1.0, "trust": 0.1}


def test_lars_moves_as_an_independent_program_does():
    plain, decayed = course(3, **LARS), course(2, **LARS, weight_decay=0.01)
    assert plain[0] == pytest.approx([2.77639320225, 4.4472135955, 0.529289321881, 0.729289321881], abs=1e-11)
    assert plain[2] == pytest.approx([1.688677385279, 6.622645229443, 0.23612928612, 0.43612928612], abs=1e-11)
    assert decayed[1] == pytest.approx([2.33725408268, 5.261147570823, 0.40235174095, 0.601570522535], abs=1e-11)


def test_lamb_moves_as_an_independent_program_does():
    plain = course(1, learning_rate=0.1, eps=0)
    decayed = course(2, learning_rate=0.1, eps=1e-6, weight_decay=0.01)
    assert plain[0] == pytest.approx([2.646446609407, 4.353553390593, 0.529289321881, 0.729289321881], abs=1e-11)
    assert decayed[1] == pytest.approx([2.262791406245, 4.687107348066, 0.465705454602, 0.665438466903], abs=1e-11)


def test_a_loss_multiplied_by_1024_changes_no_bit_of_lamb():
    settings = {"learning_rate": 0.1, "eps": 0}
    assert np.array_equal(course(5, **settings), course(5, Steady(scale=1024.0), **settings))


def test_a_loss_multiplied_by_1000_changes_nothing_in_lars_but_rounding():
    assert np.allclose(course(5, **LARS), course(5, Steady(scale=1000.0), **LARS), rtol=1e-12)


def test_lambs_first_step_is_as_long_as_the_rate_says_in_every_tensor():
    step = course(1, learning_rate=0.1, eps=0)[0] - W
    lengths = [np.linalg.norm(step[place]) / np.linalg.norm(W[place]) for place in (slice(0, 2), slice(2, 4))]
    assert lengths == pytest.approx([0.1, 0.1], rel=1e-12)


def test_the_norm_is_of_the_mean_gradient_so_all_ranks_take_the_same_step():
    workers = [Steady(spread=spread) for spread in (3.0, -3.0)]
    for settings in (LARS, {"learning_rate": 0.1, "eps": 0}):
        run = train("lamb", lambda rank: workers[rank], 2, {"warm_up": "none", "base_batch": 2} | settings, steps=4)
        assert np.array_equal(*run.models) and np.allclose(run.models[0], course(4, **settings)[-1], rtol=1e-12)


def test_vectors_take_the_plain_step_if_only_matrices_are_rescaled():
    halves = Steady(shapes=((1, 2), (2,)))
    both, matrices, none = (course(1, halves, **LARS, adapt=adapt)[0] for adapt in ("all", "matrices", "none"))
    assert np.array_equal(matrices[:2], both[:2]) and np.array_equal(matrices[2:], none[2:])
    assert not np.array_equal(both, none)


@pytest.mark.parametrize(("rule", "growth"), [("lars", 4.0), ("lamb", 2.0)])
def test_with_four_times_the_batch_lars_is_four_times_as_fast_and_lamb_twice(rule, growth):
    s = Settings(rule=rule, learning_rate=0.5, base_batch=32)
    assert s.rate(step=50, per_epoch=10, batch=128) == pytest.approx(growth * 0.5)
    assert s.rate(step=0, per_epoch=10, batch=128) == 0.5
