"""Emulated networks, devices and faults on real ranks: what is asked is obeyed, in the simulated cluster's words.

A busy machine makes real ranks late, never early: times are held from below, and the sums of what was drawn or priced.
"""

import itertools
import math
import os
import signal
import time
from functools import partial

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.comm import RankLost
from cluster.devices import Device
from cluster.event_log import Outcome
from cluster.faults import JITTERS, Faults
from cluster.network import Link, Network
from cluster.real import processes, threads
from cluster.real.emulated_network import EmulatedNetwork
from cluster.real.links import Envelope, Links
from tests.training import wait_until_told
from tracing import COMPUTE, IDLE

SLOW = Link(latency=0.01, bandwidth=1e6, overhead=1e-4)
QUICK = Link(latency=0.0, bandwidth=1e8)
TWO_NODES = Network(SLOW, QUICK, per_node=2)
TWO_NICS = Network(SLOW, QUICK, per_node=2, nics=2)
START = {"processes": partial(processes.run, backend="sockets"), "threads": threads.run}


def flat(link=SLOW):
    return Network(link, link)


def done(outcome: Outcome) -> Outcome:
    if outcome.error:
        raise outcome.error
    return outcome


def on(cluster: str, program, size: int, **emulated) -> Outcome:
    return done(START[cluster](program, size, **emulated))


# the network


def scattered(comm):
    """Send what a seed says, to whom it says, one after the other; receive all of it."""
    dice = np.random.default_rng(7)
    plan = dice.integers(0, [comm.size, comm.size, 3000], (60, 3)).tolist()
    kernels.scale(np.zeros(1 + 997 * comm.rank), 1.0)  # so that no two ranks send at the very same time
    for src, dst, n in plan:
        if src == comm.rank != dst:
            comm.send(np.zeros(n, np.uint8), dst)
    for _ in range(sum(dst == comm.rank != src for src, dst, _ in plan)):
        comm.recv_any()


def carried(outcome, *columns):
    """Return these columns of the messages of an outcome, in the order of sending."""
    messages = outcome.trace().messages
    return list(zip(*(messages[column].tolist() for column in columns), strict=True))


@pytest.mark.parametrize("network", [flat(), TWO_NODES, TWO_NICS])
def test_an_emulated_network_computes_what_the_simulated_one_does(network):
    """Take the simulated run's messages and times of sending; emulated ports deliver them at the same times."""
    rows = carried(done(simulated.run(scattered, 4, network=network)), "src", "dst", "bytes", "sent", "arrived")
    assert len(rows) > 30
    emulated = [EmulatedNetwork(network, rank) for rank in range(4)]
    for rank in (1, 3):  # ranks of a NIC share its ports
        if network.nic(rank) == network.nic(rank - 1):
            emulated[rank]._nic_ports = emulated[rank - 1]._nic_ports
    reached = []
    for src, dst, n, sent, arrived in rows:
        overhead = network.link(src, dst).overhead  # a simulated row has the time after it
        left, reaches = emulated[src].leave(dst, n, sent - overhead)
        assert left >= sent + n / network.link(src, dst).bandwidth - 1e-12
        reached.append((reaches, src, dst, n, arrived))
    for reaches, src, dst, n, arrived in sorted(reached, key=lambda row: row[0]):
        assert emulated[dst].enter(src, n, reaches) == pytest.approx(arrived, rel=1e-9)


@pytest.mark.parametrize("cluster", START)
@pytest.mark.parametrize("network", [flat(), TWO_NODES, TWO_NICS])
def test_no_message_is_seen_before_the_emulated_network_delivers_it(cluster, network):
    rows = carried(on(cluster, scattered, 4, network=network), "src", "dst", "bytes", "sent", "arrived")
    assert len(rows) > 30
    for src, dst, n, sent, arrived in rows:
        link = network.link(src, dst)
        assert arrived - sent >= link.overhead + link.latency + n / link.bandwidth - 1e-9


def burst(comm):
    """Let all others send 10 ms of the port's time to rank 0 at once."""
    if comm.rank:
        comm.send(np.zeros(10_000, np.uint8), 0)
    else:
        assert sorted(comm.recv_any()[0] for _ in range(comm.size - 1)) == [1, 2, 3]


