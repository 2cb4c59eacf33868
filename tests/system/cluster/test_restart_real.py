"""Restarts on real ranks: a new process takes the place of one that crashed, and hears nothing that was not for it.

Times are held from below: a rank comes back when it was to, or later.
"""

import contextlib
import os
import socket
import time
from functools import partial
from multiprocessing import Pipe
from threading import Thread

import numpy as np
import psutil
import pytest

from cluster.comm import Cancelled, Deadlock, RankFailed
from cluster.faults import Faults
from cluster.network import Link, Network
from cluster.real import processes, threads
from cluster.real.failure import rank_lost
from cluster.real.links import OPEN, Links
from cluster.real.rank_state import RankStatus
from cluster.real.restart import RestartableLinks
from cluster.real.returns import Returns
from cluster.real.supervisor import StatusReport, Supervisor
from tests.training import wait_until_told
from tracing import HELD, IDLE

CRASH, BACK = 1.0, 1.8
AWAY = Faults(crash={1: CRASH}, back={1: BACK})
HELLO = 1  # the tag by which a new incarnation tells that it is there


def run(first, again, other, ranks=2, faults=AWAY, **options):
    """Let rank 1 run `first`, and `again` when it has come back; the others run `other`. Leave no process behind."""
    seen = set()

    def look(event_logs, seconds):
        seen.update(int(row[3]) for event_log in event_logs for row in event_log.measures if row[2] == "process")

    options = {"backend": "sockets", "on_progress": look, **options}
    outcome = processes.run(
        partial(one_of, first, other), ranks, faults=faults, restart=partial(another, again, other), **options
    )
    look(outcome.event_logs, 0)
    assert len(seen) >= ranks and not [number for number in seen if runs(number)]
    return outcome


def one_of(first, other, comm):
    comm.event_log.measures.append((-1, comm.event_log.clock(), "process", float(os.getpid())))
    return (first if comm.rank == 1 else other)(comm)


def another(again, other, event_log):
    return partial(one_of, again if event_log.rank == 1 else other, other)


def runs(number):
    with contextlib.suppress(psutil.NoSuchProcess):
        return psutil.Process(number).status() != psutil.STATUS_ZOMBIE
    return False


def finished(outcome):
    if outcome.error:
        raise outcome.error
    return outcome


def clock(comm):
    return comm.event_log.clock()


def wait(comm):
    while True:
        time.sleep(0.01)


def numbers_of(outcome, rank):
    return [int(row[3]) for row in outcome.event_logs[rank].measures]


# one event log


def count(comm, start=0, steps=10**9):
    for comm.event_log.step in range(start, start + steps):
        comm.event_log.losses.append((comm.event_log.step, 1, clock(comm), 0.5))
        comm.event_log.hold("parameters", 400)
        comm.event_log.charge("work", 1.0, 0.0)
        comm.send(comm.event_log.step, 0)
        time.sleep(0.01)
    comm.send(None, 0)


def hear(comm):
    got = []
    while (x := comm.recv(1)) is not None:
        got.append(x)
    return got


def test_it_comes_back_as_another_process_and_goes_on_in_one_event_log():
    outcome = finished(run(count, partial(count, start=10**6, steps=5), hear))
    log = outcome.event_logs[1]
    assert len(set(numbers_of(outcome, 1))) == 2
    assert outcome.results[0][-5:] == list(range(10**6, 10**6 + 5)) and outcome.results[0][0] == 0
    before = [row for row in log.losses if row[0] < 10**6]
    after = [row for row in log.losses if row[0] >= 10**6]
    assert before and len(after) == 5 and max(row[2] for row in before) < BACK <= min(row[2] for row in after)
    ((_, lost, born, step, _),) = [row for row in log.spans if row[0] == IDLE and row[4] == "lost"]
    assert lost < BACK <= born and step == before[-1][0]
    assert not [row for row in log.spans if row[1] < born and row[2] > lost and row[4] != "lost"]
    assert log.flops == len(log.losses)
    arrived = [row for row in log.messages if row[4] == row[4]]
    assert len(arrived) == len(outcome.results[0]) + 1 and all(row[4] >= row[3] for row in arrived)
    (note,) = outcome.notes
    assert (
        note.startswith("rank 1 was lost at ")
        and f"(step {step}); it restarted at {born:.4g} s without its memory" in note
    )


