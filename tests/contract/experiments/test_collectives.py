"""What an all-reduce costs, by every algorithm."""

import json
from dataclasses import replace

import numpy as np
import pytest

from cluster import simulated
from cluster.collectives import ALL_REDUCE
from cluster.network import NETWORKS, Link, Network
from experiments.study.collectives import FREE, all_reduces
from theory import collective_costs

UNEQUAL = Network(Link(20e-6, 1e9, 5e-6), Link(1e-6, 8e9, 1e-6))


def simulated_seconds(name, ranks, length, network):
    def program(comm):
        comm.all_reduce(np.ones(length, np.float32))
        return comm.event_log.clock()

    outcome = simulated.run(program, ranks, network=network, device=FREE, collective=name)
    return max(outcome.results), outcome.trace().traffic().sum(axis=1).max()


@pytest.mark.parametrize(("per_node", "nics"), [(1, 1), (2, 1), (4, 1), (4, 2)])
def test_a_few_numbers_on_slower_links_take_as_long_as_the_whole_vector(per_node, nics):
    network = replace(UNEQUAL, per_node=per_node, nics=nics)
    for ranks in (2, 3, 4, 8, 12):
        length = 12 * 16 * 8  # every algorithm can cut it into equal pieces
        costs = all_reduces(ranks, 4 * length, network)
        assert sorted(cost.name for cost in costs) == sorted(ALL_REDUCE)
        for cost in costs:
            seconds, sent = simulated_seconds(cost.name, ranks, length, network)
            assert cost.seconds == pytest.approx(seconds, rel=1e-9), cost
            assert cost.sent == pytest.approx(sent, rel=1e-9), cost


def test_a_double_tree_of_which_a_part_was_simulated_takes_as_long_as_the_whole():
    for ranks, per_node in ((8, 1), (13, 4)):
        network = replace(NETWORKS["10GbE"], per_node=per_node)
        (cost,) = [cost for cost in all_reduces(ranks, 2e7, network) if cost.name == "double_tree"]
        seconds, sent = simulated_seconds("double_tree", ranks, 5_000_000, network)
        assert cost.seconds == pytest.approx(seconds, rel=5e-3) and cost.sent == pytest.approx(sent, rel=1e-3)


def test_gigabytes_take_the_time_of_the_closed_forms_and_the_bus_carries_at_most_the_link():
    link = NETWORKS["HDR"].between
    costs = {cost.name: cost for cost in all_reduces(32, 4e9, NETWORKS["HDR"])}
    for name in ("ring", "recursive_doubling", "halving_doubling", "tree"):
        closed = collective_costs.time(name, 32, 4e9, link.alpha, 1 / link.bandwidth)
        assert costs[name].seconds == pytest.approx(closed, rel=1e-9)
        without = collective_costs.time(name, 32, 4e9, 0.0, 1 / link.bandwidth)
        assert costs[name].waiting == pytest.approx(closed - without, rel=1e-6)
    assert costs["ring"].rounds == 62 and costs["recursive_doubling"].rounds == 5
    assert costs["ring"].sent == pytest.approx(2 * 31 / 32 * 4e9)
    assert max(cost.bus_bandwidth for cost in costs.values()) <= link.bandwidth


def test_of_eight_bytes_all_of_the_time_is_latency():
    for cost in all_reduces(64, 8, NETWORKS["HDR"]):
        assert cost.waiting / cost.seconds > 0.99, cost


def test_what_cannot_be_timed_is_refused_with_what_can():
    for ranks, nbytes, words in ((1, 8, "2 to 1,024"), (2000, 8, "2 to 1,024"), (4, 0, "above 0")):
        with pytest.raises(ValueError, match=words):
            all_reduces(ranks, nbytes, UNEQUAL)


def test_the_command_prints_a_row_for_each_all_reduce_the_quickest_first(main):
    words = "collective --ranks 32 --bytes 4GB --network HDR --per-node 8"
    code, out, _ = main(*words.split())
    assert code == 0 and all(name in out for name in ALL_REDUCE) and "within a node of 8" in out
    code, out, _ = main(*words.split(), "--json")
    rows = json.loads(out)
    assert [row["name"] for row in rows] == [
        cost.name for cost in all_reduces(32, 4e9, replace(NETWORKS["HDR"], per_node=8))
    ]
    code, out, _ = main(*words.split(), "--nics", "8", "--json")
    hierarchy, alone = ({row["name"]: row for row in some}["hierarchical"] for some in (json.loads(out), rows))
    assert hierarchy["seconds"] < 0.9 * alone["seconds"]
    assert main(*words.split(), "--nics", "9")[0] == 2
    for mistake, said in (("--bytes 4XB", "4GB"), ("--ranks 1", "2 to 1,024"), ("--network 3", "latency")):
        code, _, err = main("collective", *mistake.split())
        assert code == 2 and said in err and err.count("\n") <= 3


def test_the_memory_command_prints_the_figures_that_zero_published(main):
    code, out, _ = main("memory", "--parameters", "7.5B", "--ranks", "64")
    (mixed,) = [line for line in out.splitlines() if line.startswith("mixed Adam  ")]
    assert code == 0 and all(size in mixed for size in ("120 GB", "31.4 GB", "16.6 GB", "1.88 GB"))
    code, out, _ = main("memory", "--parameters", "7.5e9", "--ranks", "64", "--json")
    assert [round(size / 1e9, 1) for size in json.loads(out)["mixed Adam"]] == [120, 31.4, 16.6, 1.9]
    assert main("memory", "--parameters", "-3")[0] == 2
