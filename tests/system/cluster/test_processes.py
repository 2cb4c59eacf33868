"""Processes: what happens when one fails, is killed or hangs; nothing is left behind."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from functools import partial
from multiprocessing import forkserver, reduction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from numba import njit

import kernels
from cluster.comm import Cancelled, Deadlock, RankFailed, RankLost
from cluster.real import processes, supervisor, threads
from cluster.real.gpus import allot
from cluster.real.rank import status
from cluster.real.rank_state import RankStatus
from cluster.waits import Wait
from kernels import compiling
from tests.patience import PATIENCE, wait_until
from tests.quotes import quote
from tests.training import wait_until_told
from tracing import WAIT
from workloads.recorder import Diverged

ROOT = Path(__file__).resolve().parents[3]
BACKENDS = ("sockets", "gloo")
IN_VAIN = 4.0  # s that ranks wait for what never comes; they meet well within it, also on a busy machine


@pytest.fixture(autouse=True)
def nothing_left_in_shared_memory():
    before = segments()
    yield
    wait_until(lambda: segments() <= before)  # other programs of this machine have some for a moment


def segments():
    return {path.name for path in Path("/dev/shm").glob("*")} if Path("/dev/shm").is_dir() else set()


def sign_in(comm):
    """Leave the process's number in the event log, where a test can find it whatever happens."""
    comm.event_log.losses.append((0, os.getpid(), comm.event_log.clock(), 0.0))
    comm.barrier()


def numbers(outcome):
    found = [event_log.losses[0][1] for event_log in outcome.event_logs]
    assert len(set(found)) == len(outcome.event_logs)
    return found


def alive(numbers):
    running = []
    for number in numbers:
        with contextlib.suppress(psutil.NoSuchProcess):
            if psutil.Process(number).status() != psutil.STATUS_ZOMBIE:
                running.append(number)
    return running


def die(comm, way):
    sign_in(comm)
    shared = comm.shared(np.zeros(1000))
    comm.event_log.step = 12
    if comm.rank == 1:
        wait_until_told(comm.event_log)
        way()
    shared.add(np.ones(1000))
    if comm.rank == 0:
        comm.recv(1)
    comm.all_reduce(np.ones(200_000))


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


def exit_with_three():
    os._exit(3)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("way", "why"), [(kill_myself, "killed by SIGKILL"), (exit_with_three, "exit code 3")])
def test_a_rank_that_dies_is_named_without_waiting_for_a_timeout_and_no_process_is_left(backend, way, why):
    outcome = processes.run(partial(die, way=way), 3, backend=backend, timeout=6000)  # which nobody waits for
    assert isinstance(outcome.error, RankLost) and (outcome.error.rank, outcome.error.step) == (1, 12)
    assert str(outcome.error).startswith("rank 1 was lost at ") and why in str(outcome.error)
    assert not alive(numbers(outcome))


def serve_though_some_die(comm, victims):
    """Rank 0 counts what the others send it, answers every message, and stops when all have said or are heard to go."""
    sign_in(comm)
    if comm.rank == 0:
        heard, training = [], comm.size - 1
        while training:
            src, x = comm.recv_any()
            heard.append((src, x))
            training -= x is None
            comm.send(np.ones(100_000), src)  # also to the dead
        return heard
    for comm.event_log.step in range(6):
        comm.send(comm.event_log.step, 0)
        comm.recv(0)
        if comm.rank in victims and comm.event_log.step == 2:
            wait_until_told(comm.event_log)
            kill_myself()
    comm.send(None, 0)
    comm.recv(0)
    return comm.rank


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("victims", [(2,), (1, 3)], ids=str)
def test_a_server_hears_of_each_lost_worker_once_and_the_others_go_on(backend, victims):
    outcome = processes.run(partial(serve_though_some_die, victims=victims), 4, backend=backend)
    assert outcome.error is None
    for rank in range(1, 4):
        steps = [0, 1, 2] if rank in victims else [0, 1, 2, 3, 4, 5]
        assert [x for src, x in outcome.results[0] if src == rank] == [*steps, None]
        assert outcome.results[rank] == (None if rank in victims else rank)
    assert len(outcome.notes) == len(victims)
    for note, rank in zip(outcome.notes, victims, strict=True):
        assert note.startswith(f"rank {rank} was lost at ") and "killed by SIGKILL" in note
        assert outcome.event_logs[rank].spans[-1][4] == "lost"
    assert not alive(numbers(outcome))


