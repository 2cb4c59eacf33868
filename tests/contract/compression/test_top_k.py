"""Top-k: exactly the largest, at two words each, worth it below one in N."""

import numpy as np
import pytest

from algorithms.compression import attach, find, top_k
from algorithms.parts.error_feedback import ErrorFeedback
from cluster import simulated

D = 1000
LAYOUT = ((slice(0, D), (D,)),)


def codec(density):
    return top_k.Codec(top_k.Settings(density=density), LAYOUT, 0, 1, 0)


def draw(seed, n=D, dtype=np.float64):
    return np.random.default_rng(seed).standard_normal(n).astype(dtype)


def traffic(ranks, density, d=D, compressed=True):
    """Bytes of one mean of d float32 numbers."""

    def program(comm):
        layout = ((slice(0, d), (d,)),)
        one = attach(comm, find("top_k"), top_k.Settings(density=density), layout, 0) if compressed else comm
        one.all_reduce(draw(comm.rank, d, np.float32), op="mean")

    return simulated.run(program, ranks, collective="ring").trace().traffic().sum()


def test_what_is_sent_are_the_largest_and_their_places_in_32_bits_each():
    v = draw(1, dtype=np.float32)
    index, values = codec(0.05).encode(v)
    assert sorted(index) == sorted(np.argsort(-np.abs(v))[:50])
    assert index.dtype == np.int32 and values.dtype == np.float32
    np.testing.assert_array_equal(values, v[index])


@pytest.mark.parametrize("density", [0.001, 0.05, 0.5, 1.0])
def test_what_is_lost_is_at_most_one_minus_the_density(density):
    one, told = codec(density), np.empty(D)
    for v, exactly in ((draw(2), False), (np.where(draw(3) > 0, 1.0, -1.0), True)):
        one.decode(one.encode(v), told)
        lost, most = np.square(v - told).sum(), (1 - density) * np.square(v).sum()
        assert lost <= most * (1 + 1e-12)
        assert exactly == np.isclose(lost, most) or density == 1


def test_a_number_too_small_to_be_sent_is_sent_once_it_has_grown():
    exchange = ErrorFeedback(codec(1 / D))
    g = np.full(D, 1 / 128)
    g[0] = 1.0
    when = [step for step in range(300) if exchange.encode(g)[0][0] != 0]
    assert len(when) > 50 and min(when) == 128


def test_with_a_decay_what_waits_is_forgotten_by_a_constant_share_of_each_step():
    s = top_k.Settings(density=1 / 2, error_decay=0.5)
    exchange = ErrorFeedback(top_k.Codec(s, (), 0, 1, 0), decay=top_k.COMPRESSION.decay(s))
    sent = [exchange.encode(np.array([3.0, 1.0])) for _ in range(40)]
    assert all(index[0] == 0 and values[0] == 3 for index, values in sent)  # what waits never reaches 3
    assert np.allclose(exchange.error, [0, 1])  # e <- (1 + e) / 2


def test_an_attached_top_k_decays_by_its_setting():
    def program(comm, decay):
        one = attach(comm, find("top_k"), top_k.Settings(density=1 / D, error_decay=decay), LAYOUT, 0)
        g = np.ones(D)
        for _ in range(3):
            g[:] = np.arange(D, 0, -1)
            one.all_reduce(g, op="mean")
        return g

    whole, half = (simulated.run(lambda comm, d=d: program(comm, d), 1).results[0] for d in (1.0, 0.5))
    assert whole.max() == 3 * (D - 2) and half.max() < whole.max()


def test_different_workers_choose_different_places_of_which_there_are_at_most_as_many_as_all_sent():
    def program(comm):
        g = draw(comm.rank)
        attach(comm, find("top_k"), top_k.Settings(density=0.01), LAYOUT, 0).all_reduce(g, op="mean")
        return g

    touched = np.count_nonzero(simulated.run(program, 8).results[0])
    assert 10 < touched <= 8 * 10


@pytest.mark.parametrize(("ranks", "percent"), [(8, 12.5), (128, 0.78125)])
def test_at_one_number_in_n_it_moves_the_bytes_of_the_dense_ring(ranks, percent):
    d = 8 * ranks
    dense = traffic(ranks, 1.0, d, compressed=False)
    assert traffic(ranks, percent / 100, d) == dense
    assert traffic(ranks, 2 * percent / 100, d) == 2 * dense


def test_its_traffic_grows_with_the_workers_where_that_of_a_ring_does_not():
    each = [traffic(ranks, 0.1) / ranks for ranks in (2, 5, 9)]
    assert each == [(ranks - 1) * 100 * 8 for ranks in (2, 5, 9)]
    assert [traffic(ranks, 1.0, compressed=False) / ranks < 2 * 4 * D for ranks in (2, 5, 9)]
