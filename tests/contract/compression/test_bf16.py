"""bf16: half the bytes, eight bits of mantissa, sums in full."""

import numpy as np
import pytest

from cluster import simulated
from tests.contract.compression.meetings import codec, draw, layout, meet, told

D = 720
FLAT = layout((D,))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_of_eight_bits_are_exact_at_any_size(dtype):
    v = (np.random.default_rng(0).integers(-256, 257, D) * 2.0 ** np.linspace(-120, 118, D).round()).astype(dtype)
    np.testing.assert_array_equal(told(codec("bf16", FLAT), v), v)


def test_others_are_off_by_a_256th_at_most():
    v = draw(1, D)
    off = np.abs(told(codec("bf16", FLAT), v) / v - 1)
    assert 2**-9 < off.max() <= 2**-8


@pytest.mark.parametrize("ranks", [2, 3, 8])
def test_every_rank_sends_half_the_bytes_of_a_ring(ranks):
    given = np.array([[draw(rank, D, np.float32)] for rank in range(ranks)])
    plain = simulated.run(lambda comm: comm.all_reduce(draw(comm.rank, D, np.float32)), ranks, collective="ring")
    assert (2 * meet("bf16", given, FLAT).sent == plain.trace().traffic().sum(1)).all()


@pytest.mark.parametrize("ranks", [2, 5, 32])
def test_codes_are_added_in_full_and_rounded_once_more(ranks):
    given = np.array([[draw(rank, 64, np.float32)] for rank in range(ranks)])
    one = codec("bf16", layout((64,)))
    total = np.zeros(64, np.float32)
    for row in given[:, 0]:
        total += told(one, row)
    np.testing.assert_array_equal(meet("bf16", given, layout((64,))).means[0], told(one, total * np.float32(1 / ranks)))


def test_what_a_sum_of_bf16_numbers_would_swallow_is_not_lost():
    given = np.ones((8, 1, 1), np.float32)
    given[0] = 256  # in bf16, 256 + 1 is 256
    assert meet("bf16", given, layout((1,))).means[0, 0] == 33.0  # 263 / 8 is 32.875, to 8 bits


def test_what_rounding_loses_comes_with_feedback():
    given = np.full((2, 64, 4), 1 + 2**-9)
    lost, kept = (meet("bf16", given, layout((4,)), error_feedback=on).means.mean(0) for on in (False, True))
    assert (lost == 1).all()
    np.testing.assert_allclose(kept, 1 + 2**-9, atol=2**-7 / 64)
