"""Random-k: the same places everywhere, so that a sum can be formed on the way."""

import numpy as np
import pytest

from algorithms.compression import attach, find, random_k
from cluster import simulated

D = 400
LAYOUT = ((slice(0, D), (D,)),)


def gradient(rank):
    return np.random.default_rng(rank).standard_normal(D)


def means(ranks, steps=1, **settings):
    def program(comm):
        one = attach(comm, find("random_k"), random_k.Settings(**settings), LAYOUT, 0)
        return [one.all_reduce(gradient(comm.rank), op="mean") for _ in range(steps)]

    outcome = simulated.run(program, ranks, collective="ring")
    return outcome.results[0], outcome.trace().traffic().sum()


@pytest.mark.parametrize("ranks", [1, 3, 4])
def test_at_its_places_it_is_the_mean_and_no_index_travels(ranks):
    (told,), moved = means(ranks, density=0.1)
    places = np.flatnonzero(told)
    mean = sum(gradient(rank) for rank in range(ranks)) / ranks
    assert len(places) == D / 10
    np.testing.assert_allclose(told[places], mean[places], rtol=1e-14)
    assert moved == 2 * (ranks - 1) * 40 * 8


def test_without_feedback_it_is_right_in_the_mean():
    told, _ = means(1, steps=2000, density=0.1, error_feedback=False)
    g = gradient(0)
    error = np.mean(told, axis=0) - g
    spread = np.abs(g) * np.sqrt((1 / 0.1 - 1) / 2000)  # a number is 10 g with probability 1/10, else 0
    assert (np.abs(error) < 5 * spread).all()
    assert np.mean(np.square(error / spread)) == pytest.approx(1, abs=0.25)


def test_with_feedback_a_place_brings_all_its_gradients_when_its_turn_comes():
    told, _ = means(1, steps=60, density=0.1)
    g, waited = gradient(0), np.zeros(D)
    for sent in told:
        waited += 1
        places = np.flatnonzero(sent)
        np.testing.assert_allclose(sent[places], waited[places] * g[places], rtol=1e-12)
        waited[places] = 0