def poll_for_the_dead(comm):
    sign_in(comm)
    if comm.rank:
        wait_until_told(comm.event_log)
        kill_myself()
    while not comm.poll(tag=5):
        time.sleep(0.01)
    return comm.poll(tag=5), comm.recv_any(tag=5), comm.poll(tag=5)


def test_poll_tells_of_a_lost_rank_until_its_last_none_is_taken():
    outcome = processes.run(poll_for_the_dead, 2, backend="sockets")
    assert outcome.error is None and outcome.results[0] == ([1], (1, None), [])


def die_all(comm):
    sign_in(comm)
    wait_until_told(comm.event_log)
    kill_myself()


def test_a_run_of_which_nobody_is_left_is_an_error():
    outcome = processes.run(die_all, 2, backend="sockets")
    assert isinstance(outcome.error, RankLost) and not outcome.notes


def wait_for_each_other_after_a_loss(comm):
    sign_in(comm)
    if comm.rank == 2:
        comm.send(1, 0)
        wait_until_told(comm.event_log)
        kill_myself()
    if comm.rank == 0:
        comm.recv(2)
        assert comm.recv_any(tag=1) == (2, None)
        comm.recv(1)
    comm.recv(0)


def test_survivors_that_wait_for_each_other_are_found():
    outcome = processes.run(wait_for_each_other_after_a_loss, 3, backend="sockets")
    assert isinstance(outcome.error, RankLost) and outcome.error.rank == 2
    assert not alive(numbers(outcome))


def catch_a_loss(comm):
    sign_in(comm)
    if comm.rank == 1:
        wait_until_told(comm.event_log)
        kill_myself()
    with pytest.raises(RankLost):
        comm.recv(1)
    return status(comm, finished=False).stuck


def test_a_rank_that_catches_a_loss_and_goes_on_is_not_taken_for_one_that_waits():
    outcome = processes.run(catch_a_loss, 2, backend="sockets")
    assert outcome.error is None and outcome.results[0] is False


def wait_for_each_other_after_a_lost_sum(comm):
    sign_in(comm)
    pair = comm.split(None if comm.rank == 1 else 0)
    if comm.rank == 2:
        wait_until_told(comm.event_log)
        kill_myself()
    if comm.rank == 0:
        with pytest.raises(RankLost):
            pair.all_reduce(np.ones(3), async_op=True).wait()
    comm.recv(1 - comm.rank)


def test_after_a_sum_in_the_background_that_failed_a_deadlock_is_found():
    outcome = processes.run(wait_for_each_other_after_a_lost_sum, 3, backend="sockets", timeout=6000)
    assert isinstance(outcome.error, RankLost) and outcome.error.rank == 2


def ask_again_after_a_timeout(comm):
    sign_in(comm)
    if comm.rank == 0:
        while not comm.poll(tag=1):
            time.sleep(0.01)
        comm.send(7, 1)
        return None
    with pytest.raises(Deadlock):
        comm.recv(0)
    comm.send(None, 0, tag=1)
    return comm.recv(0)


def test_a_receive_that_has_waited_too_long_takes_no_message_from_the_next():
    outcome = processes.run(ask_again_after_a_timeout, 2, backend="sockets", timeout=IN_VAIN)
    assert outcome.error is None and outcome.results[1] == 7


def wait_or_compute_until_one_is_killed(comm):
    sign_in(comm)
    if comm.rank == 0:
        comm.recv(1)
    if comm.rank == 1:
        comm.recv(2)  # which has begun to compute
        wait_until_told(comm.event_log)
        kill_myself()
    comm.send(1, 1)
    x = np.zeros(100_000)
    while True:
        kernels.sgd(x, x, 0.1)


