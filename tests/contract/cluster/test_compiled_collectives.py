"""Compiled collectives: the same run as message by message, in every bit, time and row."""

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.collectives import ALL_REDUCE
from cluster.comm import Cancelled, Deadlock, RankFailed
from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS, Link, Network
from cluster.simulated import compiled_collectives
from cluster.simulated.collective_program import record_program

every_size = pytest.mark.parametrize("ranks", range(1, 18))
NETS = {
    **{name: NETWORKS[name] for name in ("ideal", "10GbE", "NDR")},
    "slow": Network(Link(1e-3, 1e6, 1e-4), Link(1e-3, 1e6, 1e-4)),
    "whole seconds": Network(Link(1.0, 8.0, 1.0), Link(1.0, 8.0, 1.0)),  # many events at one time
    "two to a NIC, four to a node": Network(Link(2e-5, 1e9, 5e-6), Link(1e-6, 8e9, 2e-7), per_node=4, nics=2),
}
LATE = Faults(jitter=JITTERS["exponential"], slow={0: 5.0}, seed=1)


@pytest.fixture
def compiled(monkeypatch):
    """Count the collectives that ran compiled."""
    made, original = [], compiled_collectives.CompiledCollective

    def count(*args):
        made.append(args)
        return original(*args)

    monkeypatch.setattr(compiled_collectives, "CompiledCollective", count)
    return made