def test_its_memory_is_empty_when_it_comes_back():
    rows = finished(run(count, partial(count, start=10**6, steps=1), hear)).event_logs[1].memory
    assert [(kind, nbytes) for _, _, kind, nbytes in rows] == [(HELD.index("parameters"), n) for n in (400, 0, 400)]
    assert rows[1][1] >= BACK


# what is sent to it


def is_there(comm):
    comm.send(None, 0, HELLO)
    got = []
    while (x := comm.recv(0)) is not None:
        got.append(x)
    return got


def talks_on(comm):
    said = []
    while not comm.poll(HELLO):
        said.append(clock(comm))
        comm.send(said[-1], 1)
        time.sleep(0.005)
    comm.send(clock(comm), 1)
    comm.send(None, 1)
    return said


def test_what_is_sent_to_it_while_it_is_away_is_dropped_and_later_it_is_there():
    said, heard = finished(run(wait, is_there, talks_on)).results
    assert [x for x in said if CRASH < x < BACK]
    assert heard and min(heard) >= BACK


def test_others_are_not_told_that_it_is_gone():
    outcome = finished(run(says(1, stay=True), says(2), hears_two))
    assert outcome.results[0] == [(1, 1), (1, 2)]


def says(x, stay=False):
    return partial(_say, x, stay)


def _say(x, stay, comm):
    comm.send(x, 0)
    if stay:
        wait(comm)


def hears_two(comm):
    return [comm.recv_any() for _ in range(2)]


def test_what_it_had_sent_arrives_from_an_emulated_network_after_it_has_come_back():
    link = Link(latency=4.0, bandwidth=1e9)
    outcome = finished(run(says(1, stay=True), says(2), hears_two, network=Network(link, link)))
    assert outcome.results[0] == [(1, 1), (1, 2)]
    rows = outcome.event_logs[1].messages
    assert len(rows) == 2 and all(row[4] >= row[3] + 4.0 for row in rows) and rows[0][4] > BACK


# replies


def asks(name, comm):
    """Ask three times; rank 2 learns of the new incarnation first."""
    if name == 2:
        comm.send(None, 2, HELLO)
    answers = []
    for k in range(3):
        comm.send((name, k), 0)
        answers.append(comm.recv(0))
    return answers


def answers(when, comm):
    if comm.rank == 2:
        comm.recv(1, HELLO)
        return comm.send(None, 0, HELLO)
    if when == "read late":
        comm.recv(2, HELLO)
    src, x = comm.recv_any()
    assert (src, x) == (1, (1, 0))
    if when == "answered late":
        comm.recv(2, HELLO)
    if when == "away":
        while clock(comm) < CRASH or comm._state.links._ended.get(1) is None:
            time.sleep(0.001)
    comm.send(x, src)
    for _ in range(3):
        src, x = comm.recv_any()
        comm.send(x, src)
    return None


@pytest.mark.parametrize("when", ["away", "answered late", "read late"])
def test_an_answer_goes_to_the_incarnation_that_asked(when):
    outcome = finished(run(partial(asks, 1), partial(asks, 2), partial(answers, when), 3))
    assert outcome.results[1] == [(2, 0), (2, 1), (2, 2)]
    assert not [note for note in outcome.notes if "never read" in note and "from rank 0" in note]


# several


