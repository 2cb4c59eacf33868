"""TernGrad: one of three values for every number, one scale for all ranks, sums that stay whole numbers."""

import numpy as np
import pytest

from algorithms.compression.terngrad import width
from algorithms.parts.bit_packing import pack
from tests.contract.compression.meetings import codec, draw, expect_right_in_the_mean, layout, meet, told

D = 1000
FLAT = layout((D,))
THROWS = 400


def throws(v, count=THROWS, **settings):
    one = codec("terngrad", FLAT, **settings)
    return np.array([told(one, v) for _ in range(count)])


def test_without_clipping_it_is_right_in_the_mean():
    v = draw(0, D)
    expect_right_in_the_mean(throws(v, 4000, clip=0), v, np.abs(v).max())


def test_its_variance_is_the_scale_times_the_sum_of_sizes_less_the_sum_of_squares():
    v = draw(0, D)
    errors = np.square(throws(v, clip=0) - v).sum(1)
    exactly = np.abs(v).max() * np.abs(v).sum() - np.square(v).sum()
    assert abs(errors.mean() - exactly) < 4 * errors.std() / np.sqrt(THROWS)


def test_clipping_makes_it_less_noisy_and_takes_a_little_from_the_largest():
    v = draw(1, D)
    clipped, whole = throws(v, clip=2.5), throws(v, clip=0)
    limit = 2.5 * np.sqrt(np.square(v).mean())
    assert np.abs(clipped).max() == pytest.approx(limit)
    assert np.square(clipped - v).mean() < np.square(whole - v).mean()
    np.testing.assert_allclose(clipped.mean(0), v.clip(-limit, limit), atol=5 * limit / np.sqrt(THROWS))


def test_every_tensor_has_a_scale_of_its_own():
    one = codec("terngrad", layout((10, 5), (50,)), clip=0)
    v = np.concatenate([draw(2, 50), 1000 * draw(3, 50)])
    bits, scales = one.encode(v)
    assert scales.tolist() == [np.abs(v[:50]).max(), np.abs(v[50:]).max()]
    assert len(bits) == 100 * 2 // 8


def test_a_gradient_whose_numbers_are_all_of_one_size_is_sent_as_it_is():
    v = np.where(draw(4, D) > 0, 0.25, -0.25)
    np.testing.assert_array_equal(told(codec("terngrad", FLAT), v), v)
    assert not told(codec("terngrad", FLAT), np.zeros(D)).any()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 7])
def test_ranks_share_the_largest_scale_and_their_sum_is_a_whole_number_of_it(ranks):
    given = np.array([[draw(rank, D)] for rank in range(ranks)])
    given[ranks // 2] *= 5  # neither the first nor the last
    scale = np.abs(given).max()
    levels = meet("terngrad", given, FLAT, clip=0).means[0] * ranks / scale
    np.testing.assert_allclose(levels, np.rint(levels), atol=1e-12)
    assert 0 < np.abs(levels).max() <= ranks + 1e-12


def test_nothing_is_lost_when_the_codes_are_summed():
    given = np.array([[draw(rank, D)] for rank in range(5)])
    met = meet("terngrad", given, FLAT, error_feedback=True)
    codes = given[:, 0] - met.kept  # what each rank's own code says
    np.testing.assert_allclose(met.means[0], codes.mean(0), atol=1e-12)


@pytest.mark.parametrize(("ranks", "down"), [(2, 3), (4, 4), (8, 5)])
def test_it_takes_two_bits_up_and_those_of_a_sum_down(ranks, down):
    assert down == np.ceil(np.log2(2 * ranks + 1))
    d = 64 * ranks
    given = np.array([[draw(rank, d, np.float32)] for rank in range(ranks)])
    met = meet("terngrad", given, layout((d // 2,), (d // 2,)))
    share, scales = d // ranks, 2 * 4
    assert met.sent.tolist() == [(ranks - 1) * (share * (2 + down) // 8 + scales)] * ranks


def test_many_ranks_need_sums_that_no_byte_holds():
    one, sums, out = codec("terngrad", FLAT), np.random.default_rng(0).integers(0, 601, D), np.empty(D)
    bits = pack(sums, width(300))
    assert len(bits) == 10 * D / 8
    one.read(bits, np.ones(1), 300, out, slice(0, D))
    np.testing.assert_allclose(300 * out, sums - 300, atol=1e-12)