def test_when_a_run_ends_those_that_waited_are_drawn_waiting_and_those_that_computed_are_not():
    outcome = processes.run(wait_or_compute_until_one_is_killed, 3, backend="sockets")
    assert isinstance(outcome.error, RankLost) and outcome.error.rank == 1
    waiting, killed, computing = (event_log.spans[-1] for event_log in outcome.event_logs)
    assert waiting[0] == WAIT and waiting[4] == "receive"
    assert killed[4] == "lost"
    assert computing[0] != WAIT


def fail_while_others_wait(comm):
    sign_in(comm)
    comm.event_log.step = 4
    if comm.rank == 2:
        comm.recv(1)
        raise KeyError("layer 3")
    if comm.rank == 1:
        comm.send(1, 2)
        comm.recv(2)
    comm.all_reduce(np.ones(200_000))


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_first_cause_is_named_and_not_the_complaints_of_the_survivors(backend):
    outcome = processes.run(fail_while_others_wait, 3, backend=backend)
    assert isinstance(outcome.error, RankFailed) and (outcome.error.rank, outcome.error.step) == (2, 4)
    assert "KeyError: 'layer 3'" in str(outcome.error) and isinstance(outcome.error.__cause__, KeyError)
    assert "in fail_while_others_wait" in outcome.error.__notes__[0]  # the traceback of the rank
    assert not alive(numbers(outcome))


def be_deaf(comm):
    sign_in(comm)
    if comm.rank == 0:
        sum(range(10**12))  # never lets another thread of this process have its turn
    time.sleep(0.5)
    raise KeyError("layer 3")


def test_a_rank_that_hears_nothing_is_ended_too():
    before = psutil.Process().children(recursive=True)
    outcome = processes.run(be_deaf, 2, backend="sockets")
    assert outcome.error.rank == 1 and len(outcome.event_logs[1].losses) == 1
    assert set(psutil.Process().children(recursive=True)) <= set(before)


def diverge(comm):
    raise Diverged(float("nan"), comm.rank, 5)


def test_all_ranks_may_fail_at_once():
    outcome = processes.run(diverge, 3, backend="sockets")
    assert isinstance(outcome.error, RankFailed) and isinstance(outcome.error.__cause__, Diverged)
    assert outcome.error.__cause__.rank == outcome.error.rank


class Unspeakable(Exception):
    def __reduce__(self):
        raise TypeError("not this one")


def raise_what_cannot_be_sent(comm):
    raise Unspeakable("words")


def return_what_cannot_be_sent(comm):
    return threading.Lock() if comm.rank else 1


def test_an_exception_or_a_result_that_cannot_be_sent_is_still_named():
    error = processes.run(raise_what_cannot_be_sent, 1, backend="sockets").error
    assert str(error) == "rank 0 failed: Unspeakable: words" and error.__cause__ is None
    outcome = processes.run(return_what_cannot_be_sent, 2, backend="sockets")
    assert isinstance(outcome.error, RankFailed) and outcome.error.rank == 1 and "pickle" in str(outcome.error)


def refuse():
    raise LookupError("not here")


class Unreadable:
    def __reduce__(self):
        return refuse, ()


def return_what_cannot_be_read(comm):
    comm.barrier()
    return Unreadable() if comm.rank else 1


@pytest.mark.parametrize("cluster", [partial(processes.run, backend="sockets"), threads.run])
def test_a_result_that_cannot_be_read_is_the_failure_of_the_rank_that_gave_it(cluster):
    outcome = cluster(return_what_cannot_be_read, 2)
    assert isinstance(outcome.error, RankFailed) and outcome.error.rank == 1
    assert re.search(quote("rank 1 … result … LookupError: not here"), str(outcome.error))
    assert isinstance(outcome.error.__cause__, LookupError) and outcome.results == [1, None]


def sleep_while_others_wait(comm):
    sign_in(comm)
    if comm.rank == 0:
        time.sleep(600)
    elif comm.rank == 1:
        comm.recv_any(tag=3)
    else:
        comm.recv(1)


def reduce_alone(comm):
    sign_in(comm)
    if comm.rank == 0:
        comm.all_reduce(np.ones(200_000))
    else:
        time.sleep(600)