def greets(later, comm):
    """Let the rank that comes back last greet the others, and hear their answers."""
    if comm.rank != later:
        comm.recv(later, HELLO)
        return comm.send(None, later, HELLO)
    for other in {0, 1, 2} - {later}:
        comm.send(None, other, HELLO)
    return sorted(comm.recv_any(HELLO)[0] for _ in range(2))


def greets_or_waits(later, comm):
    return wait(comm) if comm.rank else greets(later, comm)


@pytest.mark.parametrize("later", [1, 2])
def test_two_that_were_away_at_once_find_each_other(later):
    back = {1: BACK, 2: BACK} | {later: BACK + 0.5}
    faults = Faults(crash={1: CRASH, 2: CRASH}, back=back)
    again = partial(greets, later)
    outcome = processes.run(
        partial(greets_or_waits, later), 3, backend="sockets", faults=faults, restart=lambda event_log: again
    )
    assert finished(outcome).results[later] == sorted({0, 1, 2} - {later}) and len(outcome.notes) == 2


def test_who_came_back_knows_whom_the_others_know_to_be_lost_for_good():
    faults = Faults(crash={1: CRASH, 2: CRASH}, back={1: BACK})
    outcome = finished(run(wait, hears_any, waits_or_ends, 3, faults))
    assert outcome.results[1] == (2, None)
    assert any("rank 2 was lost" in note for note in outcome.notes)


def hears_any(comm):
    return comm.recv_any()


def waits_or_ends(comm):
    if comm.rank == 2:
        wait(comm)


# a node's ports


SLOW, QUICK = Link(latency=0.01, bandwidth=1e6), Link(latency=0.0, bandwidth=1e8)


def sends_aside(comm):
    comm.send(None, 0, HELLO)
    comm.send(np.zeros(50_000, np.uint8), 4)