@pytest.mark.parametrize("cluster", START)
def test_what_reaches_a_port_at_once_passes_it_one_after_the_other(cluster):
    assert_one_after_the_other(carried(on(cluster, burst, 4, network=flat()), "sent", "arrived"))


def assert_one_after_the_other(messages):
    """Each (sent, arrived) of 10 ms of one port's time is in after all before it have passed, if not later still."""
    sent, arrived = map(np.array, zip(*messages, strict=True))
    passed = 0.01 * np.arange(1, len(messages) + 1)
    assert (np.sort(arrived) >= sent.min() + SLOW.latency + passed - 1e-9).all()


def side_by_side(comm):
    """Let both ranks of the first node send 10 ms of their port's time to the second node."""
    if comm.rank < 2:
        comm.send(np.zeros(10_000, np.uint8), comm.rank + 2)
    else:
        comm.recv(comm.rank - 2)


@pytest.mark.parametrize("cluster", START)
def test_ranks_of_a_node_share_its_port(cluster):
    assert_one_after_the_other(carried(on(cluster, side_by_side, 4, network=TWO_NODES), "sent", "arrived"))


def sums(comm):
    x = np.random.default_rng(comm.rank).standard_normal(400_000).astype(np.float32)
    works = [comm.all_reduce(part, async_op=True) for part in np.split(x, 2)]
    for work in works:
        work.wait()
    comm.all_reduce(x, "mean")
    return x, comm.nodes


@pytest.mark.parametrize("ranks", [2, 3])
def test_an_all_reduce_goes_over_the_emulated_links_in_the_messages_and_with_the_bits_of_the_ring(ranks):
    """Also where gloo would have summed such a vector: 1.6 MB; and where two ranks of their own would do it in one."""
    network = Network(Link(1e-4, 1e8), Link(1e-5, 1e9), per_node=2)
    real = done(processes.run(sums, ranks, backend="gloo", network=network))
    predicted = done(simulated.run(sums, ranks, network=network, collective="ring"))
    for (x, nodes), (expected, others) in zip(real.results, predicted.results, strict=True):
        assert np.array_equal(x, expected) and list(nodes) == others == [0, 0, 1][:ranks]

    what = "src", "dst", "bytes", "collective"
    assert sorted(carried(real, *what)) == sorted(carried(predicted, *what))


def impatient(comm):
    if comm.rank == 0:
        comm.send(np.zeros(10_000, np.uint8), 1)
        return None
    polls = 0
    while not (seen := comm.poll()):
        polls += 1
    at = comm.event_log.clock()
    return list(seen), polls, at, comm.recv_any()[0]


def patient(comm):
    if comm.rank == 0:
        comm.send(np.zeros(10_000, np.uint8), 1)
        return None
    comm.recv(0)
    return comm.event_log.clock()


@pytest.mark.parametrize("cluster", START)
def test_a_message_is_received_and_listed_by_poll_when_its_last_byte_is_in(cluster):
    slow = Link(latency=0.5, bandwidth=1e6)  # so slow that a busy machine, too, has the time to poll
    takes = 0.5 + 0.01
    assert on(cluster, patient, 2, network=flat(slow)).results[1] >= takes
    seen, polls, at, src = on(cluster, impatient, 2, network=flat(slow)).results[1]
    assert seen == [0] and src == 0 and polls > 3 and at >= takes


def test_the_loss_of_a_rank_is_seen_after_what_it_had_sent():
    outcome = processes.run(words_then_death, 2, backend="sockets", network=flat(Link(0.5, 1e6)))
    assert done(outcome).results[0] == ["ndarray", "NoneType"]
    assert "rank 1 was lost" in outcome.notes[0] and "killed by SIGKILL" in outcome.notes[0]


def words_then_death(comm):
    if comm.rank == 1:
        comm.send(np.zeros(20_000, np.uint8), 0)
        wait_until_told(comm.event_log)
        os.kill(os.getpid(), signal.SIGKILL)
    return [type(comm.recv_any()[1]).__name__ for _ in range(2)]


def test_messages_of_set_up_are_not_delayed_and_those_to_oneself_take_no_time():
    """`split` and `shared` are rendezvous of the cluster, no traffic of the algorithm's."""
    never = Network(Link(1e6, 1e3), Link(1e6, 1e3), per_node=2)  # a message takes eleven days
    outcome = on("processes", groups, 4, network=never)
    assert outcome.results == [(2, 3.0)] * 4


