"""QSGD: right in the mean, and as noisy as the theory allows; bits as they are counted."""

from itertools import pairwise

import numpy as np
import pytest

from algorithms.parts.error_feedback import ErrorFeedback
from cluster.comm import nbytes
from tests.contract.compression.meetings import codec, draw, expect_right_in_the_mean, layout, meet, told

D = 1000
FLAT = layout((D,))
THROWS = 400
THEORY = {"norm": "2", "bucket": D}


def throws(v, count=THROWS, **settings):
    one = codec("qsgd", FLAT, **settings)
    return np.array([told(one, v) for _ in range(count)])


def expected(v, levels):
    """E |q - v|^2 of one bucket by its length: each number is rounded up with its fraction's probability."""
    unit = np.linalg.norm(v) / levels
    fraction = np.abs(v) / unit % 1
    return np.sum(unit**2 * fraction * (1 - fraction))


each_number_of_levels = pytest.mark.parametrize("levels", [1, 4, 16])


@each_number_of_levels
@pytest.mark.parametrize("norm", ["2", "max"])
def test_it_is_right_in_the_mean(levels, norm):
    v = draw(0, D)
    size = np.linalg.norm(v) if norm == "2" else np.abs(v).max()
    expect_right_in_the_mean(throws(v, 4000, levels=levels, norm=norm, bucket=D), v, size / levels)


@each_number_of_levels
def test_its_variance_is_that_of_rounding_by_chance_and_within_the_bound(levels):
    v = draw(0, D)
    errors = np.square(throws(v, levels=levels, **THEORY) - v).sum(1)
    assert abs(errors.mean() - expected(v, levels)) < 4 * errors.std() / np.sqrt(THROWS)
    assert errors.mean() <= min(D / levels**2, np.sqrt(D) / levels) * np.square(v).sum()


@pytest.mark.parametrize(("levels", "variance", "numbers"), [(1, 24.4, 25), (4, 5.35, 102), (16, 0.66, 398)])
def test_of_a_thousand_normal_numbers_it_keeps_so_many_and_is_so_noisy(levels, variance, numbers):
    variances, kept = [], []
    for seed in range(20):
        v = draw(seed, D)
        q = throws(v, 20, levels=levels, **THEORY)
        variances.append(np.square(q - v).sum(1).mean() / np.square(v).sum())
        kept.append(np.count_nonzero(q, axis=1).mean())
    assert np.mean(variances) == pytest.approx(variance, rel=0.03)
    assert np.mean(kept) == pytest.approx(numbers, rel=0.03)
    assert max(kept) <= levels * (levels + np.sqrt(D))  # 33, 142, 762


def test_with_more_and_more_levels_it_becomes_the_gradient():
    v = draw(1, D)
    errors = [np.linalg.norm(throws(v, 1, levels=levels, bucket=8) - v) for levels in (1, 3, 15, 127)]
    assert all(finer < coarser / 2 for coarser, finer in pairwise(errors))
    assert errors[-1] < 0.01 * np.linalg.norm(v)


def test_smaller_buckets_are_less_noisy():
    v = draw(2, D)
    noise = [np.square(throws(v, 50, levels=1, norm="2", bucket=size) - v).mean() for size in (1000, 250, 64, 16)]
    assert noise == sorted(noise, reverse=True)
    assert noise[0] > 3 * noise[2]  # sqrt(1000 / 64) = 4


@pytest.mark.parametrize(("levels", "bits"), [(1, 2), (2, 3), (3, 3), (4, 4), (7, 4), (8, 5), (127, 8)])
def test_a_number_takes_its_sign_and_its_level_in_bits_and_a_bucket_four_bytes(levels, bits):
    assert bits == 1 + np.ceil(np.log2(levels + 1))
    packed, norms = codec("qsgd", FLAT, levels=levels, bucket=300).encode(draw(0, D, np.float32))
    assert packed.dtype == np.uint8 and len(packed) == bits * D / 8
    assert norms.dtype == np.float32 and len(norms) == 4


def test_ranks_throw_different_dice_so_that_their_mean_is_less_noisy():
    v = draw(3, D)

    def noise(ranks):
        q = meet("qsgd", np.tile(v, (ranks, 20, 1)), FLAT, levels=1, bucket=64).means
        return np.square(q - v).mean()

    assert noise(8) == pytest.approx(noise(1) / 8, rel=0.1)


def test_another_seed_throws_other_dice():
    v = draw(4, D)
    assert not np.array_equal(told(codec("qsgd", FLAT, seed=1), v), told(codec("qsgd", FLAT, seed=2), v))


def test_everybody_gets_everybodys_code():
    given = np.array([[draw(rank, D, np.float32)] for rank in range(3)])
    code = nbytes(codec("qsgd", FLAT).encode(given[0, 0]))
    assert meet("qsgd", given, FLAT).sent.tolist() == [2 * code] * 3


def test_an_error_that_is_kept_grows_without_bound_where_the_code_is_coarse_and_stays_where_it_is_fine():
    def kept(**settings):
        exchange = ErrorFeedback(codec("qsgd", FLAT, error_feedback=True, **settings))
        for step in range(60):
            exchange.encode(draw(step, D))
            yield np.linalg.norm(exchange.error) / np.sqrt(D)  # in sizes of a gradient

    coarse, fine = list(kept(levels=1, **THEORY)), list(kept(levels=7, norm="max", bucket=64))
    assert coarse[9] > 100 and coarse[29] > 10 * coarse[9] and coarse[59] > 10 * coarse[29]
    assert max(fine) < 0.2


def test_zeros_stay_zeros():
    assert not told(codec("qsgd", FLAT), np.zeros(D)).any()
