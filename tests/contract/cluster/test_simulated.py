"""The simulated cluster: time, links, faults, and errors."""

import math
import re
import weakref
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np
import pytest

import kernels
from cluster import simulated
from cluster.comm import Cancelled, Deadlock, RankFailed, RankLost
from cluster.devices import Device
from cluster.faults import JITTERS, Faults, parse_crash, parse_pause, parse_slow
from cluster.network import Link, Network
from cluster.waits import Wait
from kernels.meter import Prices
from tests.quotes import quote
from tracing import COMMUNICATE, COMPUTE, IDLE, KINDS, UPDATE, WAIT

ALPHA, BANDWIDTH = 1e-3, 1e6
LINK = Network(Link(ALPHA, BANDWIDTH), Link(1e-6, 1e9))
UNIT = Device(flops=math.inf, bandwidth=math.inf, overhead=0.5)  # every kernel takes half a second


def work(comm, kernels_called=1, label="work"):
    with comm.event_log.doing(COMPUTE, label):
        for _ in range(kernels_called):
            kernels.scale(np.ones(1), 1.0)


def run(program, ranks, **options):
    options.setdefault("network", LINK)
    options.setdefault("device", UNIT)
    return simulated.run(program, ranks, **options)


def test_a_message_takes_latency_plus_bytes_over_bandwidth():
    def program(comm):
        if comm.rank == 0:
            comm.send(np.zeros(1000, np.float32), 1)
        else:
            comm.recv(0)
        return comm.event_log.clock()

    assert run(program, 2).results == [0.0, pytest.approx(ALPHA + 4000 / BANDWIDTH, rel=1e-12)]


def test_messages_of_one_sender_leave_one_after_the_other():
    def program(comm):
        if comm.rank == 0:
            for dst in (1, 2, 3):
                comm.send(np.zeros(1000, np.float32), dst)
        else:
            comm.recv(0)
        return comm.event_log.clock()

    assert run(program, 4).results[1:] == pytest.approx([ALPHA + k * 0.004 for k in (1, 2, 3)])


def test_messages_for_one_receiver_arrive_one_after_the_other():
    def program(comm):
        if comm.rank:
            comm.send(np.zeros(1000, np.float32), 0)
            return None
        return [(comm.recv_any()[0], comm.event_log.clock()) for _ in range(3)]

    arrivals = run(program, 4).results[0]
    assert [at for _, at in arrivals] == pytest.approx([ALPHA + k * 0.004 for k in (1, 2, 3)])
    assert [src for src, _ in arrivals] == [1, 2, 3]


def test_ranks_of_one_node_share_its_nics_and_talk_inside_over_its_own_link():
    def program(comm):
        if comm.rank < 2:  # node 0 sends to node 1
            comm.send(np.zeros(1000, np.float32), comm.rank + 2)
            comm.send(np.zeros(1000, np.float32), 1 - comm.rank, tag=1)
            comm.recv(1 - comm.rank, tag=1)
        else:
            comm.recv(comm.rank - 2)
        return comm.event_log.clock()

    for nics, last in ((1, ALPHA + 0.008), (2, ALPHA + 0.004)):
        times = run(program, 4, network=Network(LINK.between, LINK.within, per_node=2, nics=nics)).results
        assert times[:2] == pytest.approx([1e-6 + 4e-6] * 2)
        assert sorted(times[2:]) == pytest.approx([ALPHA + 0.004, last])


def test_ranks_take_the_nics_of_their_node_in_blocks_and_more_nics_than_ranks_are_not_used():
    nics = [[replace(LINK, per_node=4, nics=nics).nic(rank) for rank in range(6)] for nics in (1, 2, 4, 8)]
    assert nics == [[0, 0, 0, 0, 1, 1], [0, 0, 1, 1, 2, 2], [0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5]]
    assert replace(LINK, nics=8).nic(3) == 3
    with pytest.raises(ValueError, match=quote("2 … 1 rank per node")):
        LINK.on_nodes(per_node=1, nics=2)


def test_a_blocked_rank_waits_until_the_other_sends_and_communicates_from_then_on():
    def program(comm):
        if comm.rank == 0:
            work(comm, 2)
            comm.send(np.zeros(1000, np.float32), 1)
        else:
            comm.recv(0)

    spans = run(program, 2).trace().spans
    mine = [
        (int(k), float(s), float(e))
        for r, k, s, e in zip(*(spans[c] for c in ("rank", "kind", "start", "end")), strict=True)
        if r == 1
    ]
    assert mine == [(WAIT, 0.0, 1.0), (COMMUNICATE, 1.0, pytest.approx(1.0 + ALPHA + 0.004))]