def test_waiting_longer_than_the_timeout_is_a_deadlock_that_says_who_waits():
    outcome = processes.run(sleep_while_others_wait, 3, backend="sockets", timeout=IN_VAIN)
    assert isinstance(outcome.error, Deadlock)
    assert {(wait.rank, wait.source, wait.tag) for wait in outcome.error.waits} >= {(1, "any rank", 3), (2, 1, 0)}
    assert "timeout of 4 s" in str(outcome.error)
    assert not alive(numbers(outcome))


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_all_reduce_that_others_do_not_join_is_a_deadlock(backend):
    outcome = processes.run(reduce_alone, 2, backend=backend, timeout=IN_VAIN)
    assert isinstance(outcome.error, Deadlock), outcome.error
    assert outcome.error.waits[0][:1] == (0,) and outcome.error.waits[0].collective == "all-reduce"
    assert "timeout of 4 s" in str(outcome.error)
    assert not alive(numbers(outcome))


def go_on_for_ever(comm):
    sign_in(comm)
    step = 0
    while True:
        comm.event_log.step = step
        comm.event_log.reports.append((step + 1, comm.event_log.clock(), 0, 3, np.full(3, step, np.float32)))
        comm.all_reduce(np.ones(3))
        time.sleep(0.01)
        step += 1


def test_a_rank_that_has_yet_to_notice_that_another_is_lost_is_in_no_deadlock():
    now, waits = time.monotonic(), RankStatus(True, 0.0, 3, 3, Wait(0, "any rank", 0.0))
    gone = SimpleNamespace(join=lambda seconds: None, exitcode=-9)
    parent = supervisor.Supervisor(2, None, None)
    parent.processes = [None, gone]
    parent.reports = dict.fromkeys((0, 1), supervisor.StatusReport(now - 5, now, waits))
    parent._lost(1)
    for reported, deadlocked in ((now, False), (now + 0.1, False), (now + 3600, True)):
        parent.reports[0] = supervisor.StatusReport(now - 5, reported, waits)
        parent.told = -supervisor.PERIOD
        parent._look()
        assert bool(parent.failures) is deadlocked


def dies_at_the_end(comm):
    comm.barrier()
    if comm.rank:
        wait_until_told(comm.event_log)
        os.kill(os.getpid(), signal.SIGKILL)
    return comm.rank


def test_a_rank_that_is_lost_before_it_gave_its_result_is_told_of():
    outcome = processes.run(dies_at_the_end, 2, backend="sockets")
    assert outcome.error is None and outcome.lost == (1,) and "rank 1 was lost" in outcome.notes[0]


def test_what_the_ranks_do_before_the_clock_starts_is_reported_and_not_after():
    said = []
    parent = supervisor.Supervisor(2, None, None, on_phase=said.append)
    for offers, seconds in (({}, 0.0), ({1: "address"}, 0.0), ({0: "address", 1: "address"}, 0.0), ({}, 0.5)):
        parent.offers, parent.seconds, parent.told = offers, seconds, -supervisor.PERIOD
        parent._look()
    assert said == ["warming up, 0 of 2 ready", "warming up, 1 of 2 ready", "connecting"]


def test_the_record_reaches_the_parent_while_the_ranks_go_on_and_stop_ends_them():
    stop, seen = threading.Event(), []

    def on_progress(event_logs, seconds):
        if counts := [len(event_log.reports) for event_log in event_logs if event_log.reports]:
            seen.append((seconds, counts, event_logs[0].step))
        if len(seen) > 3 and len(counts) == 2 and min(counts) > max(seen[0][1]):
            stop.set()

    outcome = processes.run(go_on_for_ever, 2, backend="sockets", on_progress=on_progress, stop=stop)
    assert isinstance(outcome.error, Cancelled) and str(outcome.error).startswith("cancelled at ")
    assert not alive(numbers(outcome))
    assert [seconds for seconds, *_ in seen] == sorted(seconds for seconds, *_ in seen)
    assert [step for *_, step in seen] == sorted(step for *_, step in seen)
    assert seen[-1][1][0] <= len(outcome.event_logs[0].reports)
    for event_log in outcome.event_logs:
        assert [row[0] for row in event_log.reports] == list(range(1, len(event_log.reports) + 1))  # each once
        assert all((row[4] == row[0] - 1).all() for row in event_log.reports)
        arrived = [np.isfinite(row[4]) for row in event_log.messages]
        assert arrived[0] and arrived == sorted(arrived, reverse=True)  # only what was under way at the end is unknown


