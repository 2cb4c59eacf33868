"""Real processes sum by the collective that was chosen."""

import numpy as np
import pytest

from cluster import simulated
from cluster.collectives import ALL_REDUCE
from cluster.network import Link, Network
from cluster.real import processes

LINK = Link(20e-6, 1.17e9)


def test_an_unknown_collective_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match=r"collective.*'star'.*fast, ring, .*hierarchical"):
        processes.run(large, 2, collective="star")


def sums(comm):
    """What every algorithm makes of the same numbers, what all_reduce does, alone and beside, and on how many nodes."""
    nodes = [len(set(some.nodes)) for some in (comm, comm.split(comm.rank % 2))]
    comm.nodes = [0, 0, 1, 1]
    results = {}
    for name, algorithm in ALL_REDUCE.items():
        results[name] = np.random.default_rng(comm.rank).random(1000).astype(np.float32)
        algorithm(comm, results[name], 0.25, tag=1)
    results["chosen"] = comm.all_reduce(np.random.default_rng(comm.rank).random(1000).astype(np.float32), "mean")
    beside = [np.random.default_rng(comm.rank).random(1000).astype(np.float32) for _ in range(2)]
    for handle in [comm.all_reduce(x, "mean", async_op=True) for x in beside]:
        handle.wait()
    return results, beside, nodes


@pytest.mark.parametrize("collective", ["double_tree", "hierarchical"])
def test_real_processes_sum_as_they_are_told_to_the_bit(collective):
    real = processes.run(sums, 4, backend="sockets", collective=collective)
    assert real.error is None and not real.notes
    pairs = simulated.run(sums, 4, network=Network(LINK, LINK, per_node=2), collective=collective)
    for (mine, beside, nodes), (theirs, _, simulated_nodes) in zip(real.results, pairs.results, strict=True):
        assert nodes == [1, 1] and simulated_nodes == [2, 2]
        assert all(np.array_equal(mine[name], theirs[name]) for name in mine)
        assert all(np.array_equal(x, mine[collective]) for x in (mine["chosen"], *beside))
        assert not np.array_equal(mine["ring"], mine["chosen"])


def large(comm):
    comm.all_reduce(np.ones(1 << 19, np.float32))


def test_real_processes_leave_no_sum_to_torch_when_one_was_chosen():
    rows = processes.run(large, 3, collective="tree").trace().messages
    passed = sorted(zip(rows["src"], rows["dst"], rows["bytes"], strict=True))
    assert passed == [(a, b, 1 << 21) for a, b in ((0, 1), (0, 2), (1, 0), (2, 0))]