def receives_across(comm):
    if comm.rank == 0:
        comm.recv(1, HELLO)
        comm.send(np.zeros(50_000, np.uint8), 2)
    elif comm.rank in (2, 4):
        comm.recv(comm.rank // 2 - 1)


def test_a_rank_that_came_back_shares_the_port_of_its_node():
    outcome = finished(run(wait, sends_aside, receives_across, 6, network=Network(SLOW, QUICK, per_node=2)))
    (first,) = [row[4] for row in outcome.event_logs[0].messages if row[2] == 50_000]
    (second,) = [row[4] for row in outcome.event_logs[1].messages if row[2] == 50_000]
    assert abs(first - second) >= 0.05 - 1e-9


# the end of a run


def test_a_wait_for_a_rank_that_is_away_is_no_deadlock():
    faults = Faults(crash={1: CRASH}, back={1: CRASH + 3.0})
    outcome = finished(run(wait, says(7), hears_any, faults=faults, timeout=2.0))
    assert outcome.results[0] == (1, 7)


def test_a_wait_for_what_was_lost_is_a_deadlock_that_says_who_came_back():
    outcome = run(wait, clock, hears_from_1)
    assert isinstance(outcome.error, Deadlock)
    assert [(wait.rank, wait.source) for wait in outcome.error.waits] == [(0, 1)]


def hears_from_1(comm):
    return comm.recv(1)


def test_two_that_wait_for_each_other_are_a_deadlock_after_the_return():
    outcome = run(wait, hears_from_0, hears_from_1)
    assert isinstance(outcome.error, Deadlock)
    assert "rank 1 was lost at " in str(outcome.error) and "it restarted at " in str(outcome.error)


def hears_from_0(comm):
    return comm.recv(0)


def test_it_is_found_though_messages_of_its_first_life_come_after_its_return():
    link = Link(latency=4.0, bandwidth=1e9)
    outcome = run(says(1, stay=True), says_and_waits, hears_three, network=Network(link, link))
    assert isinstance(outcome.error, Deadlock) and "no message is on its way" in str(outcome.error)
    assert len(outcome.event_logs[1].messages) == 2 and all(row[4] > BACK for row in outcome.event_logs[1].messages)


def says_and_waits(comm):
    comm.send(2, 0)
    comm.recv(0)


def hears_three(comm):
    return [comm.recv(1) for _ in range(3)]


def test_a_new_connection_waits_until_the_old_one_is_heard_out():
    (old, predecessor), (new, caller) = socket.socketpair(), socket.socketpair()
    links = RestartableLinks(0, {1: old}, lambda *_: None, {1})
    waiting = Thread(target=links.welcome, args=(1, 5.0, new), daemon=True)
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    predecessor.close()
    waiting.join(60)
    assert not waiting.is_alive() and links.state[1] == OPEN
    there = Links(1, {0: caller}, lambda *_: None) if caller.recv(16, socket.MSG_WAITALL) else None
    links.send(1, (0, 0), 7, 6.0)
    slot = there.slot(0, (0, 0))
    assert there.wait(slot, [0], 60) and slot.envelope.x == 7


def test_a_run_that_is_cancelled_while_a_rank_is_away_ends():
    noticed = []

    def stop():
        return bool(noticed)

    def look(event_logs, seconds):
        if seconds > CRASH + 0.5:
            noticed.append(seconds)

    faults = Faults(crash={1: CRASH}, back={1: 3600.0})
    outcome = processes.run(
        partial(one_of, wait, wait), 2, backend="sockets", faults=faults, on_progress=look, stop=stop
    )
    assert isinstance(outcome.error, Cancelled)
    assert [row[4] for row in outcome.event_logs[1].spans if row[0] == IDLE] == ["lost"]
    assert not [number for rank in range(2) for number in numbers_of(outcome, rank) if runs(number)]


def test_who_fails_while_another_is_away_is_the_cause():
    faults = Faults(crash={1: CRASH}, back={1: 3600.0})
    outcome = run(wait, wait, fails_later, faults=faults)
    assert isinstance(outcome.error, RankFailed) and outcome.error.rank == 0


def fails_later(comm):
    while clock(comm) < CRASH + 0.5:
        time.sleep(0.01)
    raise RuntimeError("on purpose")


def test_a_rank_that_is_done_before_it_would_be_lost_stays_done():
    outcome = finished(run(says(3), says(4), hears_then_waits))
    assert outcome.results == [3, None] and not outcome.notes


def hears_then_waits(comm):
    x = comm.recv(1)
    while clock(comm) < CRASH + 0.5:
        time.sleep(0.01)
    return x


def test_a_rank_that_came_back_and_is_killed_then_is_lost_for_good():
    outcome = finished(run(wait, kills_itself, hears_any))
    assert outcome.results[0] == (1, None)
    assert len(outcome.notes) == 2 and " ".join(outcome.notes).count("was lost at") == 2


def kills_itself(comm):
    comm.event_log.step = 0
    wait_until_told(comm.event_log)
    os.kill(os.getpid(), 9)


def test_a_rank_that_is_killed_as_it_asks_where_the_others_are_raises_nothing_in_the_parent():
    returns = Returns({1: BACK})
    returns.away[1] = rank_lost(1, CRASH, 0, "it was killed by SIGKILL")
    parent = Supervisor(2, None, None, returns=returns)
    pipe, gone = Pipe()
    gone.close()
    before = StatusReport(0.0, 0.0, RankStatus(False, 0.0, 0, 0))
    parent.pipes, parent.reports, parent.offers = {pipe: 1}, {1: before}, {0: ("door",)}
    parent._offer(1, ("door",))
    assert not returns.away and not parent.failures  # its closed pipe is noticed next


def test_what_cannot_take_a_rank_back_refuses():
    with pytest.raises(ValueError, match="nccl cannot restart ranks"):
        processes.run(wait, 2, backend="nccl", faults=AWAY)
    with pytest.raises(ValueError, match="a thread cannot be killed"):
        threads.run(wait, 2, faults=AWAY)
