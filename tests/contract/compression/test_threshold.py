"""Threshold: a plus or a minus tau at a time, and what is beyond it waits."""

import numpy as np

from algorithms.compression import threshold
from algorithms.parts.error_feedback import ErrorFeedback

D = 500


def exchange(tau):
    return ErrorFeedback(threshold.Codec(threshold.Settings(threshold=tau), (), 0, 1, 0))


def stream(steps):
    draw = np.random.default_rng(1)
    return [draw.standard_normal(D) for _ in range(steps)]


def told(one, g):
    out = np.empty(D)
    one.codec.decode(one.encode(g), out)
    return out


def test_what_arrives_is_nothing_or_the_threshold():
    one = exchange(0.75)
    for g in stream(20):
        assert np.isin(told(one, g), (-0.75, 0, 0.75)).all()


def test_the_larger_the_threshold_the_fewer_words():
    words = []
    for tau in (0.1, 0.3, 1.0, 3.0, 10.0):
        one = exchange(tau)
        words.append(sum(len(one.encode(g)) for g in stream(50)))
    assert words == sorted(words, reverse=True) and len(set(words)) == 5


def test_one_step_sends_at_most_one_threshold_so_that_more_may_stay_than_that():
    one, large = exchange(1.0), np.zeros(D)
    large[3] = 4.5
    first = told(one, large)
    assert first[3] == 1.0 and one.error[3] == 3.5  # three more steps until it is not beyond it
    later = [told(one, np.zeros(D))[3] for _ in range(5)]
    assert later == [1, 1, 1, 0, 0] and one.error[3] == 0.5


def test_a_small_gradient_is_sent_once_in_as_many_steps_as_it_goes_into_the_threshold():
    one, g = exchange(1.0), np.full(D, 0.125)
    assert sum(told(one, g)[0] for _ in range(81)) == 10.0


def test_a_word_takes_four_bytes_whatever_the_numbers_are():
    assert exchange(0.75).encode(stream(1)[0]).dtype == np.int32
