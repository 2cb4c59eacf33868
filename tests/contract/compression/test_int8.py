"""int8: seven bits are exact where they are enough, and sums are as good as their codes whatever their number."""

import numpy as np
import pytest

from tests.contract.compression.meetings import codec, draw, layout, meet, told

D = 1024
FLAT = layout((D,))


def whole_numbers(seed, n=D):
    return np.random.default_rng(seed).integers(-127, 128, n).astype(float)


@pytest.mark.parametrize("exponent", [-126, -60, 0, 9, 120])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_that_share_an_exponent_and_fit_seven_bits_are_exact(exponent, dtype):
    v = (whole_numbers(0) * 2.0**exponent).astype(dtype)
    np.testing.assert_array_equal(told(codec("int8", FLAT), v), v)


def test_every_block_has_an_exponent_of_its_own():
    v = whole_numbers(1) * np.repeat(2.0 ** np.arange(-8, 8), 64)
    np.testing.assert_array_equal(told(codec("int8", FLAT, block=64), v), v)
    assert not np.array_equal(told(codec("int8", FLAT, block=128), v), v)


def test_the_larger_the_blocks_the_larger_the_error():
    v = draw(2, D) * np.exp(draw(3, D))
    errors = [np.square(told(codec("int8", FLAT, block=block), v) - v).sum() for block in (1, 4, 16, 64, 256, 1024)]
    assert errors == sorted(errors)
    assert errors[0] < errors[-1] / 100


def test_it_is_off_by_half_a_unit_at_most():
    v = draw(4, D).reshape(-1, 32)
    off = np.abs(told(codec("int8", FLAT, block=32), v.ravel()).reshape(-1, 32) - v)
    unit = 2.0 ** np.ceil(np.log2(np.abs(v).max(1, keepdims=True) / 127))
    assert (off <= unit / 2).all() and (off > 0.4 * unit).any()


@pytest.mark.parametrize("ranks", [2, 5, 64])
def test_sums_of_many_do_not_overflow_and_cost_no_bits(ranks):
    most = np.full((ranks, 1, 128), 127.0)
    np.testing.assert_array_equal(meet("int8", most, layout((128,))).means[0], most[0, 0])


def test_a_number_is_rounded_twice_whatever_the_number_of_ranks():
    for ranks in (2, 8, 32):
        given = np.array([[draw(rank, 256)] for rank in range(ranks)])
        met = meet("int8", given, layout((256,)), block=8)
        unit = 2.0 ** np.ceil(np.log2(np.abs(given).max() / 127))
        assert np.abs(met.means[0] - given.mean(0)[0]).max() <= unit  # half a unit each


@pytest.mark.parametrize("ranks", [2, 4])
def test_it_takes_a_byte_for_a_number_and_one_for_a_block_twice(ranks):
    given = np.array([[draw(rank, D, np.float32)] for rank in range(ranks)])
    share = D // ranks
    assert meet("int8", given, FLAT, block=64).sent.tolist() == [2 * (ranks - 1) * (share + share // 64)] * ranks


def test_small_numbers_beside_large_ones_come_with_feedback():
    given = np.full((3, 100, 8), 0.001)
    given[:, :, 0] = 1.0
    lost, kept = (meet("int8", given, layout((8,)), error_feedback=on).means.sum(0)[1] for on in (False, True))
    assert lost == 0 and kept == pytest.approx(0.1, abs=0.02)
