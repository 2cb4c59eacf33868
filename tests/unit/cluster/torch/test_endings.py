"""How a run of ranks ends: by an error, an exit, a loop, a call that blocks, or because the user wants it to."""

import os
import threading
import time

import pytest
import torch
import torch.distributed as dist

from cluster.comm import Cancelled, ClusterError, RankFailed
from cluster.torch import simulate, watchdog
from cluster.torch.launch import run
from cluster.torch.machines import SimulatedMachines
from cluster.torch.watchdog import Blocked
from tests.quotes import quote


def begin():
    dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def line(function, offset):
    return f"line {function.__code__.co_firstlineno + offset} of test_endings.py"


def test_an_exception_of_a_rank_is_its_cause_and_names_the_rank_and_the_line():
    def fail():
        r, _ = begin()
        if r == 1:
            raise KeyError("weights")
        dist.barrier()

    with pytest.raises(RankFailed, match=quote(f"rank 1 failed ({line(fail, 3)}): KeyError: 'weights'")) as error:
        simulate(fail, 2)
    assert isinstance(error.value.__cause__, KeyError)


def test_a_rank_that_exits_with_an_error_ends_the_run_and_one_without_does_not():
    def leave(code, by):
        r, _ = begin()
        if r == 1:
            by(code)
        return r

    for by in (lambda code: os._exit(code), exit):  # looked up inside the rank
        assert simulate(leave, 2, args=(0, by)).results == [0, None]
        with pytest.raises(ClusterError, match=quote("rank 1 exits with 3")):
            simulate(leave, 2, args=(3, by))


def test_an_endless_loop_ends_with_its_line():
    def loop():
        begin()
        dist.barrier()
        while True:
            pass

    error = run(loop, SimulatedMachines(2, patience=0.5)).outcome.error
    assert isinstance(error, Blocked) and (line(loop, 3) in str(error) or line(loop, 4) in str(error))
    assert simulate(begin, 2).results == [(0, 2), (1, 2)], "and the process can simulate again"


def test_a_rank_that_is_slow_because_the_machine_is_busy_is_not_ended(monkeypatch):
    def compute_for(seconds):
        begin()
        end = time.thread_time() + seconds
        while time.thread_time() < end:
            pass
        return "done"

    began = time.monotonic()
    monkeypatch.setattr(watchdog, "real_time", lambda: began + 4 * (time.monotonic() - began))  # a quarter of a core
    machines = SimulatedMachines(1, patience=0.5)
    assert run(lambda: compute_for(0.25), machines).outcome.results == ["done"], "1 s has passed, but it used 0.25"
    assert isinstance(run(lambda: compute_for(60.0), machines).outcome.error, Blocked)


def test_a_rank_that_waits_is_judged_by_the_time_and_one_that_computes_by_what_it_computed():
    assert watchdog.standstill(passed=60.0, used=0.1) == 60.0
    assert watchdog.standstill(passed=60.0, used=3.0) == 3.0


def test_a_thread_that_fails_is_a_note_with_its_line_and_why_it_cannot_use_torch_distributed():
    def starts(work):
        begin()
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    def reduces():
        dist.all_reduce(torch.ones(3))

    def divides():
        _ = 1 / 0

    before, threading.excepthook = threading.excepthook, lambda failed: None
    try:
        (note,) = simulate(starts, 2, args=(reduces,)).notes
        assert line(reduces, 1) in note and note.endswith(
            "only the thread in which a rank starts can use torch.distributed here"
        )
        (note,) = simulate(starts, 2, args=(divides,)).notes
        assert line(divides, 1) in note and note.endswith("ZeroDivisionError: division by zero")
    finally:
        threading.excepthook = before


def test_a_rank_without_memory_is_one_sentence_with_its_line():
    def of_torch():
        torch.empty(10**15)

    def of_python():
        bytearray(10**17)

    for program in (of_torch, of_python):
        with pytest.raises(RankFailed, match=quote("rank 0 is out of memory … fewer ranks")) as error:
            simulate(program, 2)
        assert line(program, 1) in str(error.value) and error.value.__cause__ is None


def compute(begun):
    x = torch.ones(9)
    while True:
        begun.set()
        x @ x


def catch_all(begun):
    while True:
        try:
            compute(begun)
        except Exception:
            continue


def spin(begun):
    begun.set()
    while True:
        pass


def test_a_run_that_should_stop_does_whatever_its_ranks_do():
    for program in (compute, catch_all, spin):
        begun = threading.Event()
        error = run(lambda: program(begun), SimulatedMachines(2), stop=begun.is_set).outcome.error  # noqa: B023
        assert isinstance(error, Cancelled) and "cancelled" in str(error), program
    assert simulate(begin, 2).results == [(0, 2), (1, 2)], "and the process can simulate again"
