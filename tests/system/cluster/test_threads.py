"""Threads as ranks: what is their own beyond the Comm contract, to which `test_comm.py` holds them as well."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from functools import partial

import numpy as np
import pytest

from cluster.comm import Cancelled, RankFailed
from cluster.real import threads
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.patience import wait_until
from tests.training import train
from workloads import sparse


def ranks():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("rank ")]


def test_the_vector_is_the_same_memory_for_all_of_them():
    def program(comm):
        shared = comm.shared(np.zeros(4))
        shared.vector[comm.rank] = 1 + comm.rank
        comm.barrier()
        return shared.read().tolist()

    assert threads.run(program, 4).results == [[1, 2, 3, 4]] * 4


@pytest.mark.parametrize("guard", ["atomic", "writes", "locked"])
def test_guarded_walks_lose_no_addition(guard):
    class Count:
        where, price = slice(None), None

        def __init__(self, steps):
            self.steps = steps

        def parts(self):
            return (Count(1) for _ in range(self.steps))

        def __call__(self, w, atomic):
            import kernels

            for _ in range(self.steps):
                (kernels.descend_atomic if atomic else kernels.sgd)(w, np.full(len(w), -1.0), 1.0)
            return 0.0

    def program(comm):
        shared = comm.shared(np.zeros(20_000), guard)  # long enough for NumPy to let others go on
        comm.barrier()
        shared.walk(Count(60))
        comm.barrier()
        return set(shared.read())

    assert threads.run(program, 4).results == [{240}] * 4


@pytest.mark.parametrize("guard", ["atomic", "writes", "locked"])
def test_no_guarded_addition_is_lost_be_it_to_all_numbers_a_slice_or_some_places(guard):
    def program(comm):
        shared, places = comm.shared(np.zeros(60_000), guard), np.array([0, 59_999, 30_000, 0])
        comm.barrier()
        for _ in range(100):
            shared.add(np.ones(60_000))
            shared.add(np.ones(30_000), slice(30_000))
            shared.add(np.ones(4), places)
        comm.barrier()
        values = shared.read()
        return [set(values[part]) for part in (slice(1, 30_000), slice(30_001, 59_999), [0], [59_999], [30_000])]

    assert threads.run(program, 4).results == [[{800}, {400}, {1600}, {800}, {800}]] * 4


def send_much_and_sum_in_the_background(comm):
    sums = [comm.all_reduce(np.ones(10), async_op=True) for _ in range(3)]
    comm.send(np.ones(1_000_000), 1 - comm.rank)  # more than a socket holds
    comm.recv(1 - comm.rank)
    return [float(handle.wait()[0]) for handle in sums]


def fail_with_work_in_the_background(comm):
    comm.all_reduce(np.ones(10), async_op=True)
    comm.send(np.ones(1_000_000), 1 - comm.rank)
    comm.barrier()
    if comm.rank:
        raise ValueError("enough")
    comm.all_reduce(np.ones(10), async_op=True).wait()


@pytest.mark.parametrize("program", [send_much_and_sum_in_the_background, fail_with_work_in_the_background])
def test_a_run_leaves_neither_threads_nor_sockets(program):
    def left():
        gc.collect()
        sockets = os.listdir("/proc/self/fd") if os.path.isdir("/proc/self/fd") else []
        return np.array([threading.active_count(), len(sockets)])

    threads.run(program, 2)
    before = left()
    for _ in range(4):
        threads.run(program, 2)
    wait_until(lambda: (left() <= before).all())  # they are about to end


def test_an_error_of_one_ends_the_others_and_leaves_no_thread():
    def program(comm):
        if comm.rank == 1:
            comm.event_log.step = 7
            raise ValueError("enough")
        while True:
            comm.event_log.clock()
            time.sleep(0.001)

    outcome = threads.run(program, 3)
    assert isinstance(outcome.error, RankFailed)
    assert "rank 1 failed at step 7: ValueError: enough" in str(outcome.error)
    assert ranks() == []


def test_a_rank_that_leaves_by_sys_exit_is_missed():
    def program(comm):
        if comm.rank == 1:
            sys.exit("enough")
        comm.recv(1)

    outcome = threads.run(program, 2)
    assert isinstance(outcome.error, RankFailed) and "rank 1 failed: SystemExit: enough" in str(outcome.error)
    assert ranks() == []


def test_it_can_be_stopped_and_keeps_what_was_recorded():
    recorded = []

    def on_progress(event_logs, seconds):
        recorded[:] = [len(event_log.losses) for event_log in event_logs]

    workload = sparse.build(sparse.Settings(rows=512, features=100))
    on_threads = partial(threads.run, on_progress=on_progress, stop=lambda: min(recorded, default=0) > 10)
    done = train("hogwild", workload, 2, batch=32, steps=10**7, fails=True, run=on_threads)
    assert isinstance(done.outcome.error, Cancelled)
    assert all(len(event_log.losses) > 10 for event_log in done.outcome.event_logs)
    assert ranks() == []


def test_an_experiment_runs_on_threads_and_learns():
    done = run(Experiment.of({"algorithm": "hogwild", "workload": "sparse", "cluster": "threads", "workers": 2,
                              "learning_rate": 2.0, "batch": 256, "epochs": 20, "steps": None}))  # fmt: skip
    assert done.status == "finished"
    assert done.summary["held_out_loss"] < 0.65 < np.log(2)
    assert ranks() == []
