"""Collectives: right, optimal in bytes, and on time."""

import math
from functools import partial
from itertools import product

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.collectives import ALL_REDUCE
from cluster.collectives.trees import place
from cluster.devices import Device
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS, Link, Network
from cluster.simulated.ring_recurrence import ring_joiners, ring_times
from theory import collective_costs, nccl

ALPHA, BETA = 20e-6, 1 / 1.17e9
LINK = Network(Link(ALPHA, 1 / BETA), Link(ALPHA, 1 / BETA))
INSTANT = Device(math.inf, math.inf, 0.0)
POWERS = [2, 4, 8, 16]
every_size = pytest.mark.parametrize("ranks", range(1, 18))
every_algorithm = pytest.mark.parametrize("collective", ["fast", *ALL_REDUCE])


def all_reduce(length, op="sum", dtype=np.float32, times=1):
    def program(comm):
        x = np.random.default_rng(comm.rank).random(length).astype(dtype)
        for _ in range(times):
            with comm.event_log.doing(0, "work"):
                kernels.scale(x, 1.0)
            comm.all_reduce(x, op)
        return x, comm.event_log.clock()

    return program


def run(program, ranks, network=LINK, **options):
    outcome = simulated.run(program, ranks, network=network, **options)
    assert outcome.error is None, outcome.error
    return outcome