def groups(comm):
    half = comm.split(comm.rank % 2)
    shared = half.shared(np.full(2, 3.0))
    comm.send(float(shared.vector[1]), comm.rank)
    return half.size, comm.recv(comm.rank)


def test_links_deliver_in_the_order_of_a_port_whatever_is_read_first():
    """The frame whose first byte reaches the port first passes first, though it was read last."""
    links, seen = Links(0, {}, lambda *_: None), []
    links._on_the_way.update({1: 2, 2: 1})
    links._received.update({1: 0, 2: 0})
    links.emulate(EmulatedNetwork(flat(Link(0.0, 1e3)), 0), time.monotonic() - 100)  # all of it is past
    links.network = None  # nothing moves yet
    with links.news:
        for src, reaches in ((1, 5.0), (1, 3.0), (2, 4.0)):
            envelope = Envelope(src, 0.0, 0.0, np.zeros(1000, np.uint8))
            links._hold(reaches, partial(links._enter, "c", envelope, -1))
        links.network = EmulatedNetwork(flat(Link(0.0, 1e3)), 0)
        links._advance()
        seen = [(e.src, round(e.arrived - links._zero, 6)) for e in links._boxes["c"]]
    assert seen == [(1, 4.0), (2, 5.0), (1, 6.0)]


class LateMachine:
    """A clock that goes on by 1 us whenever it is looked at, and a condition whose sleepers wake up `late`."""

    def __init__(self, late: float):
        self.now, self.late, self.slept = 0.0, late, 0.0

    def monotonic(self) -> float:
        self.now += 1e-6
        return self.now

    def wait(self, seconds: float) -> bool:
        self.now += seconds + self.late
        self.slept += seconds + self.late
        return False

    def notify_all(self) -> None:
        """Nobody else waits."""


@pytest.mark.parametrize(("late", "seen"), [(0.0, 0.0), (3e-5, 0.0), (9e-5, 0.0), (2e-3, 1.9e-3)])
def test_a_rank_that_waits_is_awake_when_its_message_is_due_however_late_its_machine_wakes_it(monkeypatch, late, seen):
    links, machine, overdue = Links(0, {}, lambda *_: None), LateMachine(late), []
    monkeypatch.setattr("cluster.real.links.time", machine)
    monkeypatch.setattr(links, "news", machine)
    links.network, links._zero = EmulatedNetwork(flat(), 0), 0.0
    for _ in range(100):
        due = machine.now + 1e-3
        links._hold(due, lambda due: overdue.append(machine.now - due))
        told = len(overdue)
        while len(overdue) == told:
            links._await(links._advance())
    assert min(overdue) >= 0 and np.median(overdue[50:]) == pytest.approx(seen, abs=1e-5)
    assert machine.slept > 0.98 * machine.now  # the rest it looked at the clock


# devices, slowness, jitter


PRICED = Device(flops=1e9, bandwidth=1e9, overhead=2e-4)


def steps(comm, count=20):
    """Take steps of one kernel each; return when the last has ended."""
    x, y = np.zeros(50_000, np.float32), np.ones(50_000, np.float32)
    for step in range(count):
        comm.event_log.step = step
        with comm.event_log.doing(COMPUTE, "gradient"):
            kernels.add(x, y)
    return comm.event_log.clock()


@pytest.mark.parametrize("cluster", START)
@pytest.mark.parametrize("faults", [Faults(), Faults(slow={1: 3.0}), Faults(jitter=JITTERS["cloud"], seed=5)])
def test_kernels_take_as_long_as_on_the_emulated_device(cluster, faults):
    """In sum, since a rank that was late catches up; jitter is drawn as on the simulated cluster."""
    predicted = done(simulated.run(steps, 2, device=PRICED, faults=faults)).results
    measured = on(cluster, steps, 2, device=PRICED, faults=faults).results
    for real, priced in zip(measured, predicted, strict=True):
        assert real >= priced - 1e-4  # what is too short for a sleep is left for the next kernel
    if faults.slow:
        assert measured[1] >= 3 * predicted[0] - 1e-4


