"""Restarts: a rank is lost and starts again without memory; to which of its incarnations a message goes."""

import math
import re

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.comm import Deadlock
from cluster.devices import Device
from cluster.faults import JITTERS, Faults
from cluster.network import Link, Network
from tests.quotes import quote
from tracing import COMPUTE, HELD, IDLE

LATENCY = 0.01
LINK = Network(Link(LATENCY, math.inf), Link(LATENCY, math.inf))
SECOND = Device(flops=math.inf, bandwidth=math.inf, overhead=1.0)  # that is what every kernel takes
AWAY = Faults(crash={1: 2.5}, back={1: 4.25})


def work(comm, seconds=1):
    with comm.event_log.doing(COMPUTE, "work"):
        for _ in range(seconds):
            kernels.scale(np.ones(1), 1.0)


def run(program, ranks=2, faults=AWAY, **options):
    return simulated.run(program, ranks, network=LINK, device=SECOND, faults=faults, **options)


def incarnations(first, again, other):
    """A program: rank 1 does `first` in its first incarnation and `again` in the next one, the others do `other`."""
    begun = []

    def program(comm):
        if comm.rank != 1:
            return other(comm)
        begun.append(comm.event_log.clock())
        return (first if len(begun) == 1 else again)(comm)

    return program


def clock(comm):
    return comm.event_log.clock()


def long(comm):
    for comm.event_log.step in range(9):
        work(comm)


def test_its_program_begins_again_when_it_comes_back_and_its_result_is_the_new_one():
    outcome = run(incarnations(long, clock, clock))
    assert outcome.error is None and outcome.results == [0.0, 4.25]
    (note,) = outcome.notes
    assert re.search(quote("rank 1 … 2.5 s … step 2 … restarted … 4.25 s"), note)


def test_the_time_away_is_a_gap_that_nothing_reaches_into():
    spans = run(incarnations(lambda comm: work(comm, 9), work, clock)).event_logs[1].spans
    assert [row[:3] for row in spans] == [(COMPUTE, 0.0, 2.5), (IDLE, 2.5, 4.25), (COMPUTE, 4.25, 5.25)]
    assert spans[1][4] == "lost"


def test_a_rank_that_is_done_before_it_would_be_lost_stays_done():
    outcome = run(lambda comm: work(comm, 2) or comm.rank)
    assert outcome.results == [0, 1] and not outcome.notes and len(outcome.event_logs[1].spans) == 1


def test_what_is_sent_to_it_while_it_is_away_is_lost_and_later_it_is_there():
    def other(comm):
        for second in range(6):
            comm.send(second, 1)
            work(comm)

    outcome = run(incarnations(lambda comm: [comm.recv(0) for _ in range(9)], lambda comm: comm.recv(0), other))
    assert outcome.error is None and outcome.results[1] == 5  # at 3 and 4 s it was not there


def test_what_is_on_its_way_to_its_former_life_is_lost():
    def other(comm):
        work(comm, 4)
        comm.send(4.0, 1)  # comes at 4.01 s
        work(comm)
        comm.send(5.0, 1)

    away = Faults(crash={1: 2.5}, back={1: 4.005})
    assert run(incarnations(long, lambda comm: comm.recv(0), other), faults=away).results[1] == 5


def test_what_it_had_sent_arrives():
    def first(comm):
        work(comm, 2)
        comm.send(1, 0)
        long(comm)

    def other(comm):
        work(comm, 6)
        return comm.recv(1), comm.recv(1)

    assert run(incarnations(first, lambda comm: comm.send(2, 0), other)).results[0] == (1, 2)


def asking(name, count):
    def ask(comm):
        answers = []
        for k in range(count):
            comm.send((name, k), 0)
            answers.append(comm.recv(0))
        return answers

    return ask


@pytest.mark.parametrize(("before", "between"), [(0, 3), (0, 5), (5, 0)], ids=["away", "answered late", "read late"])
@pytest.mark.parametrize("refused", [False, True], ids=["", "after one that was refused"])
def test_an_answer_goes_to_the_life_that_asked(before, between, refused):
    def server(comm):
        work(comm, before)
        for _ in range(4):
            src, x = comm.recv_any()
            work(comm, between)
            if refused:
                with pytest.raises(ValueError, match="tag"):
                    comm.send(x, src, tag=-1)
            comm.send(x, src)

    done = run(incarnations(asking(1, 9), asking(2, 3), server))
    assert done.error is None and done.results[1] == [(2, 0), (2, 1), (2, 2)]
    assert not [note for note in done.notes if "never read" in note]


def test_others_are_not_told_that_it_is_gone():
    def server(comm):
        return [comm.recv_any() for _ in range(2)]

    def first(comm):
        comm.send(1, 0)
        long(comm)

    assert run(incarnations(first, lambda comm: comm.send(2, 0), server)).results[0] == [(1, 1), (1, 2)]


def test_who_came_back_knows_whom_the_others_know_to_be_lost_for_good():
    def other(comm):
        if comm.rank == 2:
            long(comm)
        return clock(comm)

    both = Faults(crash={1: 2.5, 2: 3.5}, back={1: 4.25})
    assert run(incarnations(long, lambda comm: comm.recv_any(), other), 3, both).results[1] == (2, None)


def test_a_rank_that_waits_for_what_was_lost_is_a_deadlock_that_says_who_came_back():
    outcome = run(incarnations(long, clock, lambda comm: comm.recv(1)))
    assert isinstance(outcome.error, Deadlock)
    assert [(wait.rank, wait.source) for wait in outcome.error.waits] == [(0, 1)]
    assert re.search(quote("rank 1 … 2.5 s … step 2 … restarted … 4.25 s"), str(outcome.error))


def test_its_memory_is_empty_when_it_comes_back():
    def first(comm):
        comm.event_log.hold("parameters", 400)
        long(comm)

    rows = run(incarnations(first, long, clock)).event_logs[1].memory
    assert [row[1:] for row in rows] == [(0.0, 0, 400), (4.25, 0, 0)] and HELD[0] == "parameters"


def test_its_pauses_go_on_where_they_are():
    pauses = Faults(crash={1: 2.5}, back={1: 4.25}, pause={1: ((0.5, 1.0), (4.0, 4.5))})
    spans = run(incarnations(long, work, clock), faults=pauses).event_logs[1].spans
    assert [row[1:3] for row in spans if row[4] == "paused"] == [(0.5, 1.0), (4.25, 4.5)]


@pytest.mark.parametrize("jitter", [None, JITTERS["cloud"]])
def test_it_is_as_quick_as_it_was(jitter):
    def step(comm):
        comm.event_log.step = 3
        start = clock(comm)
        work(comm)
        return clock(comm) - start

    def first(comm):
        comm.event_log.step = 3
        work(comm, 9)

    slow = Faults(crash={1: 2.5}, back={1: 4.25}, slow={1: 2.0}, jitter=jitter)
    alone = Faults(slow={1: 2.0}, jitter=jitter)
    assert run(incarnations(first, step, clock), faults=slow).results[1] == pytest.approx(
        run(lambda comm: step(comm), faults=alone).results[1]
    )


def test_two_runs_are_the_same():
    def event_logs():
        done = run(incarnations(asking(1, 9), asking(2, 3), lambda comm: [echo(comm) for _ in range(7)]))
        return [(j.spans, j.messages) for j in done.event_logs]

    assert event_logs() == event_logs()


def echo(comm):
    src, x = comm.recv_any()
    work(comm)
    comm.send(x, src)