@pytest.mark.parametrize("collective", ["fast", "recursive_doubling"])
def test_the_overhead_of_sending_lies_in_the_span_of_the_collective_that_sends(collective):
    def program(comm):
        work(comm)
        comm.send(None, 1 - comm.rank)
        comm.recv(1 - comm.rank)
        comm.all_reduce(np.ones(8, np.float32))

    link = Link(ALPHA, 1e6, overhead=0.25)
    outcome = run(program, 2, network=Network(link, link), collective=collective)
    for event_log in outcome.event_logs:
        assert [label for *_, label in event_log.spans].count("overhead") == 1
        assert all(end <= start for (_, _, end, *_), (_, start, *_) in pairwise(event_log.spans))


def test_compute_is_charged_by_the_roofline_of_the_device_times_the_slowness_of_the_rank():
    device = Device(flops=1e6, bandwidth=1e7, overhead=1e-3)

    def program(comm):
        kernels.sgd(np.zeros(1000, np.float32), np.zeros(1000, np.float32), 0.1)
        return comm.event_log.clock()

    flops, words = kernels.sgd.price(np.zeros(1000, np.float32))
    seconds = 1e-3 + max(flops / 1e6, 4 * words / 1e7)
    results = run(program, 2, device=device, faults=Faults(slow={1: 3.0})).results
    assert results == [pytest.approx(seconds), pytest.approx(3 * seconds)]


@pytest.mark.parametrize("seen", [False, True], ids=["in_one_span", "each_its_own_span"])
@pytest.mark.parametrize("pause", [{}, {0: [(0.001, 0.5)]}], ids=["", "paused"])
def test_kernels_whose_work_is_done_in_one_call_take_the_time_that_they_take_one_by_one(seen, pause):
    prices = Prices()
    with kernels.meter_kernels(prices):
        for elements in (3, 70_000, 11):
            kernels.scale(np.ones(elements), 0.1)

    def program(comm, together):
        times = []
        for comm.event_log.step in range(40):
            with nullcontext() if seen else comm.event_log.doing(COMPUTE, "work"):
                if together:
                    prices.charge_again()
                else:
                    for row in prices.rows:
                        kernels.METER.get().charge(*row)
            times.append(comm.event_log.clock())
        return times, comm.event_log.flops

    faults = Faults(slow={0: 3}, jitter=JITTERS["exponential"], pause=pause)
    device = Device(7e9, 3e9, 1e-7)
    both = [run(partial(program, together=how), 1, device=device, faults=faults) for how in (False, True)]
    assert both[0].results == both[1].results and both[0].results[0][0][-1] > 0.5 * bool(pause)
    assert both[0].event_logs[0].spans == both[1].event_logs[0].spans