def seconds(collective, ranks, nbytes, **options):
    """Of one all-reduce of float32 numbers with free arithmetic, ranks arriving together."""
    program = all_reduce(nbytes // 4)
    return max(at for _, at in run(program, ranks, collective=collective, device=INSTANT, **options).results)


def sent(collective, ranks, length, **options):
    """Numbers that every rank sends."""
    outcome = run(all_reduce(length), ranks, collective=collective, device=INSTANT, **options)
    return outcome.trace().traffic().sum(axis=1) / 4


# right


@every_size
@every_algorithm
def test_every_all_reduce_gives_every_rank_the_same_sum(collective, ranks):
    lengths = sorted({0, 1, ranks - 1, ranks, 1000, 4096})

    def program(comm):
        return [comm.all_reduce(np.random.default_rng(comm.rank).random(n), "mean") for n in lengths]

    for n, *results in zip(lengths, *run(program, ranks, collective=collective).results, strict=True):
        expected = np.mean([np.random.default_rng(r).random(n) for r in range(ranks)], axis=0)
        np.testing.assert_allclose(results[0], expected, rtol=1e-12)
        assert all(np.array_equal(x, results[0]) for x in results)


def wants_another(comm, odd, way):
    op = "mean" if comm.rank == odd else "sum"
    if way == "reduce-scatter":
        return comm.reduce_scatter(np.ones(7), op)
    work = comm.all_reduce(np.ones(7), op, async_op=way == "background")
    return work.wait() if way == "background" else work


@pytest.mark.parametrize("way", ["all-reduce", "background", "reduce-scatter"])
@every_algorithm
def test_a_rank_that_asks_for_a_mean_where_others_ask_for_a_sum_is_told_so(collective, way):
    pairs = Network(LINK.between, LINK.within, per_node=2)  # on which nothing is compiled
    for ranks, network in product((2, 3, 4, 5), (LINK, pairs)):
        for odd in range(ranks):
            program = partial(wants_another, odd=odd, way=way)
            error = simulated.run(program, ranks, collective=collective, network=network).error
            assert isinstance(error.__cause__, ValueError), error
            assert "mismatched" in str(error) and ("mean" in str(error) or "another op" in str(error))


@pytest.mark.parametrize("nodes", ["0011223", "0101010", "0000001", "0122333", "0000000", "0123456"])
def test_nodes_need_not_be_equal_nor_their_ranks_neighbours(nodes):
    def program(comm):
        comm.nodes = nodes
        return [comm.all_reduce(np.full(n, 1.0) * 2**comm.rank) for n in (1, 5, 100)]

    for result in run(program, len(nodes), collective="hierarchical").results:
        for x in result:
            np.testing.assert_array_equal(x, 127)


@every_algorithm
def test_what_is_no_number_reaches_everybody_and_nothing_else_does(collective):
    def program(comm):
        x = np.ones(100, np.float32)
        if comm.rank == 3:
            x[41], x[42] = np.nan, np.inf
        return comm.all_reduce(x)

    for x in run(program, 7, collective=collective).results:
        assert np.isnan(x[41]) and np.isinf(x[42])
        np.testing.assert_array_equal(np.delete(x, [41, 42]), 7)


def test_the_order_of_a_sum_decides_its_last_bits():
    results = {
        name: run(all_reduce(1000), 8, collective=name).results[0][0].tobytes()
        for name in ("ring", "recursive_doubling", "tree", "double_tree")
    }
    assert len(set(results.values())) >= 3  # doubling and the tree pair the same ranks
    assert results["ring"] != results["tree"]


@every_size
def test_a_reduce_scatter_and_an_all_gather_are_the_ring_to_the_bit(ranks):
    def program(comm):
        x = np.random.default_rng(comm.rank).random(1001).astype(np.float32)
        before = x.copy()
        both = np.concatenate(comm.all_gather(comm.reduce_scatter(x, "mean")))
        assert np.array_equal(x, before)
        return both, comm.all_reduce(x, "mean")

    for both, once in run(program, ranks, collective="ring").results:
        np.testing.assert_array_equal(both, once)


@pytest.mark.parametrize("ranks", [2, 3, 4, 5, 8, 13, 16])
def test_the_fast_path_is_the_ring_to_the_bit_also_when_ranks_come_at_different_times(ranks):
    late = Faults(jitter=JITTERS["exponential"], slow={0: 30.0}, seed=ranks)
    ring, fast = (run(all_reduce(1001, "mean", times=3), ranks, collective=c, faults=late) for c in ("ring", "fast"))
    for (x, at), (y, then) in zip(ring.results, fast.results, strict=True):
        assert np.array_equal(x, y)
        assert at == then
    np.testing.assert_array_equal(ring.trace().traffic(), fast.trace().traffic())


@pytest.mark.parametrize("ranks", range(1, 10))
def test_reduce_scatter_gather_broadcast_and_barrier_do_what_they_say(ranks):
    def program(comm):
        x = np.arange(10.0) * (comm.rank + 1)
        mine = comm.reduce_scatter(x, "sum")
        everything = comm.all_gather((comm.rank, mine))
        root = comm.broadcast(np.full(3, float(comm.rank)), src=ranks - 1)
        with comm.event_log.doing(0, "work"):
            kernels.scale(np.ones(1000 * (comm.rank + 1)), 1.0)
        before = comm.event_log.clock()
        comm.barrier()
        return everything, root, before, comm.event_log.clock()

    results = run(program, ranks).results
    total = np.arange(10.0) * sum(range(1, ranks + 1))
    for everything, root, _, after in results:
        assert [number for number, _ in everything] == list(range(ranks))
        np.testing.assert_allclose(np.concatenate([piece for _, piece in everything]), total)
        np.testing.assert_array_equal(root, ranks - 1)
        assert after >= max(before for _, _, before, _ in results)


def test_an_unknown_collective_is_refused_with_what_there_is():
    with pytest.raises(ValueError, match=r"there is no 'star'; use one of fast, stream, ring, .*hierarchical"):
        simulated.run(all_reduce(1), 2, collective="star")


# optimal in bytes


@every_size
@pytest.mark.parametrize("collective", ["fast", "ring"])
def test_a_ring_sends_the_fewest_bytes_from_every_rank(collective, ranks):
    np.testing.assert_array_equal(sent(collective, ranks, 12 * ranks), 2 * (ranks - 1) * 12)
    for length in (1, ranks - 1, 1000):  # pieces differ by one: all but the own one summed, all but the next one copied
        pieces = np.array([share.stop - share.start for share in kernels.arrays.shares(length, ranks)])
        expected = 2 * length - pieces - np.roll(pieces, -1) if ranks > 1 else [0]
        np.testing.assert_array_equal(sent(collective, ranks, length), expected)


@pytest.mark.parametrize("ranks", POWERS)
def test_halving_and_doubling_sends_the_fewest_bytes_too(ranks):
    np.testing.assert_array_equal(sent("halving_doubling", ranks, 12 * ranks), 2 * (ranks - 1) * 12)


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 4), (2, 2), (2, 8), (4, 4), (3, 5), (5, 1)])
def test_a_hierarchy_sends_the_fewest_bytes_and_keeps_most_of_them_in_the_nodes(nodes, ranks):
    size = nodes * ranks
    network = Network(LINK.between, Link(1e-6, 8e9), per_node=ranks)
    outcome = run(all_reduce(12 * size), size, network, collective="hierarchical")
    traffic = outcome.trace().traffic() / 4
    np.testing.assert_array_equal(traffic.sum(axis=1), 2 * (size - 1) * 12)
    node = np.arange(size) // ranks
    assert traffic[node[:, None] != node].sum() / traffic.sum() == pytest.approx(collective_costs.leaving(nodes, ranks))


