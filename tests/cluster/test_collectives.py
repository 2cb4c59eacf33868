"""Collectives: right, optimal in bytes, and on time."""

import math

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.collectives import ALL_REDUCE
from cluster.devices import Device
from cluster.disturbances import JITTERS, Disturbances
from cluster.network import Link, Network

ALPHA, BETA = 20e-6, 1 / 1.17e9
LINK = Network(Link(ALPHA, 1 / BETA), Link(ALPHA, 1 / BETA))
INSTANT = Device(math.inf, math.inf, 0.0)


def all_reduce(length, op="sum", dtype=np.float32, times=1):
    def program(comm):
        x = np.random.default_rng(comm.rank).random(length).astype(dtype)
        for _ in range(times):
            with comm.journal.doing(0, "work"):
                kernels.scale(x, 1.0)
            comm.all_reduce(x, op)
        return x, comm.journal.clock()

    return program


def run(program, ranks, **options):
    outcome = simulated.run(program, ranks, network=LINK, **options)
    assert outcome.error is None, outcome.error
    return outcome


@pytest.mark.parametrize("ranks", range(1, 18))
@pytest.mark.parametrize("collective", ["fast", *ALL_REDUCE])
def test_every_all_reduce_gives_every_rank_the_same_sum(collective, ranks):
    for length in (1, ranks - 1, 100):
        results = [x for x, _ in run(all_reduce(length, "mean", np.float64), ranks, collective=collective).results]
        expected = np.mean([np.random.default_rng(r).random(length) for r in range(ranks)], axis=0)
        np.testing.assert_allclose(results[0], expected, rtol=1e-12)
        assert all(np.array_equal(x, results[0]) for x in results)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13, 16])
def test_the_fast_path_is_the_ring_to_the_bit_also_when_ranks_come_at_different_times(ranks):
    late = Disturbances(jitter=JITTERS["exponential"], slow={0: 30.0}, seed=ranks)
    ring, fast = (
        run(all_reduce(1001, "mean", times=3), ranks, collective=c, disturbances=late) for c in ("ring", "fast")
    )
    for (x, at), (y, then) in zip(ring.results, fast.results, strict=True):
        assert np.array_equal(x, y)
        assert at == then
    np.testing.assert_array_equal(ring.trace().traffic(), fast.trace().traffic())


def closed_form(collective, ranks, nbytes):
    """Seconds of the spec's cost model with free arithmetic, ranks arriving together."""
    log = math.log2(ranks)
    return {
        "fast": 2 * (ranks - 1) * ALPHA + 2 * (ranks - 1) / ranks * nbytes * BETA,
        "ring": 2 * (ranks - 1) * ALPHA + 2 * (ranks - 1) / ranks * nbytes * BETA,
        "recursive_doubling": log * (ALPHA + nbytes * BETA),
        "halving_doubling": 2 * log * ALPHA + 2 * (ranks - 1) / ranks * nbytes * BETA,
        "tree": 2 * log * (ALPHA + nbytes * BETA),
    }[collective]


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
@pytest.mark.parametrize("collective", ["fast", *ALL_REDUCE])
def test_ranks_arriving_together_finish_at_the_closed_form(collective, ranks):
    length = 256 * ranks
    times = [at for _, at in run(all_reduce(length), ranks, collective=collective, device=INSTANT).results]
    assert max(times) == pytest.approx(closed_form(collective, ranks, 4 * length), rel=1e-12)


@pytest.mark.parametrize(
    ("nbytes", "ranks", "collective", "milliseconds"),
    [
        (4096, 8, "ring", 0.2861),
        (4096, 8, "recursive_doubling", 0.0705),
        (4096, 8, "halving_doubling", 0.1261),
        (4096, 8, "tree", 0.1410),
        (4096, 64, "fast", 2.5269),
        (1_000_000, 8, "fast", 1.7757),
        (1_000_000, 8, "halving_doubling", 1.6157),
    ],
)
def test_the_worked_times_of_the_cost_model_come_out(nbytes, ranks, collective, milliseconds):
    times = [at for _, at in run(all_reduce(nbytes // 4), ranks, collective=collective, device=INSTANT).results]
    assert 1e3 * max(times) == pytest.approx(milliseconds, abs=6e-5)


@pytest.mark.parametrize("ranks", range(1, 18))
@pytest.mark.parametrize("collective", ["fast", "ring"])
def test_a_ring_sends_the_fewest_bytes_from_every_rank(collective, ranks):
    length = 12 * ranks
    sent = run(all_reduce(length), ranks, collective=collective).trace().traffic().sum(axis=1)
    np.testing.assert_array_equal(sent, 2 * (ranks - 1) * 12 * 4)


@pytest.mark.parametrize("ranks", [2, 4, 8, 16])
def test_halving_and_doubling_sends_the_fewest_bytes_too(ranks):
    sent = run(all_reduce(12 * ranks), ranks, collective="halving_doubling").trace().traffic().sum(axis=1)
    np.testing.assert_array_equal(sent, 2 * (ranks - 1) * 12 * 4)


@pytest.mark.parametrize("ranks", range(1, 10))
def test_reduce_scatter_gather_broadcast_and_barrier_do_what_they_say(ranks):
    def program(comm):
        x = np.arange(10.0) * (comm.rank + 1)
        mine = comm.reduce_scatter(x, "sum")
        everything = comm.all_gather((comm.rank, mine))
        root = comm.broadcast(np.full(3, float(comm.rank)), src=ranks - 1)
        with comm.journal.doing(0, "work"):
            kernels.scale(np.ones(1000 * (comm.rank + 1)), 1.0)
        before = comm.journal.clock()
        comm.barrier()
        return everything, root, before, comm.journal.clock()

    results = run(program, ranks).results
    total = np.arange(10.0) * sum(range(1, ranks + 1))
    for everything, root, _, after in results:
        assert [number for number, _ in everything] == list(range(ranks))
        np.testing.assert_allclose(np.concatenate([piece for _, piece in everything]), total)
        np.testing.assert_array_equal(root, ranks - 1)
        assert after >= max(before for _, _, before, _ in results)
