"""Collectives: what the chapter's own exchanges compute, and through which ports they go."""

import numpy as np
import pytest

from cluster import simulated
from cluster.network import NETWORKS
from lessons.collectives.exchanges import all_reduce, by_a_ring_per_gpu


@pytest.mark.parametrize(("nodes", "gpus"), [(2, 2), (3, 4)])
def test_a_ring_per_gpu_leaves_the_sum_everywhere_and_sends_as_much_through_every_port(nodes, gpus):
    ranks, network = nodes * gpus, NETWORKS["NDR"].on_nodes(gpus, nics=gpus)

    def play(exchange):
        def program(comm):
            x = np.arange(ranks * ranks * gpus, dtype=np.float32) + comm.rank
            exchange(comm, x)
            return x

        outcome = simulated.run(program, ranks, network=network)
        assert not outcome.error
        return outcome

    outcome = play(by_a_ring_per_gpu)
    expected = sum(np.arange(ranks * ranks * gpus, dtype=np.float32) + rank for rank in range(ranks))
    for x in outcome.results:
        np.testing.assert_array_equal(x, expected)
    traffic, node = outcome.trace().traffic(), np.arange(ranks) // gpus
    leaves = (traffic * (node[:, None] != node)).sum(axis=1)
    assert (leaves == leaves[0]).all() and leaves[0] > 0
    assert traffic.sum() == play(all_reduce).trace().traffic().sum(), "in all, no more than one ring"