@every_size
@pytest.mark.parametrize("collective", [name for name in ALL_REDUCE if name != "recursive_doubling"])
def test_all_ranks_together_send_the_vector_as_often_as_they_must(collective, ranks):
    network = Network(LINK.between, LINK.within, per_node=3)
    assert sent(collective, ranks, 1000, network=network).sum() == 2 * (ranks - 1) * 1000


@every_size
def test_recursive_doubling_sends_more_to_send_less_often(ranks):
    active = 1 << int(math.log2(ranks))
    rounds, extra = int(math.log2(ranks)), ranks - active
    assert sent("recursive_doubling", ranks, 1000).sum() == (active * rounds + 2 * extra) * 1000


# on time


@every_size
@pytest.mark.parametrize("collective", ["fast", "ring", "halving_doubling"])
def test_ranks_arriving_together_finish_at_the_closed_form_whatever_their_number(collective, ranks):
    nbytes = 4 * 12 * 16 * ranks  # a multiple of the ranks, and of the power of two below
    closed = collective_costs.time(collective, ranks, nbytes, ALPHA, BETA)
    assert seconds(collective, ranks, nbytes) == pytest.approx(closed, rel=1e-12)


@every_size
def test_an_all_to_all_takes_the_time_of_its_closed_form(ranks):
    def program(comm):
        comm.all_to_all([np.zeros(48)] * comm.size)

    outcome = run(program, ranks)
    closed = collective_costs.all_to_all(ranks, 8 * 48 * ranks, ALPHA, BETA)
    assert outcome.trace().seconds() == pytest.approx(closed, rel=1e-12)
    assert outcome.trace().traffic().sum() == ranks * (ranks - 1) * 8 * 48


@pytest.mark.parametrize("ranks", [1, *POWERS])
@every_algorithm
def test_powers_of_two_arriving_together_finish_at_the_closed_form(collective, ranks):
    nbytes = 1024 * ranks
    if collective == "double_tree":
        return  # see below
    if collective == "hierarchical":
        closed = collective_costs.hierarchical(ranks, 1, nbytes, (0, 0), (ALPHA, BETA))
    else:
        closed = collective_costs.time(collective, ranks, nbytes, ALPHA, BETA)
    assert seconds(collective, ranks, nbytes) == pytest.approx(closed, rel=1e-12)


@every_size
@pytest.mark.parametrize("collective", ["recursive_doubling", "tree"])
def test_other_numbers_of_ranks_take_no_longer_than_the_closed_form(collective, ranks):
    for nbytes in (4, 1 << 20):
        closed = collective_costs.time(collective, ranks, nbytes, ALPHA, BETA)
        assert closed / 2 < seconds(collective, ranks, nbytes) <= closed * (1 + 1e-12) or ranks == 1


@every_size
@every_algorithm
def test_nothing_is_quicker_than_the_lower_bound(collective, ranks):
    for nbytes in (4 * ranks, 1 << 20):
        assert seconds(collective, ranks, nbytes) >= collective_costs.least(ranks, nbytes, ALPHA, BETA) * (1 - 1e-6)


@pytest.mark.parametrize("collective", ["ring", "recursive_doubling", "halving_doubling", "tree"])
def test_adding_up_takes_its_time_as_well(collective):
    memory = Device(math.inf, 3 / 5e-10, 0.0)  # an addition moves three words: gamma is 5e-10 s a byte

    def program(comm):
        comm.all_reduce(np.ones(4096, np.float32))
        return comm.event_log.clock()

    at = max(run(program, 8, collective=collective, device=memory).results)
    assert at == pytest.approx(collective_costs.time(collective, 8, 4 * 4096, ALPHA, BETA, 5e-10), rel=1e-12)


