"""Both phases, held to a program in NumPy that knows nothing of codecs or of communication."""

import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train

B1, B2, EPS = 0.9, 0.999, 1e-8
RATE, FROZEN = 0.05, 4


class Tensors(Springs):
    """Springs of two tensors, of 3 and 5 numbers, each number with its own centre; `dead` numbers have no gradient."""

    def __init__(self, centre, dead=()):
        super().__init__([0.0] * 64, parameters=8)
        self.tensors = (slice(0, 3), (3,)), (slice(3, 8), (5,))
        self.centre, self.alive = np.asarray(centre, float), ~np.isin(np.arange(8), dead)

    def gradient(self, w, batch):
        return 1.0, (w - self.centre) * self.alive


def centres(workers):
    return np.random.default_rng(3).normal(size=(workers, 8))


def signs(x, cuts):
    """Every piece of x as its signs times its mean absolute value."""
    pieces = np.split(x, cuts)
    return np.concatenate([np.where(one >= 0, 1, -1) * np.abs(one).mean() for one in pieces])


def written_out(centres, steps):
    """The model after some steps of two workers, of which each owns four numbers; tensors end after the third."""
    w, m, v = np.ones(8), np.zeros(8), np.zeros(8)
    errors, owners = np.zeros((2, 8)), np.zeros(8)
    cuts = [3, 4]  # where the first tensor and the first part end
    for t in range(1, steps + 1):
        g = w - centres
        if t <= FROZEN:
            m = B1 * m + (1 - B1) * g.mean(0)
            v = B2 * v + (1 - B2) * g.mean(0) ** 2
            w = w - RATE * (m / (1 - B1**t)) / (np.sqrt(v / (1 - B2**t)) + EPS)
            continue
        owed = B1 * m + (1 - B1) * g + errors
        sent = np.array([signs(one, cuts) for one in owed])
        errors, mean = owed - sent, sent.mean(0) + owners
        m = signs(mean, cuts)
        owners = mean - m
        w = w - RATE * (m / (1 - B1**t)) / (np.sqrt(v / (1 - B2**FROZEN)) + EPS)
    return w


@pytest.mark.parametrize("steps", [FROZEN, FROZEN + 1, 12])
def test_it_takes_the_steps_of_the_formulas(steps):
    settings = {"learning_rate": RATE, "freeze_step": FROZEN}
    run = train("one_bit_adam", lambda rank: Tensors(centres(2)[rank]), 2, settings, steps=steps)
    for w in run.models:
        assert np.allclose(w, written_out(centres(2), steps), rtol=1e-12)


def test_workers_with_unlike_data_keep_the_same_model_and_come_close_to_the_optimum():
    settings = {"learning_rate": 0.02, "freeze_step": 20}
    run = train("one_bit_adam", lambda rank: Tensors(centres(4)[rank]), 4, settings, steps=400)
    assert all(np.array_equal(w, run.models[0]) for w in run.models)
    assert np.abs(run.models[0] - centres(4).mean(0)).max() < 0.05


def test_a_weight_without_any_gradient_before_the_freeze_stays_where_it_is():
    settings = {"learning_rate": RATE, "freeze_step": FROZEN}
    run = train("one_bit_adam", lambda rank: Tensors(centres(2)[rank], dead=[1, 6]), 2, settings, steps=12)
    assert np.array_equal(np.flatnonzero(run.shipped == 1), [1, 6])


def test_once_frozen_it_sends_a_thirty_second_of_what_adam_sends():
    def sent(steps):
        run = train("one_bit_adam", Springs([1.0] * 4, parameters=32_000, dtype=np.float32), 4,
                    {"freeze_step": 5}, steps=steps)  # fmt: skip
        return run.outcome.trace().traffic().sum()

    whole, both = sent(5), sent(10)
    assert whole == 5 * 2 * 3 * 32_000 * 4
    assert (both - whole) / whole == pytest.approx(1 / 32, rel=0.01)


def test_it_learns_a_model_of_layers_as_adam_does():
    def loss(name, **settings):
        chain = ScalarChain(w=(0.5, 0.6, 0.7), x=[1.0] * 48)
        run = train(name, chain, 3, {"learning_rate": 0.01} | settings, batch=4, steps=300)
        return chain.evaluate(run.shipped).loss

    assert loss("one_bit_adam", freeze_step=50) < 1e-4 > loss("sync_sgd", update="adam")
