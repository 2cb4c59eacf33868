"""Errors that a program catches: afterwards everything goes on, on real clusters."""

import os
import signal
import time
from functools import partial

import numpy as np
import pytest

from cluster.comm import Deadlock
from cluster.real import processes
from tests.contract.cluster.test_comm import run as run
from tests.contract.cluster.test_survived import (
    LARGE,
    REFUSED,
    SHORT,
    check_survivors,
    lose_a_rank,
    round_of_everything,
    whole_round,
)
from tests.contract.cluster.test_survived import (
    test_ranks_that_disagree_about_a_sum_are_told_and_only_that_group_has_no_collectives_any_more as test_disagreement,
)
from tests.system.cluster.test_comm import CLUSTERS
from tests.system.cluster.test_comm import cluster as cluster
from tests.training import wait_until_told

__all__ = ["test_disagreement"]

PATIENCE = 3.0  # s that a wait takes which shall be in vain; ranks meet well within it


def pytest_generate_tests(metafunc):
    if "cluster" in metafunc.fixturenames:
        metafunc.parametrize("cluster", CLUSTERS, indirect=True)


def make_mistakes(comm):
    """Let rank 1 ask for all that is refused; return what two rounds of everything bring after that."""
    for ask, sentence in REFUSED.values() if comm.rank == 1 else ():
        with pytest.raises(ValueError, match=sentence) as told:
            ask(comm)
        assert told.type is ValueError
    return round_of_everything(comm), round_of_everything(comm)


def test_whoever_asks_for_what_is_refused_may_go_on_and_nobody_else_notices(run):
    """As on the simulated cluster, but with fewer rounds: the contract has one after every four mistakes."""
    assert run(make_mistakes, 3).results == [(whole_round(rank, 3), whole_round(rank, 3)) for rank in range(3)]


def kill_myself(comm):
    wait_until_told(comm.event_log)
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("backend", ["sockets", "gloo"])
def test_whoever_catches_that_a_rank_is_lost_goes_on_with_the_others(backend):
    outcome = processes.run(partial(lose_a_rank, die=kill_myself), 3, backend=backend)
    assert outcome.error is None, outcome.error
    check_survivors(outcome.results)


def wait_in_vain(comm, length):
    """Rank 1 waits for what rank 0 sends and sums only later, catches that, and goes on."""
    group = comm.split(0)
    if comm.rank == 0:
        while not comm.poll(tag=5):
            time.sleep(0.01)
        comm.recv(1, tag=5)
        comm.send(7, 1, tag=6), comm.send(8, 1, tag=6)
        return round_of_everything(comm)
    handle, work = comm.irecv(0, tag=6), group.all_reduce(np.ones(length), async_op=True)
    for wait in (handle.wait, work.wait, work.wait, partial(group.all_reduce, np.ones(SHORT)), group.barrier):
        with pytest.raises(Deadlock, match="timeout"):
            wait()
    comm.send(None, 0, tag=5)
    assert (handle.wait(), handle.wait(), comm.recv(0, tag=6)) == (7, 7, 8)
    return round_of_everything(comm)


@pytest.mark.parametrize("length", [SHORT, LARGE])
def test_whoever_has_waited_too_long_may_wait_again_and_go_on(run, length):
    results = run(partial(wait_in_vain, length=length), 2, timeout=PATIENCE).results
    assert results == [whole_round(0, 2), whole_round(1, 2)]
