"""Numbers of an independent program in float64, and what is sent, kept and averaged."""

import numpy as np
import pytest

from algorithms.synchronous.demo import cosines, subtract_largest
from tests.training import Springs, train


class Given(Springs):
    """Gradients given in advance, (steps, d), wherever they are taken."""

    def __init__(self, gradients):
        super().__init__([0.0] * 64, starts=[0.0], parameters=np.shape(gradients)[1])
        self.gradients = iter(np.array(gradients, float))

    def gradient(self, w, batch):
        return 0.0, next(self.gradients)


def models(gradients, **settings):
    """The models of all ranks after the steps of `gradients`, (ranks, steps, d)."""
    own = [Given(one) for one in gradients]
    return train("demo", lambda rank: own[rank], len(own), settings, steps=len(gradients[0])).models


def subtract(m, k):
    """(index, values) of what is sent of m, one segment, and what is kept."""
    m = np.array([m], float)
    message = subtract_largest(m, k, cosines(m.shape[1]), np.empty_like(m), np.empty_like(m))
    return *message, m[0]


def test_the_transform_is_that_of_an_independent_program_and_orthogonal():
    assert cosines(4) @ [1, 2, 3, 4] == pytest.approx([5, -2.230442497388, 0, -0.158512667781], abs=1e-12)
    for n in (1, 2, 64):
        assert np.allclose(cosines(n) @ cosines(n).T, np.eye(n), atol=1e-13)


def test_what_is_sent_is_subtracted_from_the_momentum_as_in_an_independent_program():
    index, values, kept = subtract([0.1, 0.2, 0.3, 0.4], 1)
    assert index.tolist() == [0] and values == pytest.approx([0.5], abs=1e-12)
    assert kept == pytest.approx([-0.15, -0.05, 0.05, 0.15], abs=1e-12)


def test_what_is_sent_and_what_is_kept_make_up_the_momentum():
    m = np.random.default_rng(0).standard_normal(16)
    index, values, kept = subtract(m, 5)
    assert np.allclose(kept + cosines(16)[index].T @ values, m, atol=1e-13)
    assert np.allclose(cosines(16)[index] @ kept, 0, atol=1e-13)


def test_a_frequency_that_is_left_out_grows_until_it_is_among_the_largest():
    g = 3.5 * cosines(8)[0] + cosines(8)[3]
    m, sent = np.zeros(8), []
    for _ in range(4):
        index, _, m = subtract(m + g, 1)
        sent += index.tolist()
    assert sent == [0, 0, 0, 3]


def test_several_workers_take_the_steps_of_an_independent_program():
    steps, d, segment, k, decay, rate = 12, 10, 4, 2, 0.8, 0.01
    gradients = np.random.default_rng(1).standard_normal((3, steps, d))
    w, m = np.zeros(d), np.zeros((3, 12))  # the last segment is filled up with zeros
    for step in range(steps):
        total, senders = np.zeros(12), np.zeros(12)
        for rank in range(3):
            m[rank] *= decay
            m[rank, :d] += rate * gradients[rank, step]
            for start in range(0, 12, segment):
                frequencies = cosines(segment) @ m[rank, start : start + segment]
                for j in np.argsort(-np.abs(frequencies))[:k]:
                    total[start + j] += frequencies[j]
                    senders[start + j] += 1
                    m[rank, start : start + segment] -= frequencies[j] * cosines(segment)[j]
        mean = total / np.maximum(senders, 1)
        w -= rate * np.sign((mean.reshape(-1, segment) @ cosines(segment)).ravel()[:d])
    for model in models(gradients, fraction=k / segment, segment=segment, decay=decay, learning_rate=rate):
        assert np.allclose(model, w, atol=1e-12)


def test_a_frequency_is_averaged_over_those_that_sent_it_and_not_over_all():
    low, high = cosines(2)
    model = models([[low], [low], [1.5 * high]], fraction=0.5, segment=2, learning_rate=0.1)[0]
    assert model == pytest.approx([-0.1, 0.1])  # low + 1.5 high; over all workers it would be 2/3 low + 1/2 high


def test_one_worker_that_sends_everything_is_sign_sgd():
    gradients = np.random.default_rng(2).standard_normal((9, 7))
    model = models([gradients], fraction=1, segment=4, learning_rate=0.01)[0]
    assert np.allclose(model, -0.01 * np.sign(gradients).sum(axis=0), atol=1e-12)


def test_the_length_of_gradients_changes_nothing():
    gradients = np.random.default_rng(3).standard_normal((2, 8, 10))
    settings = {"segment": 4, "fraction": 0.25, "learning_rate": 0.01}
    assert np.array_equal(models(gradients, **settings), models(1024 * gradients, **settings))


def test_every_worker_sends_a_position_and_a_number_for_each_frequency_to_all_others():
    gradients = np.ones((3, 5, 130))
    own = [Given(one) for one in gradients]
    run = train("demo", lambda rank: own[rank], 3, {"fraction": 0.05}, steps=5)
    segments, k, words = 3, 3, 4 + 8  # k: 0.05 of 64
    assert run.outcome.trace().traffic().sum() == 5 * 3 * 2 * segments * k * words
