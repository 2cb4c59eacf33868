"""Several all-reduces in progress: an urgent one overtakes those that wait, and nothing else changes."""

import math

import numpy as np
import pytest

from cluster import simulated
from cluster.devices import Device
from cluster.faults import JITTERS, Faults
from cluster.network import Link, Network
from tests.contract.cluster.test_simulated import work

ALPHA, BETA = 1e-3, 1e-6
LINK = Network(Link(ALPHA, 1 / BETA), Link(1e-6, 1e9))
INSTANT = Device(math.inf, math.inf, 0.0)
COLLECTIVES = ["stream", "ring", "recursive_doubling", "halving_doubling", "tree"]
every_collective = pytest.mark.parametrize("collective", COLLECTIVES)


def run(program, ranks, **options):
    outcome = simulated.run(program, ranks, **{"network": LINK, "device": INSTANT} | options)
    assert outcome.error is None, outcome.error
    return outcome


def in_background(*priorities, length=4000):
    """A program: all-reduces started in this order, and when each of them was done."""

    def program(comm):
        vectors = [np.random.default_rng([comm.rank, i]).random(length) for i in range(len(priorities))]
        handles = [comm.all_reduce(x, async_op=True, priority=p) for x, p in zip(vectors, priorities, strict=True)]
        ends = {}
        for i in sorted(range(len(priorities)), key=lambda i: (priorities[i], i)):
            handles[i].wait()
            ends[i] = comm.event_log.clock()
        return vectors, [ends[i] for i in range(len(priorities))]

    return program


@every_collective
def test_of_those_that_wait_the_lowest_number_goes_first(collective):
    _, ends = run(in_background(1, 5, 4, 3, 2), 2, collective=collective).results[0]
    assert ends[0] < ends[4] < ends[3] < ends[2] < ends[1]
    _, in_line = run(in_background(1, 1, 1, 1, 1), 2, collective=collective).results[0]
    assert ends[4] < in_line[4] - 3 * 32_000 * BETA / 2


@every_collective
@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_order_changes_when_and_never_what(collective, ranks):
    late = Faults(jitter=JITTERS["exponential"], slow={0: 30.0})
    sums = [
        [v.tobytes() for vectors, _ in run(in_background(*p), ranks, collective=collective, faults=late).results
         for v in vectors]
        for p in [(0, 0, 0, 0), (4, 3, 2, 1), (2, 9, 0, 2)]
    ]  # fmt: skip
    assert sums[0] == sums[1] == sums[2]


@every_collective
def test_equal_numbers_are_carried_as_if_there_were_none(collective):
    def program(priority):
        def steps(comm):
            for comm.event_log.step in range(3):
                work(comm, comm.rank + 1)
                handles = [comm.all_reduce(np.ones(500 * (3 - i)), "mean", True, priority) for i in range(3)]
                work(comm)
                for handle in handles:
                    handle.wait()
            return comm.event_log.clock()

        outcome = run(steps, 3, collective=collective, device=Device(1e9, math.inf, 1e-4))
        return outcome.results, [(j.spans, j.messages) for j in outcome.event_logs]

    assert program(0) == program(7)


@every_collective
def test_other_messages_do_not_wait_for_sums_with_a_number(collective):
    def program(comm):
        handles = [comm.all_reduce(np.ones(4000), async_op=True, priority=9) for _ in range(9)]
        other = 1 - comm.rank
        comm.send(1.0, other)
        comm.recv(other)
        arrived = comm.event_log.clock()
        for handle in handles:
            handle.wait()
        return arrived, comm.event_log.clock()

    arrived, end = run(program, 2, collective=collective).results[0]
    assert arrived < end / 4


def test_a_sum_on_its_way_is_not_stopped():
    def program(comm):
        long, short = np.ones(100_000), np.ones(1)
        handle = comm.all_reduce(long, async_op=True, priority=2)
        work(comm)  # a tenth of a second; the long one takes eight
        comm.all_reduce(short, priority=1)
        between = comm.event_log.clock()
        handle.wait()
        return between, comm.event_log.clock()

    between, end = run(program, 2, collective="stream", device=Device(math.inf, math.inf, 0.1)).results[0]
    assert between >= end > 0.8


@pytest.mark.parametrize("collective", COLLECTIVES[1:])
def test_of_those_that_come_at_the_same_moment_the_lowest_number_goes_first(collective):
    _, ends = run(in_background(3, 2, 1), 2, collective=collective).results[0]
    assert ends[2] < ends[1] < ends[0]


def test_a_message_that_takes_the_port_meanwhile_gives_the_urgent_time_to_come():
    def program(comm):
        handles = [comm.all_reduce(np.ones(n), async_op=True, priority=8) for n in (100_000, 1000)]
        work(comm)  # the first is on the wire for 0.8 s, and then the message takes the port
        comm.send(np.ones(100_000), 1 - comm.rank)
        work(comm, 9)
        comm.all_reduce(np.ones(1000), async_op=True, priority=1).wait()
        urgent = comm.event_log.clock()
        handles[1].wait()
        others = comm.event_log.clock()
        handles[0].wait(), comm.recv(1 - comm.rank)
        return urgent, others

    tenth = Device(math.inf, math.inf, 0.1)
    urgent, others = run(program, 2, collective="recursive_doubling", device=tenth).results[0]
    assert 1.6 < urgent < others


def test_a_sum_waits_for_its_turn_only_while_others_are_on_the_wire():
    (_, ends), (_, others) = (run(in_background(p), 4).results[0] for p in (0, 3))
    assert ends == others


def test_groups_that_share_ranks_share_their_ports():
    def program(comm):
        rows = comm.split(comm.rank // 2)
        handles = [g.all_reduce(np.ones(4000), async_op=True, priority=1 + i) for i, g in enumerate((comm, rows, comm))]
        for handle in handles:
            handle.wait()
        return comm.event_log.clock()

    for collective in ("stream", "ring"):
        busy = (2 * 2 * 3 / 4 + 1) * 32_000 * BETA
        assert min(run(program, 4, collective=collective).results) > busy