@pytest.mark.parametrize(
    ("nbytes", "ranks", "milliseconds"),
    [  # ring, recursive doubling, halving/doubling, tree, one server, a shard each
        (4096, 8, (0.2861, 0.0705, 0.1261, 0.1410, 0.0960, 0.0461)),
        (4096, 64, (2.5269, 0.1410, 0.2469, 0.2820, 0.4881, 0.0469)),
        (1_000_000, 8, (1.7757, 2.6241, 1.6157, 5.2482, 13.715, 1.5357)),
        (102_400_000, 8, (153.44, 262.62, 153.28, 525.25, 1400.4, 153.20)),
        (102_400_000, 64, (174.83, 525.25, 172.55, 1050.5, 11203, 172.35)),
    ],
)
def test_the_worked_times_of_the_cost_model_come_out(nbytes, ranks, milliseconds):
    names = "ring", "recursive_doubling", "halving_doubling", "tree"
    closed = [collective_costs.time(name, ranks, nbytes, ALPHA, BETA) for name in names]
    closed += [
        collective_costs.server(ranks, nbytes, ALPHA, BETA),
        collective_costs.colocated_servers(ranks, nbytes, ALPHA, BETA),
    ]
    for value, expected in zip(closed, milliseconds, strict=True):
        digits = len(str(expected).partition(".")[2])
        assert 1e3 * value == pytest.approx(expected, abs=0.51 * 10**-digits)
    if nbytes <= 1_000_000:
        for name, expected in zip(names, closed, strict=False):
            assert seconds(name, ranks, nbytes) == pytest.approx(expected, rel=1e-4)  # 4096 bytes in 64 pieces


def test_recursive_doubling_beats_a_star_for_a_few_bytes_among_many_ranks():
    """The centre of a star pays its overhead for every rank, a rank that doubles for log2 P of them."""

    def star(comm):
        x = np.ones(64, np.float32)  # 256 bytes
        if comm.rank:
            comm.send(x, 0)
            x = comm.recv(0)
        else:
            for other in range(1, comm.size):
                kernels.add(x, comm.recv(other))
            for other in range(1, comm.size):
                comm.send(x, other)
        return x[0], comm.event_log.clock()

    network = NETWORKS["10GbE"]
    finished = run(star, 128, network, device=INSTANT).results
    assert all(total == 128 for total, _ in finished)
    assert seconds("recursive_doubling", 128, 256, network=network) < max(at for _, at in finished) / 3


def test_long_vectors_take_the_ring_as_long_as_their_bytes():
    assert collective_costs.ring(8, 1e12, ALPHA, BETA) / 1e12 == pytest.approx(
        collective_costs.share(8) * BETA, rel=1e-6
    )


@pytest.mark.parametrize(
    ("ranks", "ring", "halving"), [(4, 187e3, 94e3), (8, 206e3, 56e3), (16, 286e3, 44e3), (64, 697e3, 35e3)]
)
def test_short_and_long_vectors_part_where_the_closed_forms_cross(ranks, ring, halving):
    for other, expected in (("ring", ring), ("halving_doubling", halving)):
        crossing = collective_costs.doubling_up_to(ranks, ALPHA, BETA, other)
        assert crossing == pytest.approx(expected, rel=0.01)
        if ranks == 8:
            for nbytes, first in ((0.9 * crossing, True), (1.1 * crossing, False)):
                whole = int(nbytes / 64) * 64
                assert (seconds("recursive_doubling", ranks, whole) < seconds(other, ranks, whole)) == first


# the double tree


@pytest.mark.parametrize("ranks", range(2, 65))
def test_who_passes_sums_on_in_one_tree_is_a_leaf_in_the_other(ranks):
    both = 0
    for rank in range(ranks):
        inner = [bool(place(ranks, rank, second)[2]) for second in (False, True)]
        both += all(inner)
    assert both <= ranks % 2
    edges = [{(rank, place(ranks, rank, second)[1]) for rank in range(ranks)} for second in (False, True)]
    assert len(edges[0] & edges[1]) == (1 if ranks == 3 else 0)
    for second in (False, True):
        roots = [rank for rank in range(ranks) if place(ranks, rank, second)[1] is None]
        assert len(roots) == 1
        for rank in range(ranks):
            level, parent, children = place(ranks, rank, second)
            assert len(children) <= 2
            assert all(place(ranks, child, second)[1] == rank for child in children)
            assert parent is None or level < place(ranks, parent, second)[0] <= math.ceil(math.log2(ranks))


def test_the_trees_are_those_of_nccl():
    first = {rank: place(14, rank, False)[2] for rank in range(14) if place(14, rank, False)[2]}
    assert first == {0: (8,), 2: (1, 3), 4: (2, 6), 6: (5, 7), 8: (4, 12), 10: (9, 11), 12: (10, 13)}
    assert place(12, 11, True)[1:] == (None, (3,))  # mirrored
    assert place(13, 1, True)[1:] == (None, (9,))  # shifted by one
    assert [r for r in range(13) if place(13, r, False)[2] and place(13, r, True)[2]] == [0]


