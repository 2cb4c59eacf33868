"""All-reduces of large vectors in memory that the ranks of one computer share."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from cluster.comm import RankLost, shares
from cluster.real import processes
from cluster.real.shared_all_reduce import AREA
from tracing import COMMUNICATE, WAIT

LENGTH = 1_300_007  # numbers: several chunks, and pieces of two lengths for every number of ranks
MAPS = Path("/proc/self/maps")

pytestmark = pytest.mark.skipif(not MAPS.exists(), reason="looks at its memory in /proc")


def mine(rank, dtype=np.float32, length=LENGTH):
    return np.random.default_rng([rank, length]).standard_normal(length).astype(dtype)


def mapped():
    return "memfd:lockstep" in MAPS.read_text()


def reduce_in_many_ways(comm):
    sums = [comm.all_reduce(mine(comm.rank, dtype), op) for dtype in (np.float32, np.float64) for op in ("sum", "mean")]
    begun = [
        comm.all_reduce(mine(comm.rank + i, length=length), "mean", async_op=True) for i, length in enumerate(MIXED)
    ]
    sums.append(comm.all_reduce(mine(comm.rank)))  # while others are in progress
    sums += [work.wait() for work in reversed(begun)]
    return sums, mapped()


MIXED = (LENGTH, 5, 262_144, 0, LENGTH)


@pytest.mark.slow
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_sums_in_shared_memory_have_the_bits_of_the_ring(size):
    here = processes.run(reduce_in_many_ways, size, backend="gloo").results
    ring = processes.run(reduce_in_many_ways, size, backend="sockets", collective="ring").results
    for (sums, shared), (expected, apart) in zip(here, ring, strict=True):
        assert shared and not apart
        for x, y in zip(sums, expected, strict=True):
            assert x.dtype == y.dtype and x.tobytes() == y.tobytes()


def reduce_two_types_in_turn(comm):
    wrong = 0
    for _ in range(20):
        narrow, wide = np.ones(5 * FULL, np.float32), np.ones(200_000)
        comm.all_reduce(narrow)
        comm.all_reduce(wide)
        wrong += int((narrow != 5).sum()) + int((wide != 5).sum())
    return wrong


FULL = 3 * (AREA // 5 // 4)  # float32 of a piece: as many as pass in three times, an odd number


@pytest.mark.slow
def test_a_sum_of_other_numbers_does_not_write_over_what_a_slower_rank_still_reads():
    assert processes.run(reduce_two_types_in_turn, 5).results == [0] * 5


def reduce_in_groups(comm):
    halves, pairs = comm.split(comm.rank % 2), comm.split(comm.rank // 2)
    first, second = mine(comm.rank), mine(comm.rank + 10)
    works = [(halves, first), (pairs, second)][:: 1 if comm.rank < 2 else -1]  # groups are independent of each other
    handles = [group.all_reduce(x, async_op=True) for group, x in works]
    for handle in handles:
        handle.wait()
    return first, second


@pytest.mark.slow
def test_groups_sum_apart_and_at_the_same_time():
    for rank, (first, second) in enumerate(processes.run(reduce_in_groups, 4).results):
        assert np.array_equal(first, mine(rank) + mine((rank + 2) % 4))
        assert np.array_equal(second, mine(rank + 10) + mine((rank ^ 1) + 10))


def send_before_waiting(comm):
    if comm.rank == 0:
        work = comm.all_reduce(np.ones(LENGTH, np.float32), async_op=True)
        comm.send(7, 1)
    else:
        assert comm.recv(0) == 7
        work = comm.all_reduce(np.ones(LENGTH, np.float32), async_op=True)
    comm.barrier()  # beside the sum, which sends messages as well
    return float(work.wait()[-1])


def test_a_sum_that_was_begun_does_not_wait_for_the_others_to_begin_theirs():
    assert processes.run(send_before_waiting, 2).results == [2.0, 2.0]


def reduce_late(comm):
    comm.barrier()
    comm.event_log.step = 3
    if comm.rank == 1:
        time.sleep(0.2)
    comm.all_reduce(np.ones(LENGTH, np.float32), "mean")
    return comm.event_log.flops


def test_the_record_has_one_message_to_the_right_and_who_waited_for_whom():
    outcome = processes.run(reduce_late, 3)
    for rank, log in enumerate(outcome.event_logs):
        spans = [span for span in log.spans if span[3] == 3]
        assert {span[4] for span in spans} == {"all-reduce"}
        assert [span[0] for span in spans] == ([COMMUNICATE] if rank == 1 else [WAIT, COMMUNICATE])
        ((dst, _, moved, sent, arrived, collective),) = [row for row in log.messages if row[2] > 0]
        sizes = [share.stop - share.start for share in shares(LENGTH, 3)]
        assert (dst, collective) == ((rank + 1) % 3, True) and sent < arrived
        assert moved == 4 * (2 * LENGTH - sizes[rank] - sizes[(rank + 1) % 3])


def look(comm, length):
    before = mapped()
    comm.all_reduce(np.ones(length, np.float32))
    return before, mapped()


@pytest.mark.parametrize(
    ("options", "length", "used"),
    [
        ({"backend": "gloo"}, LENGTH, True),
        ({"backend": "gloo"}, 1000, False),
        ({"backend": "gloo", "collective": "tree"}, LENGTH, False),
        ({"backend": "sockets"}, LENGTH, False),
    ],
    ids=str,
)
def test_memory_is_shared_for_large_vectors_only_and_only_if_no_collective_was_chosen(options, length, used):
    assert processes.run(partial(look, length=length), 2, **options).results == [(False, used)] * 2


def reduce_apart(comm):
    comm._state.nodes = ["near", "far"]
    group = comm.split(0)
    x = group.all_reduce(mine(comm.rank))
    return np.array_equal(x, mine(0) + mine(1)), mapped()


def test_ranks_of_several_computers_sum_by_torch():
    assert processes.run(reduce_apart, 2).results == [(True, False)] * 2


def let_go(comm):
    group = comm.split(0)
    group.all_reduce(np.ones(LENGTH, np.float32))
    during = mapped()
    del group
    return during, mapped()


def test_the_memory_goes_with_its_group():
    assert processes.run(let_go, 2).results == [(True, False)] * 2


def die_in_the_middle(comm, background):
    comm.all_reduce(np.ones(LENGTH, np.float32))
    if comm.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    work = comm.all_reduce(np.ones(LENGTH, np.float32), async_op=background)
    if background:
        work.wait()


@pytest.mark.parametrize("background", [False, True])
def test_ranks_that_wait_for_a_lost_one_say_so_at_once(background):
    outcome = processes.run(partial(die_in_the_middle, background=background), 3, timeout=600)
    assert isinstance(outcome.error, RankLost) and outcome.error.rank == 1 and "SIGKILL" in str(outcome.error)