def both(program, ranks, **options):
    """Run `program` compiled and message by message, hold the two to each other and return the first."""
    options.setdefault("collective", "ring")
    first = simulated.run(program, ranks, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(compiled_collectives, "COMPILED", {})
        second = simulated.run(program, ranks, **options)
    assert (type(first.error), str(first.error)) == (type(second.error), str(second.error))
    assert first.notes == second.notes
    np.testing.assert_equal(first.results, second.results)
    for ours, theirs in zip(first.event_logs, second.event_logs, strict=True):
        assert ours.spans == theirs.spans and len(ours.messages) == len(theirs.messages)
        assert (ours.flops, ours.mark, ours.step) == (theirs.flops, theirs.mark, theirs.step)
    for table in ("spans", "messages"):
        for name, column in getattr(first.trace(), table).items():
            np.testing.assert_array_equal(column, getattr(second.trace(), table)[name], name)
    return first


def work(comm, numbers):
    with comm.event_log.doing(0, "work"):
        kernels.scale(np.ones(numbers), 1.0)


@pytest.mark.slow
@every_size
@pytest.mark.parametrize("network", NETS)
def test_a_compiled_ring_is_the_ring_to_the_bit_in_sums_times_and_rows(ranks, network, compiled):
    def program(comm):
        draw, made = np.random.default_rng(comm.rank), []
        for comm.event_log.step, length in enumerate((0, 1, ranks - 1, 1001, 1001, 4 * ranks)):
            work(comm, int(draw.integers(1, 100_000)))
            for dtype, op in (("f4", "mean"), ("f8", "sum")):
                made += [comm.all_reduce(draw.random(length).astype(dtype), op), comm.event_log.clock()]
            made += [comm.reduce_scatter(draw.random(length), "mean"), comm.barrier(), comm.event_log.clock()]
        return made

    for faults in (Faults(), LATE):
        outcome = both(program, ranks, network=NETS[network], faults=faults)
        assert outcome.error is None
    assert len(compiled) == 2 * 6 * 4


@pytest.mark.parametrize("seed", range(30))
def test_other_traffic_finds_the_ports_as_they_are_message_by_message(seed, compiled):
    """Run a program drawn at random, of rings among others, in groups, in the background and amid messages."""
    draw = np.random.default_rng(seed)
    ranks, network = int(draw.integers(2, 12)), NETS[sorted(NETS)[seed % len(NETS)]]
    plan = [(str(draw.choice(OPERATIONS)), int(draw.integers(0, 200)), int(draw.integers(1, 4))) for _ in range(25)]

    def program(comm):
        own, made, handles = np.random.default_rng([seed, comm.rank]), [], []
        for comm.event_log.step, (operation, length, some) in enumerate(plan):
            work(comm, int(own.integers(1, 30_000)))
            x = own.random(length)
            if operation == "ring":
                made.append(comm.all_reduce(x, "mean"))
            elif operation == "piece":
                made.append(comm.reduce_scatter(x))
            elif operation == "barrier":
                comm.barrier()
            elif operation == "group":
                made.append(comm.split(comm.rank % some).all_reduce(x))
            elif operation == "some":
                made.append(comm.all_reduce(x) if comm.rank >= 0 else None)
                if comm.rank < some:
                    comm.send(x, comm.size - 1, tag=5)
                if comm.rank == comm.size - 1:
                    made.append([comm.recv_any(tag=5) for _ in range(min(some, comm.size))])
            elif operation == "background":
                handles.append(comm.all_reduce(x, async_op=True))
            elif operation == "messages":
                for _ in range(some):
                    comm.send(x, (comm.rank + some) % comm.size)
                comm.send(x, (comm.rank + 1) % comm.size, tag=1)
                handles.append(comm.irecv((comm.rank - 1) % comm.size, tag=1))
                made += [comm.recv((comm.rank - some) % comm.size) for _ in range(some)]
            elif operation == "gather":
                made.append(comm.all_gather(x[: comm.rank]))
            made.append(comm.event_log.clock())
        return made, [handle.wait() for handle in handles]

    faults = LATE if seed % 2 else Faults()
    collective = "ring" if seed % 5 else "tree"
    assert both(program, ranks, network=network, faults=faults, collective=collective).error is None
    assert compiled


OPERATIONS = ("ring", "piece", "barrier", "group", "some", "background", "messages", "gather")


def test_a_group_in_a_ring_and_others_that_write_to_its_ranks_share_the_ports(compiled):
    def program(comm):
        group = comm.split(int(comm.rank < 4))
        made = []
        for step in range(20):
            if comm.rank < 4:
                work(comm, 1000 * (comm.rank + 1))
                group.all_reduce(np.ones(4000))
            else:
                work(comm, 3000)
                comm.send(np.ones(500 * comm.rank), (comm.rank + step) % 4)
            made.append(comm.event_log.clock())
        return made, [comm.recv_any()[0] for _ in range(15)] if comm.rank < 4 else None

    for network in NETS.values():
        assert both(program, 7, network=network).error is None
    assert compiled


def test_a_ring_that_somebody_does_not_join_says_who_waits_for_whom(compiled):
    def program(comm):
        work(comm, 1000 * comm.rank + 1)
        if comm.rank != 2:
            comm.all_reduce(np.ones(100))

    error = both(program, 5).error
    assert isinstance(error, Deadlock)
    assert ("all-reduce", 2) in {(wait.collective, wait.source) for wait in error.waits}
    assert compiled


def test_a_run_that_fails_amid_rings_leaves_the_rows_that_there_were(compiled):
    def program(comm):
        for comm.event_log.step in range(4):
            work(comm, 50_000 * comm.rank + 1)
            if (comm.rank, comm.event_log.step) == (3, 2):
                raise ZeroDivisionError("the cake is a lie")
            comm.all_reduce(np.ones(100))

    error = both(program, 5).error
    assert isinstance(error, RankFailed) and error.step == 2
    assert compiled


def test_vectors_that_are_not_alike_are_refused():
    error = simulated.run(lambda comm: comm.all_reduce(np.ones(3 + comm.rank)), 2, collective="ring").error
    assert isinstance(error.__cause__, ValueError)
    assert "rank 1 is in ring of 4 numbers (<f8), but others of its group are in ring of 3 numbers (<f8)" in str(error)


def test_kernels_inside_are_charged_to_the_meter_that_is_there(compiled):
    class Bill:
        def __init__(self):
            self.rows = []

        def charge(self, *row):
            self.rows.append(row)

    def program(comm):
        bill = Bill()
        with kernels.meter_kernels(bill):
            comm.all_reduce(np.ones(10), "mean")
        with kernels.meter_kernels(None):
            comm.all_reduce(np.ones(10), "mean")
        return bill.rows, comm.event_log.clock()

    rows, _ = both(program, 3).results[0]
    assert [name for name, *_ in rows] == ["add", "add", "scale"]
    assert compiled


@pytest.mark.parametrize(
    "options",
    [
        {"faults": Faults(pause={1: ((1e-5, 2e-5),)})},
        {"faults": Faults(crash={1: 1e-5})},
        {"network": Network(Link(1.0, 8.0), Link(0.25, 64.0), per_node=2)},
    ],
)
def test_where_a_rank_may_stop_inside_or_messages_sent_at_once_overtake_it_goes_step_by_step(options, compiled):
    simulated.run(lambda comm: comm.all_reduce(np.ones(1000)), 4, collective="ring", **options)
    assert not compiled


def test_a_run_can_be_stopped_amid_compiled_rings():
    seen = []

    def program(comm):
        while True:
            comm.all_reduce(np.ones(100))

    outcome = simulated.run(
        program, 4, collective="ring", on_progress=lambda *at: seen.append(at), stop=lambda: len(seen) > 1
    )
    assert isinstance(outcome.error, Cancelled)
    assert len(outcome.trace().messages["sent"]) > 100


def test_what_is_written_down_of_a_ring_is_what_the_ring_says():
    program = record_program(ALL_REDUCE["ring"], 4, 10, "f8", True)
    assert np.bincount(program.senders).tolist() == [6] * 4
    assert program.pairs == ((0, 1), (1, 2), (2, 3), (3, 0))
    assert program.nbytes.reshape(4, 6).sum(axis=1).tolist() == [8 * n for n in (20 - 6, 20 - 5, 20 - 4, 20 - 5)]
    names = [[program.prices[price][0] for price in charges] for charges in program.charges]
    assert names == [["add"] * 3 + ["scale"]] * 4
