"""Compression: what a selection may never overlook, and what a word of 32 bits says."""

import math

import numpy as np
import pytest

import kernels

both_types = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def draw(seed: int, dtype: type, n: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(dtype)


def largest(v: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """(index, values) of the k largest."""
    values, index = np.empty(k, v.dtype), np.empty(k, np.int32)
    assert kernels.select(values, index, v, *kernels.kth_largest(v, k)) == k
    return index, values


SPREAD = {
    "normal": lambda dtype: draw(1, dtype, 1000),
    "many decades": lambda dtype: draw(1, dtype, 1000) * np.logspace(-37, 37, 1000).astype(dtype),
    "ties": lambda dtype: draw(1, dtype, 1000).round(1),
    "two values": lambda dtype: np.where(draw(1, dtype, 1000) > 0, -2, 2).astype(dtype),
    "zeros of both signs": lambda dtype: np.where(draw(1, dtype, 1000) > 1, 1, -0.0).astype(dtype),
    "denormal": lambda dtype: draw(1, dtype, 1000) * np.finfo(dtype).smallest_normal,
    "infinite": lambda dtype: np.where(draw(1, dtype, 1000) > 1, -np.inf, draw(2, dtype, 1000)).astype(dtype),
}


@both_types
@pytest.mark.parametrize("spread", SPREAD)
@pytest.mark.parametrize("k", [1, 3, 500, 999, 1000])
def test_the_k_largest_are_those_that_sorting_finds_the_first_of_equal_ones(dtype, spread, k):
    v = SPREAD[spread](dtype)
    first = np.sort(np.argsort(-np.abs(v), kind="stable")[:k])
    index, values = largest(v, k)
    np.testing.assert_array_equal(index, first)
    np.testing.assert_array_equal(values, v[first])


@both_types
def test_a_nan_is_the_largest_of_all(dtype):
    v = draw(1, dtype, 100)
    v[[7, 60]] = math.nan, math.inf
    assert largest(v, 2)[0].tolist() == [7, 60]
    v[90] = -math.nan
    assert largest(v, 2)[0].tolist() == [7, 90]
    assert math.isnan(kernels.kth_largest(v, 2)[0])


def test_of_none_there_is_no_smallest_and_of_too_many_there_is_none():
    cut, ties = kernels.kth_largest(np.ones(3), 0)
    assert math.isnan(cut) and ties == 0
    assert kernels.select(np.empty(0), np.empty(0, np.int32), np.ones(3), cut, ties) == 0
    with pytest.raises(ValueError, match=r"3 numbers .*4.* 1 to 3"):
        kernels.kth_largest(np.ones(3), 4)


@both_types
@pytest.mark.parametrize("room", [0, 3, 10])
def test_without_room_a_selection_counts(dtype, room):
    v = np.arange(-5, 5).astype(dtype)
    values, index = np.full(room, 99, dtype), np.full(room, 99, np.int32)
    assert kernels.select(values, index, v, 3, len(v)) == 5  # -5, -4, -3, 3 and 4
    found = [0, 1, 2, 8, 9][:room]
    assert index.tolist() == found + [99] * (room - len(found))
    assert values.tolist() == v[found].tolist() + [99] * (room - len(found))


@both_types
def test_a_word_has_the_place_in_31_bits_and_the_sign_in_the_first(dtype):
    words = np.zeros(5, np.int32)
    assert kernels.threshold(words, np.array([-3, 0.5, 3, -1, 1], dtype), 1.0) == 2
    assert words[:2].tolist() == [~0, 2]
    bits = words[:2].view(np.uint32)
    assert (bits >> 31).tolist() == [1, 0]
    assert (bits & 0x7FFFFFFF).tolist() == [0x7FFFFFFF, 2]  # of a minus the place is turned over


@both_types
def test_words_bring_the_threshold_to_their_places_and_nothing_elsewhere(dtype):
    v, words, out = draw(1, dtype, 257), np.zeros(257, np.int32), np.zeros(257, dtype)
    count = kernels.threshold(words, v, 0.7)
    kernels.scatter_signs(out, words[:count], 0.7)
    np.testing.assert_array_equal(out, np.where(np.abs(v) > dtype(0.7), np.sign(v) * dtype(0.7), 0))


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_word_cannot_say_what_is_no_number_and_says_so(bad):
    v = draw(1, np.float32, 257)
    v[100] = bad
    assert kernels.threshold(np.zeros(257, np.int32), v, 0.7) == -1


@both_types
def test_a_long_vector_is_clipped_to_the_length_it_may_have_and_a_short_one_left_alone(dtype):
    v = draw(1, dtype, 1000)
    size = float(np.linalg.norm(v.astype(np.float64)))
    short, long = v.copy(), v.copy()
    kernels.clip(short, size * 1.001)
    kernels.clip(long, size / 3)
    np.testing.assert_array_equal(short, v)
    np.testing.assert_allclose(long, v / 3, rtol=1e-5)


def test_clipping_hides_no_nan():
    v = draw(1, np.float32, 257)
    v[100] = math.nan
    kernels.clip(v, 0.1)
    assert np.flatnonzero(np.isnan(v)).tolist() == [100]


@both_types
def test_what_gathers_with_everything_sent_is_the_path_of_momentum(dtype):
    u, v, w, memory = (np.zeros(257, dtype) for _ in range(4))
    total = np.zeros(257, dtype)
    for step in range(10):
        g = draw(step, dtype, 257)
        kernels.correct(v, u, g, 0.9, False)
        kernels.momentum(w, memory, g, 1.0, 0.9)
        total -= v
        v[:] = 0
        np.testing.assert_array_equal(u, memory)
    np.testing.assert_array_equal(total, w)


@both_types
def test_ahead_it_is_the_path_of_nesterov(dtype):
    u, v, w, memory, total = (np.zeros(257, dtype) for _ in range(5))
    for step in range(10):
        g = draw(step, dtype, 257)
        kernels.correct(v, u, g, 0.9, True)
        kernels.nesterov(w, memory, g, 1.0, 0.9)
        total -= v
        v[:] = 0
    np.testing.assert_allclose(total, w, rtol=0, atol=200 * np.finfo(dtype).eps)


def test_adding_what_was_sent_costs_what_was_sent_however_long_the_vector():
    index, values = np.arange(5, dtype=np.int32), np.ones(5)
    assert kernels.scatter_add.price(np.zeros(10), index, values) == kernels.scatter_add.price(
        np.zeros(10_000), index, values
    )


@both_types
@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_of_each_row_the_k_largest_come_in_order_of_magnitude_the_first_of_equal_ones_first(dtype, k):
    x = np.stack([SPREAD[spread](dtype)[:9] for spread in SPREAD])
    x[0, 5] = math.nan
    values, index = np.empty((len(x), k), dtype), np.empty((len(x), k), np.int32)
    kernels.row_top_k(values, index, x)
    magnitude = np.where(np.isnan(x), np.inf, np.abs(x))
    places = np.argsort(-magnitude, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(index, places + 9 * np.arange(len(x))[:, None])
    np.testing.assert_array_equal(values, np.take_along_axis(x, places, 1))


def test_more_numbers_than_a_row_has_are_refused():
    with pytest.raises(ValueError, match="fewer numbers"):
        kernels.row_top_k(np.empty((2, 4)), np.empty((2, 4), np.int32), np.ones((2, 3)))