@pytest.fixture
def ctrl_c():
    """Ctrl-C as in a terminal, whoever runs these tests: what a shell starts in the background is told to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield partial(signal.raise_signal, signal.SIGINT)
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_the_run_and_keeps_the_record(ctrl_c):
    def on_progress(event_logs, seconds):
        if event_logs[1].reports:
            ctrl_c()

    outcome = processes.run(go_on_for_ever, 2, backend="sockets", on_progress=on_progress)
    assert isinstance(outcome.error, Cancelled)
    assert not alive(numbers(outcome)) and outcome.event_logs[1].reports
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_process_that_is_told_to_ignore_ctrl_c_goes_on(ctrl_c):
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    seen = []

    def on_progress(event_logs, seconds):
        if event_logs[1].reports:
            seen.append(len(event_logs[1].reports))
            ctrl_c()

    outcome = processes.run(go_on_for_ever, 2, backend="sockets", on_progress=on_progress, stop=lambda: len(seen) > 3)
    assert seen[-1] > seen[0] and not alive(numbers(outcome))


def test_ctrl_c_while_a_rank_is_being_started_harms_neither_the_fork_server_nor_the_run_after(ctrl_c, monkeypatch):
    processes.prepare(repr, "sockets")
    server = forkserver._forkserver._forkserver_pid
    send = reduction.sendfds

    def interrupted(*args):
        ctrl_c()
        send(*args)

    monkeypatch.setattr(reduction, "sendfds", interrupted)
    outcome = processes.run(go_on_for_ever, 2, backend="sockets")
    assert isinstance(outcome.error, Cancelled)
    monkeypatch.undo()
    assert processes.run(repr, 2, backend="sockets").error is None
    assert forkserver._forkserver._forkserver_pid == server and alive([server])


def test_a_second_ctrl_c_interrupts_at_once_and_leaves_no_process(ctrl_c, monkeypatch):
    hear_out, ranks = supervisor.Supervisor._hear_out, []

    def on_progress(event_logs, seconds):
        if event_logs[1].reports:
            ranks[:] = [event_log.losses[0][1] for event_log in event_logs]
            ctrl_c()

    def interrupted(self, silence):
        if silence == supervisor.LAST_WORDS:
            ctrl_c()
        hear_out(self, silence)

    monkeypatch.setattr(supervisor.Supervisor, "_hear_out", interrupted)
    with pytest.raises(KeyboardInterrupt):
        processes.run(go_on_for_ever, 2, backend="sockets", on_progress=on_progress)
    assert len(ranks) == 2 and not alive(ranks)


def test_a_rank_that_cannot_be_started_is_named_and_the_others_are_ended(monkeypatch):
    start, started = processes._start, []

    def fail(rank, **how):
        if rank:
            raise EOFError("unexpected EOF")
        started.append(start(rank, **how))
        return started[0]

    monkeypatch.setattr(processes, "_start", fail)
    outcome = processes.run(go_on_for_ever, 2, backend="sockets")
    assert isinstance(outcome.error, RankLost) and outcome.error.rank == 1
    assert "fork server" in str(outcome.error)
    assert not alive([started[0][0].pid])


def leave_a_process(comm):
    """Fork a process that holds what this one has open, the pipe to the parent as well, and leave it behind."""
    comm.event_log.losses.append((0, os.fork() or wait_for_a_kill(), comm.event_log.clock(), 0.0))
    comm.barrier()


def wait_for_a_kill():
    time.sleep(600)
    os._exit(0)


def test_a_run_ends_although_a_rank_leaves_a_process_behind_that_holds_its_pipe():
    outcome = processes.run(leave_a_process, 2, backend="sockets")
    left = numbers(outcome)
    assert outcome.error is None and alive(left) == left
    for number in left:
        os.kill(number, signal.SIGKILL)


SIGNALLED = """
    import os, pathlib, signal, time
    from cluster.real import processes

    if __name__ == "__main__":
        signal.signal({number}, lambda *_: None)
        processes.PRELOADED.append("slow")
        processes.prepare(repr, "sockets")
        while not pathlib.Path("loading").exists():
            time.sleep(0.01)
        os.killpg(0, {number})
        print(processes.run(repr, 2, backend="sockets").error)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=str)