def busy(comm):
    """Return the processor time of some kernels, and how long they took by the clock."""
    x, y = np.zeros(1_000_000, np.float32), np.ones(1_000_000, np.float32)
    start, used = comm.event_log.clock(), time.thread_time()
    for _ in range(20):
        kernels.add(x, y)
    return time.thread_time() - used, comm.event_log.clock() - start


@pytest.mark.parametrize("cluster", START)
def test_a_slow_rank_takes_its_factor_of_the_processor_time_it_needs(cluster):
    (_, _), (used, took) = on(cluster, busy, 2, faults=Faults(slow={1: 4.0})).results
    assert took >= 0.9 * 4 * used  # 0.9: Python between the kernels is not stretched after the last


def sums_late(comm, length, async_op):
    """Let rank 0 wait for rank 1 in an all-reduce; return when its emulated device goes on."""
    if comm.rank == 1:
        time.sleep(0.3)
    work = comm.all_reduce(np.ones(length), async_op=async_op)
    if async_op:
        work.wait()
    return comm._state.compute.due


@pytest.mark.parametrize("length", [10, 1 << 18])
@pytest.mark.parametrize("async_op", [False, True])
def test_an_emulated_device_goes_on_when_the_all_reduce_is_done_that_it_waited_for(length, async_op):
    """Over links, by a background thread, and in shared memory."""
    program = partial(sums_late, length=length, async_op=async_op)
    assert done(processes.run(program, 2, device=PRICED)).results[0] >= 0.3


# pauses and crashes


@pytest.mark.parametrize("cluster", START)
def test_a_pause_stops_a_rank_between_two_times_of_the_clock(cluster):
    outcome = on(cluster, steps, 2, device=PRICED, faults=Faults(pause={1: ((0.003, 0.2),)}))
    spans = outcome.trace().spans
    idle = spans["kind"] == IDLE
    assert spans["rank"][idle].tolist() == [1]
    assert (spans["start"][idle].item(), spans["end"][idle].item()) == (0.003, 0.2)
    assert outcome.results[1] >= 0.2 + 0.01  # the rest of the 20 steps of 0.8 ms


def waits_paused(comm):
    if comm.rank == 0:
        comm.send(1.0, 1)
        return None
    comm.recv(0)
    return comm.event_log.clock()


def test_a_wait_is_over_when_the_message_is_there_and_the_pause_is_over():
    assert on("processes", waits_paused, 2, faults=Faults(pause={1: ((0.0, 0.3),)})).results[1] >= 0.3


def report(comm, path=os.devnull):
    """Record step after step, and write to the file at `path` when that was done, until something ends it."""
    with open(path, "ab", buffering=0) as done:
        for step in itertools.count():
            comm.event_log.losses.append((step, 1, comm.event_log.clock(), 0.5))
            done.write(f"{comm.event_log.clock()}\n".encode())
            time.sleep(0.01)


def hear_of_its_death(comm, path):
    if comm.rank == 1:
        report(comm, path)
    return comm.recv_any()


def test_a_crash_kills_the_process_and_loses_nothing_that_it_recorded(tmp_path):
    program = partial(hear_of_its_death, path=tmp_path / "done")
    outcome = processes.run(program, 2, backend="sockets", faults=Faults(crash={1: 0.75}))
    assert done(outcome).results == [(1, None), None]
    assert any("rank 1 was lost" in note and "killed by SIGKILL" in note for note in outcome.notes)
    recorded = [step for step, *_ in outcome.event_logs[1].losses]
    before = sum(float(moment) < 0.75 for moment in (tmp_path / "done").read_text().split())
    assert recorded == list(range(len(recorded))) and len(recorded) >= before


def waits_for_it(comm):
    if comm.rank == 1:
        report(comm)
    return comm.recv(1)


def test_a_crash_ends_the_run_where_the_others_cannot_go_on():
    outcome = processes.run(waits_for_it, 2, backend="sockets", faults=Faults(crash={1: 0.2}))
    assert isinstance(outcome.error, RankLost) and outcome.error.rank == 1


def test_a_thread_is_not_killed_but_refused():
    with pytest.raises(ValueError, match="a thread cannot be killed"):
        threads.run(steps, 2, faults=Faults(crash={1: 0.2}))


def test_without_emulation_frames_carry_no_time():
    links = Links(0, {}, lambda *_: None)
    assert links.network is None and math.isnan(links._zero) and links._advance() > 1000
