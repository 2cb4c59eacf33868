"""signSGD: a vote on every number, and what becomes of it when sizes count after all."""

import math

import numpy as np
import pytest

from algorithms.parts.error_feedback import ErrorFeedback
from tests.contract.compression.meetings import codec, descend, draw, layout, meet, told

D = 300
FLAT = layout((D,))


def votes(*gradients, **settings):
    """What the workers with these gradients decide."""
    return meet("sign", np.array(gradients)[:, None], FLAT, beta=0.0, **settings).means[0]


@pytest.mark.parametrize("ranks", [1, 2, 3, 6])
def test_workers_who_all_agree_decide_the_sign(ranks):
    g = draw(0, D)
    np.testing.assert_array_equal(votes(*[g] * ranks), np.sign(g))


@pytest.mark.parametrize("ranks", [3, 4, 7, 8])
def test_as_long_as_fewer_than_half_of_them_lie_what_all_others_agree_on_stands(ranks):
    g, liars = draw(1, D), (ranks - 1) // 2
    for flipped in range(liars + 1):
        lying = [-g if rank < flipped else g for rank in range(ranks)]
        np.testing.assert_array_equal(votes(*lying), np.sign(g))
    np.testing.assert_array_equal(votes(*[-g] * (ranks // 2 + 1), *[g] * ((ranks - 1) // 2)), -np.sign(g))


def test_the_majority_counts_heads_and_not_sizes():
    loud, quiet = np.full(D, 1000.0), np.full(D, -0.001)
    np.testing.assert_array_equal(votes(loud, quiet, quiet), np.full(D, -1.0))


def test_a_tie_goes_as_the_owner_of_the_part_votes():
    g = np.ones(D)
    decided = votes(g, -g, -g, g)
    parts = np.repeat([1.0, -1.0, -1.0, 1.0], D // 4)
    np.testing.assert_array_equal(decided, parts)


def test_numbers_that_are_zero_move_up_and_down_in_turn_and_stay_where_they_are():
    met = meet("sign", np.zeros((3, 6, D)), FLAT)
    np.testing.assert_array_equal(met.means, np.tile([[1.0], [-1.0]], (3, D)))


def test_a_worker_votes_as_the_average_of_its_gradients_would():
    given = np.array([draw(step, D) for step in range(12)])
    means = meet("sign", given[None], FLAT, beta=0.9).means
    m = np.zeros(D)
    for g, mean in zip(given, means, strict=True):
        m = 0.9 * m + 0.1 * g
        np.testing.assert_array_equal(mean, np.sign(m))
    assert (np.sign(given) != means).mean() > 0.1


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_a_step_is_one_bit_up_and_one_bit_down_for_every_number_of_others(ranks):
    d = 40 * ranks
    given = np.array([[draw(rank, d, np.float32)] for rank in range(ranks)])
    up = down = (ranks - 1) * d // ranks // 8  # of one's own part the owner knows
    assert meet("sign", given, layout((d,))).sent.tolist() == [up + down] * ranks
    assert 4 * 2 * (ranks - 1) * d // ranks == 32 * (up + down)  # a ring of float32


def test_one_number_that_is_none_makes_its_part_none_and_a_finite_gradient_never():
    g = draw(2, D)
    bad = g.copy()
    bad[10] = np.nan
    decided = votes(g, bad, g)
    assert np.isnan(decided).tolist() == [True] * 100 + [False] * 200


# with sizes and feedback


def test_with_sizes_every_number_becomes_the_mean_size_of_its_tensor():
    v = np.concatenate([draw(3, 100), 50 * draw(4, 60)])
    q = told(codec("sign", layout((10, 10), (60,)), error_feedback=True), v)
    sizes = np.repeat([np.abs(v[:100]).mean(), np.abs(v[100:]).mean()], [100, 60])
    np.testing.assert_allclose(q, np.sign(v) * sizes, rtol=1e-14)


def test_of_normal_numbers_signs_and_a_size_lose_one_minus_two_over_pi():
    lost = []
    for seed in range(100):
        v = draw(seed, 1000)
        lost.append(np.square(v - told(codec("sign", layout((1000,)), error_feedback=True), v)).sum() / (v @ v))
    assert abs(np.mean(lost) - (1 - 2 / math.pi)) < 4 * np.std(lost) / 10 + 1 / 1000


def valley(steps, rate=0.004, **settings):
    """How far signs come in eps |x + y| + |x - y| from (1, 1): every subgradient is (+, -) or (-, +)."""
    x, eps = np.ones(2), 0.5
    exchange = ErrorFeedback(
        codec("sign", layout((2,)), beta=0.0, **settings), settings.get("error_feedback", False), "codec"
    )
    for _ in range(steps):
        g = eps * np.sign(x.sum()) * np.array([1.0, 1.0]) + np.sign(x[0] - x[1]) * np.array([1.0, -1.0])
        if x[0] == x[1]:
            g += np.array([1.0, -1.0])
        told_of = np.empty(2)
        exchange.codec.decode(exchange.encode(g), told_of)
        x -= rate * told_of
    return eps * abs(x.sum()) + abs(x[0] - x[1])


def test_a_valley_that_signs_alone_cannot_leave_is_left_with_feedback():
    assert valley(1000) == pytest.approx(1.0, abs=0.01)  # as at the start
    assert valley(1000, error_feedback=True) < 0.02


def test_where_few_disagree_with_many_the_vote_finds_the_median_and_feedback_the_mean():
    centres = np.array([[0.2], [0.2], [0.8]]) * np.ones(40)
    np.testing.assert_allclose(descend("sign", centres, 100, 0.005, beta=0.0), 0.2, atol=0.006)
    np.testing.assert_allclose(descend("sign", centres, 100, 0.1, error_feedback=True), 0.4, atol=0.01)