def test_a_signal_to_the_whole_group_does_not_end_the_fork_server_while_it_loads(tmp_path, number):
    (tmp_path / "script.py").write_text(textwrap.dedent(SIGNALLED).format(number=int(number)))
    (tmp_path / "slow.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(1)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    command = [sys.executable, "script.py"]
    options = {"cwd": tmp_path, "env": environment, "start_new_session": True}
    told = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert (told.stdout, told.stderr) == ("None\n", "")


def compile_and_wait(heard, place):
    njit(lambda x: x + 1)(1)
    wait_until(heard.exists)


def test_before_its_clock_starts_a_run_says_that_its_ranks_compile(tmp_path):
    def on_phase(phase):
        if compiling.WORDS in phase:
            (tmp_path / "heard").touch()

    warm_up = partial(compile_and_wait, tmp_path / "heard")
    outcome = processes.run(go_once, 2, backend="sockets", on_phase=on_phase, warm_up=warm_up)
    assert outcome.error is None and (tmp_path / "heard").exists() and not outcome.notes  # it was before the clock


def go_once(comm):
    comm.barrier()


PREPARED = """
    import multiprocessing.forkserver as started
    from cluster.real import processes

    if __name__ == "__main__":
        processes.PRELOADED.append("endless")
        processes.prepare(repr, "sockets")
        print(started._forkserver._forkserver_pid, flush=True)
        input()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere it ends once it has loaded all modules")
def test_the_fork_server_ends_with_its_parent_also_while_it_loads(tmp_path):
    (tmp_path / "script.py").write_text(textwrap.dedent(PREPARED))
    (tmp_path / "endless.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(10**6)\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path, env=environment, **pipes) as parent:
        server = int(parent.stdout.readline())
        wait_until((tmp_path / "loading").exists)
        assert alive([server])
        parent.kill()
    wait_until(lambda: not alive([server]))


def test_an_error_of_the_listener_ends_the_ranks_and_is_raised():
    seen = []

    def on_progress(event_logs, seconds):
        seen[:] = [event_log.losses[0][1] for event_log in event_logs if event_log.losses]
        if len(seen) == 2:
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        processes.run(go_on_for_ever, 2, backend="sockets", on_progress=on_progress)
    assert len(seen) == 2 and not alive(seen)


SCRIPT = """
    import os, sys, time
    from cluster.real import processes

    def program(comm):
        os.write(1, f"{{os.getpid()}}\\n".encode())
        comm.barrier()
        {work}

    if __name__ == "__main__":
        print(processes.run(program, 2, backend="sockets"))
"""


WORK = ["time.sleep(600)", "comm.recv(1 - comm.rank) if comm.rank else sum(range(10**12))"]


@pytest.mark.parametrize(("work", "frozen"), [(WORK[0], False), (WORK[1], False), (WORK[0], True)])
def test_ranks_end_with_their_parent_whatever_they_are_doing(tmp_path, work, frozen):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT).format(work=work))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, env=environment, text=True) as parent:
        ranks = [int(parent.stdout.readline()) for _ in range(2)]
        tree = [child.pid for child in psutil.Process(parent.pid).children(recursive=True)]
        assert set(ranks) <= set(tree) and alive(ranks) == ranks
        if frozen:
            os.kill(ranks[1], signal.SIGSTOP)
        parent.kill()
    _, left = psutil.wait_procs([psutil.Process(p) for p in alive(tree)], timeout=PATIENCE)
    assert not alive([process.pid for process in left])


def told_by(*command, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    told = subprocess.run(
        [sys.executable, *command], capture_output=True, env=environment, text=True, check=True, **options
    )
    return told.stdout


PLAIN = "from cluster.real import processes\nprint('outcome', processes.run({program}, 2, backend='sockets'){part})"


def test_a_program_of_a_module_runs_from_any_script_without_a_guard_and_from_a_pipe(tmp_path):
    source = PLAIN.format(program="repr", part=".results")
    script = tmp_path / "script.py"
    script.write_text(source)
    for told in (told_by(script), told_by("-", input=source)):
        assert told.count("outcome") == 1 and told.count("RealComm object") == 2


def test_a_script_that_starts_runs_of_its_own_functions_when_it_is_imported_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("def own(comm): pass\n" + PLAIN.format(program="own", part=".error"))
    assert 'a script must start runs under `if __name__ == "__main__":`' in told_by(script)


def test_a_rank_that_is_killed_before_it_has_connected_is_not_told_how_a_script_starts_runs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import os\nif __name__ != '__main__':\n    os.kill(os.getpid(), 9)\ndef own(comm): pass\n"
        "if __name__ == '__main__':\n" + textwrap.indent(PLAIN.format(program="own", part=".error"), "    ")
    )
    told = told_by(script)
    assert "killed by SIGKILL" in told and "__main__" not in told


def test_the_parent_needs_neither_torch_nor_numba(tmp_path):
    code = "import sys, cluster.real.processes; print([m for m in ('torch', 'numba') if m in sys.modules])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True, check=True)
    assert told.stdout.strip() == "[]"


def where_am_i(comm):
    return comm.device, float(comm.all_reduce(np.ones(2))[0])


def test_without_a_gpu_a_run_goes_on_on_the_cpu_and_says_so():
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    outcome = processes.run(where_am_i, 2, backend="nccl")
    assert outcome.error is None and outcome.results == [("cpu", 2.0)] * 2
    assert outcome.gpus == 0 and any("no CUDA GPU" in note for note in outcome.notes)


def test_ranks_share_gpus_only_where_there_are_fewer_and_say_so():
    assert allot("aa", ["cuda:0", "cuda:1"]) == allot("ab", ["cuda:0", "cuda:0"]) == (2, ())
    gpus, [note] = allot("aaa", ["cuda:0", "cpu", "cuda:1"])
    assert gpus == 0 and "2 of 3 ranks" in note and "CPU" in note
    for computers, there, words in ("aaa", 1, "1 GPU:"), ("aab", 2, "2 GPUs:"):
        gpus, [note] = allot(computers, ["cuda:0", "cuda:0", "cuda:0"])
        assert gpus == there and "3 ranks" in note and words in note


def use_torch_tensors(comm):
    import torch

    x = torch.full((7,), comm.rank + 1.0)
    total = comm.all_reduce(x.clone())
    piece = comm.reduce_scatter(x)
    comm.send((x, 3), 1 - comm.rank)
    x += 10
    received, three = comm.recv(1 - comm.rank)
    return total.tolist(), piece.tolist(), x.tolist(), received.tolist(), three


def test_torch_tensors_are_reduced_and_sent_as_arrays_are():
    results = processes.run(use_torch_tensors, 2, backend="gloo").results
    for rank, result in enumerate(results):
        assert result == ([3.0] * 7, [3.0] * (4 - rank), [11.0 + rank] * 7, [2.0 - rank] * 7, 3)


def test_what_cannot_run_is_refused_in_one_sentence():
    with pytest.raises(ValueError, match=quote("0 ranks … 1 or more")):
        processes.run(where_am_i, 0)
    with pytest.raises(ValueError, match=quote("'mpi' … gloo, sockets, nccl")):
        processes.run(where_am_i, 1, backend="mpi")
    with pytest.raises(ValueError, match="define it at the top level of a module"):
        processes.run(lambda comm: 1, 1)


LOADED = []


def load(place):
    LOADED.append(time.monotonic())


def was_loaded(comm):
    return len(LOADED), comm.event_log.clock() < time.monotonic() - LOADED[0]


def test_warm_up_is_done_on_every_rank_before_the_clock_starts():
    outcome = processes.run(was_loaded, 2, backend="sockets", warm_up=load)
    assert outcome.results == [(1, True)] * 2 and not LOADED