def test_jitter_is_drawn_per_step_and_depends_on_the_seed_alone():
    def program(comm):
        times = []
        for comm.event_log.step in range(5):
            before = comm.event_log.clock()
            work(comm)
            comm.all_reduce(np.ones(3))
            times.append(comm.event_log.spans[-2][2] - before)
        return times

    draws = [run(program, 2, faults=Faults(jitter=JITTERS["cloud"], seed=s)).results for s in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert len(set(draws[0][0])) == 5


def test_a_pause_stops_a_rank_and_then_it_goes_on():
    def program(comm):
        work(comm, 2)
        return comm.event_log.clock()

    outcome = run(program, 2, faults=Faults(pause={1: ((0.25, 10.25),)}))
    assert outcome.results == [1.0, 11.0]
    spans = outcome.trace().spans
    assert ((spans["kind"] == IDLE) & (spans["rank"] == 1) & (spans["end"] == 10.25)).any()


def send_and_receive(comm):
    x = np.zeros(100_000, np.float32)
    if comm.rank:
        comm.send(x, 0)
    return x if comm.rank else comm.recv(1)


def write_together(comm):
    return comm.shared(np.zeros(10)).add(np.ones(10))


class Touch:
    """Steps at these coordinates that compute between their read and their write."""

    price = None

    def __init__(self, where, steps=1):
        self.where, self.steps = where, steps

    def parts(self):
        return (Touch(self.where) for _ in range(self.steps))

    def __call__(self, w, atomic):
        kernels.scale(w, 2.0)
        return 0.0


def read_and_add(shared, where):
    for _ in range(20):
        shared.add(shared.read(where), where)


@pytest.mark.parametrize("where", [slice(None), np.array([1, 5])])
@pytest.mark.parametrize("use", [read_and_add, lambda shared, where: shared.walk(Touch(where, 20))])
@pytest.mark.parametrize("ranks", [2, 5])
def test_under_one_lock_no_two_ranks_read_or_write_at_a_time(ranks, use, where):
    device = Device(flops=math.inf, bandwidth=1e9, overhead=0.0)
    logs = run(lambda comm: use(comm.shared(np.zeros(8), "locked"), where), ranks, device=device).event_logs
    touched = sorted(span[1:3] for log in logs for span in log.spans if span[0] == UPDATE and span[4] != "scale")
    assert len(touched) >= 20 * ranks
    assert all(end <= start + 1e-15 for (_, end), (start, _) in pairwise(touched))


@pytest.mark.parametrize("collective", ["fast", "ring"])
@pytest.mark.parametrize("talk", [lambda comm: comm.all_reduce(np.ones(100_000)), send_and_receive, write_together])
@pytest.mark.parametrize("at", [0.1, 0.6, 1.2])
def test_nothing_goes_on_while_a_rank_is_paused(talk, collective, at):
    def program(comm):
        for comm.event_log.step in range(2):
            work(comm)
            kernels.scale(np.ones(1), 1.0)
            talk(comm)

    pauses = dict.fromkeys((0, 1), ((at, at + 0.15), (at + 0.2, at + 5)))
    spans = run(program, 2, collective=collective, faults=Faults(pause=pauses)).trace().spans
    for rank in (0, 1):
        own = [row[1:] for row in sorted(zip(*(spans[name] for name in ("rank", "start", "end")), strict=True))
               if row[0] == rank]  # fmt: skip
        assert all(end <= start for (_, end), (start, _) in pairwise(own))
        assert ((spans["rank"] == rank) & (spans["kind"] == IDLE)).any()


def test_a_run_is_a_pure_function_of_what_it_was_given():
    def program(comm):
        x = np.random.default_rng(comm.rank).random(50)
        for comm.event_log.step in range(4):
            work(comm)
            if comm.rank:
                comm.send(x, 0)
                x = comm.recv(0)
            else:
                for _ in range(comm.size - 1):
                    src, y = comm.recv_any()
                    x = (x + y) / 2
                    comm.send(x, src)
        return x

    first, second = (run(program, 5, faults=Faults(jitter=JITTERS["pareto"])) for _ in range(2))
    for x, y in zip(first.results, second.results, strict=True):
        assert np.array_equal(x, y)
    for table in ("spans", "messages"):
        for name, column in getattr(first.trace(), table).items():
            np.testing.assert_array_equal(column, getattr(second.trace(), table)[name])


def test_a_deadlock_says_who_waits_for_whom_since_when():
    def program(comm):
        work(comm, comm.rank + 1)
        comm.recv((comm.rank + 1) % comm.size, tag=7)

    error = run(program, 2).error
    assert isinstance(error, Deadlock)
    assert error.waits == (Wait(0, 1, 0.5, tag=7), Wait(1, 0, 1.0, tag=7))
    for wait in error.waits:
        assert str(wait) in str(error)
        assert re.search(quote(f"rank {wait.rank} … {wait.whom} … tag 7 … {wait.since:g} s"), str(wait))


def test_a_collective_that_somebody_does_not_join_is_a_deadlock():
    error = run(lambda comm: comm.rank or comm.all_reduce(np.ones(3)), 3).error
    assert isinstance(error, Deadlock)
    assert re.search(quote("rank 0 … all-reduce"), str(error))


def test_the_first_error_of_a_rank_is_the_error_of_the_run_and_names_rank_and_step():
    def program(comm):
        for comm.event_log.step in range(3):
            work(comm)
            if comm.rank == 1 and comm.event_log.step == 2:
                raise ZeroDivisionError("the cake is a lie")
            comm.barrier()

    outcome = run(program, 3)
    assert isinstance(outcome.error, RankFailed)
    assert (outcome.error.rank, outcome.error.step) == (1, 2)
    assert isinstance(outcome.error.__cause__, ZeroDivisionError)
    assert re.search(quote("rank 1 … step 2 … ZeroDivisionError: the cake is a lie"), str(outcome.error))
    assert len(outcome.event_logs[0].spans) > 2


def test_a_server_hears_of_a_lost_worker_once_and_goes_on():
    def program(comm):
        if comm.rank == 0:
            heard, training = [], comm.size - 1
            while training:
                src, x = comm.recv_any()
                heard.append((src, x))
                training -= x is None
            return heard
        for comm.event_log.step in range(4):
            work(comm)
            comm.send(comm.event_log.step, 0)
        comm.send(None, 0)
        return None

    outcome = run(program, 3, faults=Faults(crash={2: 1.25}))
    assert outcome.error is None
    assert [x for src, x in outcome.results[0] if src == 2] == [0, 1, None]
    assert [x for src, x in outcome.results[0] if src == 1] == [0, 1, 2, 3, None]
    assert re.search(quote("rank 2 … lost … 1.25 s … step 2"), outcome.notes[0])


def test_an_all_reduce_in_the_background_ends_before_a_later_crash_of_a_rank_that_computes_on():
    def program(comm):
        x = np.ones(4)
        sum_ = comm.all_reduce(x, async_op=True)
        work(comm, 4 * (comm.rank == 2))  # the rank that is lost runs ahead of the clock, to its crash
        sum_.wait()
        return x.tolist(), comm.event_log.clock()

    *others, lost = run(program, 3, faults=Faults(crash={2: 1.5})).results
    assert lost is None
    assert others == run(program, 3, faults=Faults(crash={2: 9.0})).results[:2]
    assert all(x == [3.0] * 4 and end < 1.5 for x, end in others)


@pytest.mark.parametrize("collective", ["fast", "ring"])
def test_a_rank_lost_in_a_synchronous_method_is_named_with_its_step(collective):
    def program(comm):
        for comm.event_log.step in range(10):
            work(comm)
            comm.all_reduce(np.ones(5))

    outcome = run(program, 4, collective=collective, faults=Faults(crash={3: 2.6}))
    assert isinstance(outcome.error, RankLost)
    assert (outcome.error.rank, outcome.error.seconds) == (3, 2.6)
    assert re.search(quote("rank 3 … 2.6 s … step"), str(outcome.error))


@pytest.mark.parametrize("collective", ["fast", "ring"])
@pytest.mark.parametrize("crash", [{3: 2.6}, {2: 2.6, 3: 2.6}])
def test_a_rank_whose_sums_wait_for_lost_ones_hears_of_it_while_another_polls(collective, crash):
    def program(comm):
        workers = comm.split(None if comm.rank == 0 else 1)
        if comm.rank == 0:
            while 1 not in comm.poll(tag=1):
                work(comm)
                assert comm.event_log.clock() < 1000
            comm.send(comm.recv(1, tag=1), 1)
        if comm.rank in crash:
            work(comm, 100)
        if comm.rank == 1:
            sums = [workers.all_reduce(np.ones(5), async_op=True) for _ in range(3)]
            for each in sums:
                with pytest.raises(RankLost, match=r"rank [23] .*lost.* 2\.6 s"):
                    each.wait()
            comm.send(len(sums), 0, tag=1)
            return comm.recv(0)
        return None

    outcome = run(program, 4, collective=collective, faults=Faults(crash=crash))
    assert outcome.error is None and outcome.results[1] == 3


@pytest.mark.parametrize("wait", [lambda comm: comm.recv(1), lambda comm: comm.broadcast(None, 1)])
def test_a_rank_that_catches_a_loss_goes_on_at_the_time_at_which_it_learned_of_it(wait):
    def program(comm):
        if comm.rank == 0:
            with pytest.raises(RankLost):
                wait(comm)
            return comm.event_log.clock()
        return work(comm, 100)

    outcome = run(program, 2, faults=Faults(crash={1: 1.25}))
    assert outcome.results[0] == 1.25 + ALPHA
    assert [row[:3] for row in outcome.event_logs[0].spans] == [(WAIT, 0.0, 1.25 + ALPHA)]


@pytest.mark.parametrize(("collective", "background"), [("fast", False), ("stream", True), ("ring", False)])
def test_a_sum_that_a_rank_does_not_live_to_see_is_seen_by_nobody(collective, background):
    def program(comm):
        for comm.event_log.step in range(3):
            work(comm)
            handle = comm.all_reduce(np.ones(3000), async_op=background)
            if background:
                handle.wait()
            sums.append((comm.event_log.step, comm.rank))

    def spans(**options):
        sums.clear()
        spans = run(program, 3, collective=collective, **options).trace().spans
        return [
            row[1:]
            for row in zip(*(spans[name] for name in ("rank", "kind", "start", "end")), strict=True)
            if row[0] == 1
        ]

    sums: list = []
    _, (_, begin, end), *_ = [row for row in spans() if row[0] == COMMUNICATE]
    middle = (begin + end) / 2
    disturbed = spans(faults=Faults(crash={1: middle}))
    assert sorted(sums) == [(0, 0), (0, 1), (0, 2)]
    assert [start for kind, start, _ in disturbed if kind == IDLE] == [middle]
    assert max(end for kind, _, end in disturbed if kind != IDLE) == middle  # until then it takes part


def test_a_loss_is_heard_after_the_last_message_that_had_left():
    """Three messages leave one after the other, each for as long as the latency: the loss is known amid them."""

    def program(comm):
        if comm.rank == 0:
            if by_name:
                got = [comm.recv(1) for _ in range(3)]
                with pytest.raises(RankLost):
                    comm.recv(1)
                return got
            return [comm.recv_any()[1] for _ in range(4)]
        for i in range(3):
            comm.send((i, np.zeros(int(BANDWIDTH * 2 * ALPHA / 8))), 0)
        return work(comm, 100)

    for by_name in (False, True):
        outcome = run(program, 2, faults=Faults(crash={1: 0.5 * ALPHA}))
        assert outcome.error is None, outcome.error
        got = outcome.results[0]
        assert [i for i, _ in got[:3]] == [0, 1, 2] and got[3:] == ([] if by_name else [None])


def test_a_loss_that_is_known_comes_before_a_message_that_is_still_arriving():
    def program(comm):
        if comm.rank == 0:
            while not (seen := list(comm.poll())):
                pass
            return seen, [comm.recv_any()[0] for _ in range(2)], list(comm.poll())
        if comm.rank == 1:
            return comm.send(np.zeros(int(BANDWIDTH * 10 * ALPHA / 8)), 0)
        return work(comm, 100)

    outcome = run(program, 3, faults=Faults(crash={2: 3 * ALPHA}))
    assert outcome.error is None and outcome.results[0] == ([2], [2, 1], [])


@pytest.mark.parametrize("collective", ["fast", "stream", "tree"])
@pytest.mark.parametrize("priority", [0, 1])
def test_whoever_waits_in_a_sum_that_others_do_not_want_learns_of_it_when_they_come(priority, collective):
    def program(comm):
        if comm.rank == 2:
            work(comm)
        x = np.ones(3, np.float32 if comm.rank == 2 else np.float64)
        with pytest.raises(ValueError, match=quote("rank 2 … 3 numbers … float32 … 3 numbers")):
            comm.all_reduce(x, async_op=True, priority=priority).wait()
        return comm.event_log.clock()

    outcome = run(program, 3, collective=collective)
    assert outcome.error is None and outcome.results == [outcome.results[2]] * 3


def test_messages_nobody_read_are_named():
    def program(comm):
        if comm.rank == 0:
            comm.send(1.0, 1, tag=3)
            comm.send(2.0, 1, tag=3)

    (note,) = run(program, 2).notes
    assert re.search(quote("rank 1 … 2 messages … rank 0 … tag 3"), note)


def test_a_background_all_reduce_overlaps_with_the_work_of_its_rank():
    def program(comm, background):
        x = np.ones(1000)
        handle = comm.all_reduce(x, async_op=background)
        work(comm)
        if background:
            handle.wait()
        assert (x == comm.size).all()
        return comm.event_log.clock()

    for collective in ("fast", "ring", "tree"):
        alone, overlapped = (
            run(
                lambda comm, b=b: program(comm, b), 4, collective=collective, device=Device(1e9, math.inf, 0.01)
            ).results
            for b in (False, True)
        )
        assert max(overlapped) < max(alone) - 0.009


@pytest.mark.parametrize("collective", ["fast", "ring"])
def test_a_sum_that_is_done_lets_go_of_its_vector(collective):
    def program(comm):
        for async_op in (False, True):
            x = np.ones(3)
            known = weakref.ref(x)
            work = comm.all_reduce(x, async_op=async_op)
            if async_op:
                work.wait()
            del work, x
            comm.barrier()
            assert known() is None

    assert run(program, 3, collective=collective).error is None


@pytest.mark.parametrize("network", [LINK, Network(LINK.between, Link(1e-6, 1e9), per_node=2)])
def test_a_sum_that_its_rank_does_not_wait_for_takes_the_time_of_its_messages_and_so_do_later_ones(network):
    def program(comm):
        ends = []
        for comm.event_log.step in range(2):
            work(comm, 1 + comm.rank)
            handles = [comm.all_reduce(np.ones(n), "mean", async_op=True, priority=1) for n in (900, 30, 400)]
            comm.all_reduce(np.ones(50))
            for handle in handles:
                handle.wait()
                ends.append(comm.event_log.clock())
        return ends

    fast, ring = (run(program, 4, collective=c, network=network).results for c in ("fast", "ring"))
    assert fast == ring


def test_a_rank_waits_for_a_sum_in_the_background_until_all_have_joined_and_then_communicates():
    def program(comm):
        work(comm, 1 + comm.rank)
        comm.all_reduce(np.ones(3000), async_op=True).wait()
        return comm.event_log.clock()

    outcome = run(program, 2)
    last, end = 2 * UNIT.overhead, outcome.results[0]
    spans = [(kind, start, until) for kind, start, until, *_ in outcome.event_logs[0].spans[1:]]
    assert [kind for kind, *_ in spans] == [WAIT, COMMUNICATE]
    assert [time for _, *times in spans for time in times] == pytest.approx([UNIT.overhead, last, last, end])


def test_background_all_reduces_share_the_port():
    def program(comm):
        handles = [comm.all_reduce(np.ones(10_000), async_op=True) for _ in range(3)]
        for handle in handles:
            handle.wait()
        return comm.event_log.clock()

    device = Device(math.inf, math.inf, 0.0)
    stream, ring = (max(run(program, 4, collective=c, device=device).results) for c in ("stream", "ring"))
    bytes_alone = 3 * 2 * 3 / 4 * 80_000 / BANDWIDTH
    assert stream >= bytes_alone
    assert ring >= bytes_alone


def test_progress_is_told_and_a_run_can_be_stopped():
    seen = []

    def program(comm):
        while True:
            work(comm)
            comm.barrier()

    outcome = run(program, 2, on_progress=lambda event_logs, at: seen.append(at), stop=lambda: len(seen) > 1)
    assert isinstance(outcome.error, Cancelled)
    assert seen and seen[-1] > 0
    assert outcome.event_logs[0].spans


def test_a_thousand_ranks_are_no_trouble():
    def program(comm):
        x = np.full(10, float(comm.rank))
        comm.all_reduce(x, "mean")
        return x[0]

    assert run(program, 1000).results == [pytest.approx(499.5)] * 1000


@pytest.mark.parametrize(
    ("parse", "text", "sentence"),
    [
        (parse_slow, "2-3", "rank:factor"),
        (parse_slow, "9:2", "no rank 9 … 0 to 3"),
        (parse_slow, "1:0", "0.01 to 1000"),
        (parse_slow, "1:2,1:3", "rank 1 … 2 and 3"),
        (parse_pause, "1:0-1e999", "rank 1 … 0 to 1e+07 s"),
        (parse_crash, "1:1e999", "rank 1 … 0 to 1e+07 s"),
        (parse_crash, "1:1-1e999", "rank 1 … 0 to 1e+07 s"),
        (parse_pause, "1:0.8-0.5", "0.5 s … 0.8 s"),
        (parse_crash, "x", "rank:second"),
        (parse_crash, "1:0.5-", "1:0.5-"),
        (parse_crash, "1:0.8-0.5", "0.5 s … 0.8 s"),
        (parse_crash, "1:0.5,1:0.8", "rank 1 … twice"),
    ],
)
def test_a_disturbance_that_does_not_read_is_refused_in_one_sentence(parse, text, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        parse(text, 4)


def test_pauses_that_overlap_are_one_from_the_first_begin_to_the_last_end():
    def program(comm):
        work(comm, 4)  # 2 s
        return comm.event_log.clock()

    pause = parse_pause("0:0.8-1.2,0:1-1.5,0:1.1-1.3,0:1.6-1.7", 1)
    assert pause == {0: ((0.8, 1.5), (1.6, 1.7))}
    assert run(program, 1, faults=Faults(pause=pause)).results == [pytest.approx(2 + 0.7 + 0.1)]


def test_disturbances_read_as_they_are_written():
    assert parse_slow("2:3, 0:1.5", 4) == {2: 3.0, 0: 1.5}
    assert parse_pause("1:0.5-0.8,1:0.1-0.2", 4) == {1: ((0.1, 0.2), (0.5, 0.8))}
    assert parse_crash("", 4) == {}
    assert parse_crash("1:0.5,0:0.1-0.2", 4) == {1: (0.5, math.inf), 0: (0.1, 0.2)}
    assert len(KINDS) == 5