@pytest.mark.parametrize("ranks", [2, 3, 6, 8, 13, 16])
@pytest.mark.parametrize("nbytes", [4096, 1 << 16, 1 << 20])
def test_a_double_tree_is_as_quick_as_two_trees_can_be(ranks, nbytes):
    chunks = max(1, round((collective_costs.rounds(ranks) * nbytes / 8192) ** 0.5))
    took = seconds("double_tree", ranks, nbytes)
    assert took <= collective_costs.double_tree(ranks, nbytes, ALPHA, BETA, chunks)
    assert took >= 2 * max(collective_costs.rounds(ranks) // 2 * ALPHA, nbytes / 2 * BETA)


def test_a_long_vector_takes_a_double_tree_hardly_longer_than_twice_its_bytes():
    nbytes = 1 << 22
    assert seconds("double_tree", 16, nbytes) < 1.15 * 2 * nbytes * BETA
    assert seconds("tree", 16, nbytes) > 7.9 * nbytes * BETA


def test_nobody_sends_more_than_the_vector_up_and_the_vector_down_a_double_tree():
    for ranks in (2, 6, 8, 16):
        assert sent("double_tree", ranks, 1024).max() <= 2 * 1024


# hierarchies


@pytest.mark.parametrize(("nodes", "ranks"), [(1, 4), (2, 2), (3, 4), (4, 8), (2, 1)])
@pytest.mark.parametrize("latency", [1e-9, ALPHA, 1e-3])
def test_a_hierarchy_whose_nodes_have_one_port_takes_its_closed_form(nodes, ranks, latency):
    network = Network(Link(latency, 1 / BETA), Link(1e-6, 8e9), per_node=ranks)
    nbytes = 4 * 48 * nodes * ranks
    closed = collective_costs.hierarchical(nodes, ranks, nbytes, (1e-6, 1 / 8e9), (latency, BETA))
    took = seconds("hierarchical", nodes * ranks, nbytes, network=network)
    assert took == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize(("nodes", "ranks"), [(2, 8), (3, 4)])
@pytest.mark.parametrize("latency", [1e-9, 1e-3])
def test_a_hierarchy_takes_its_closed_form_with_any_number_of_nics(nodes, ranks, latency):
    nbytes, times = 4 * 48 * nodes * ranks, []
    for nics in (1, 2, ranks):
        network = Network(Link(latency, 1 / BETA), Link(1e-6, 8e9), per_node=ranks, nics=nics)
        closed = collective_costs.hierarchical(nodes, ranks, nbytes, (1e-6, 1 / 8e9), (latency, BETA), nics)
        times.append(seconds("hierarchical", nodes * ranks, nbytes, network=network))
        assert times[-1] == pytest.approx(closed, rel=1e-12)
    assert times[0] > times[1] > times[2]


@pytest.mark.parametrize("collective", ["fast", "ring"])
def test_one_ring_through_two_nodes_of_eight_gains_nothing_from_eight_nics(collective):
    size, nbytes = 16, 4 * 48 * 16
    closed = collective_costs.ring(size, nbytes, ALPHA, BETA)
    for nics in (1, 8):
        network = Network(LINK.between, LINK.between, per_node=8, nics=nics)
        assert seconds(collective, size, nbytes, network=network) == pytest.approx(closed, rel=1e-12)


def test_eight_pairs_across_two_nodes_exchange_at_once_with_eight_nics_and_in_turn_with_one():
    nbytes, free = 4 * 480, Link(0.0, math.inf)
    for nics in (1, 2, 8):
        network = Network(LINK.between, free, per_node=8, nics=nics)
        closed = ALPHA + 8 / nics * nbytes * BETA  # the last of doubling's rounds is between the nodes
        assert seconds("recursive_doubling", 16, nbytes, network=network) == pytest.approx(closed, rel=1e-12)


@pytest.mark.parametrize(("nodes", "ranks"), [(2, 2), (3, 4), (4, 4)])
def test_a_hierarchy_of_rings_with_a_port_for_every_rank_takes_the_time_of_a_torus(nodes, ranks):
    nbytes = 4 * 48 * nodes * ranks

    def program(comm):
        comm.nodes = [rank // ranks for rank in range(comm.size)]
        comm.all_reduce(np.zeros(nbytes // 4, np.float32))
        return comm.event_log.clock()

    took = max(run(program, nodes * ranks, collective="hierarchical", device=INSTANT).results)
    closed = collective_costs.hierarchical(nodes, ranks, nbytes, (ALPHA, BETA), (ALPHA, BETA), nics=ranks)
    assert took == pytest.approx(closed, rel=1e-12)
    assert took == pytest.approx(collective_costs.torus((nodes, ranks), nbytes, ALPHA, BETA), rel=1e-12)
    assert took < collective_costs.ring(nodes * ranks, nbytes, ALPHA, BETA)


def test_four_nodes_of_eight_gpus_with_a_port_each_were_measured_between_overlap_and_none():
    gib, card, link = 2**30, 50e9, 740.6e9
    phases = collective_costs.hierarchical(4, 8, 4 * gib, (0, 0), (0, 1 / card), nics=8)
    both = collective_costs.hierarchical(4, 8, 4 * gib, (0, 1 / link), (0, 1 / card), nics=8)
    assert 1e3 * phases == pytest.approx(16.1, abs=0.05)
    assert 1e3 * both == pytest.approx(26.4, rel=0.01)
    assert 1e3 * phases < 22.05 < 1e3 * both  # measured
    assert 1e3 * collective_costs.ring(32, 4 * gib, 0, 1 / card) == pytest.approx(166, abs=0.5)


# what else has a closed form


def test_servers_with_all_of_the_workers_bandwidth_are_as_quick_as_the_ring():
    n = 1e6
    assert (
        collective_costs.server(8, n, ALPHA, BETA, shards=8)
        <= collective_costs.ring(8, n, ALPHA, BETA) + 0.15 * n * BETA * 2
    )
    assert (
        collective_costs.colocated_servers(8, n, ALPHA, BETA) == collective_costs.ring(8, n, ALPHA, BETA) - 12 * ALPHA
    )
    one, many = ([collective_costs.server(P, n, 0, BETA, shards=s or P) for P in (2, 4, 8, 16)] for s in (1, None))
    np.testing.assert_allclose(np.array(one) / one[0], [1, 2, 4, 8])
    np.testing.assert_allclose(many, many[0])


def test_nccl_expects_latency_to_grow_with_the_ring_and_with_the_depth_of_the_tree():
    expected = {  # us
        ("ring", "LL", 1): 15.0,
        ("ring", "Simple", 1): 56.0,
        ("tree", "Simple", 1): 64.4,
        ("ring", "LL", 16): 311.6,
        ("tree", "LL", 16): 55.2,
        ("ring", "Simple", 16): 1666,
        ("tree", "Simple", 16): 176.4,
    }
    for (algorithm, protocol, nodes), us in expected.items():
        assert 1e6 * nccl.latency(algorithm, protocol, nodes, 8) == pytest.approx(us, rel=1e-4)


def test_a_collective_says_how_many_messages_it_takes():
    for collective, messages in (("ring", 14), ("halving_doubling", 6), ("recursive_doubling", 3)):
        rows = run(all_reduce(96), 8, collective=collective).trace().messages
        assert set(np.bincount(rows["src"])) == {messages}


@pytest.mark.parametrize("steps", [(0, 14), (0, 7), (7, 14)], ids=["all-reduce", "reduce-scatter", "all-gather"])
def test_a_rank_of_a_ring_waits_for_the_one_whose_arrival_decides_when_it_ends(steps):
    size, latency, beta, overhead, add, nbytes = 8, 1e-5, 1e-9, 2e-6, 1e-6, 1000.0
    link, each = np.array([[one] * size for one in (latency, beta, overhead)]), np.full((size, 2), add)

    def ends(joined):
        idle = np.zeros(size)
        pieces = np.full(size, nbytes)
        return ring_times(joined, idle, idle.copy(), link, pieces, nbytes, each, 0 * each, *steps)

    random = np.random.default_rng(3)
    for spread in (1e-5, 1e-4, 1e-3):
        joined = random.exponential(spread, size)
        found = ring_joiners(joined, np.full(size, latency + nbytes * beta), steps[1] - steps[0])
        before = ends(joined)
        for rank in range(size):
            later = ends(joined + 1e-9 * (np.arange(size) == rank)) > before + 0.5e-9
            assert (later == (found == rank)).all(), (
                "who comes a little later delays those that wait for it, and only these"
            )
