"""The pool: whatever a job does, it ends as a state with a sentence, and leaves nothing behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from experiments.execution.run import run
from experiments.jobs import memory, worker
from experiments.jobs.job import UNRECORDED, Job, JobState
from experiments.jobs.pool import UNSTORED, Pool
from experiments.jobs.spec import SOON, JobSpec, following
from experiments.learning import record as learning_record
from experiments.runs import cached, sealed, store
from experiments.specification.experiment import Experiment
from kernels import compiling
from tests import fabricated
from tests.patience import PATIENCE, wait_until

NAUGHTY = (sys.executable, "-u", str(Path(__file__).with_name("naughty.py")))
TRICKS = ("raises", "segfaults", "eats_memory", "forever", "is_killed", "has_grandchildren", "floods",
          "writes_nonsense", "is_deaf", "ends_without_a_word", "waits", "forges_a_result",
          "shares_out_memory", "continues", "continues_to_the_end")  # fmt: skip


def small(**values):
    return Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 6, "evaluations": 2, **values})


def trick(name, batch=32):
    return small(seed=TRICKS.index(name), batch=batch)


def until(pool, job, wanted):
    """The first state of `job` that `wanted` accepts."""
    return wait_until(lambda: wanted(state := pool.state(job)) and state)


def end(pool, job):
    return until(pool, job, lambda state: not state.active)


def children(pool):
    """The processes that came after the pool did."""
    return [child for child in psutil.Process().children(recursive=True) if child not in pool.before]


@pytest.fixture
def pool(tmp_path, request):
    """A pool of two slots; afterwards nothing of it may be left."""
    before = psutil.Process().children(recursive=True)
    handles, threads = psutil.Process().num_fds(), set(threading.enumerate())
    made = Pool(tmp_path / "runs", 2, **getattr(request, "param", {}))
    made.before = before
    yield made
    made.close()
    assert not children(made), "children are left"
    assert psutil.Process().num_fds() <= handles, "handles are left"
    assert not any(thread.name == "experiments.jobs.pool" for thread in set(threading.enumerate()) - threads)


naughty = pytest.mark.parametrize("pool", [{"command": NAUGHTY}], indirect=True)


def test_a_job_runs_in_a_process_of_its_own_and_its_run_is_stored(pool):
    job = pool.submit("ada", small())
    state = end(pool, job)
    assert (state.status, state.fraction, state.message) == ("finished", 1.0, "")
    assert store.load(state.folder).experiment == small()
    assert job == small().key()


def test_what_was_done_once_is_found_and_not_done_again(pool, tmp_path):
    folder = store.save(run(small()), pool.root)
    assert pool.state(pool.submit("bob", small())).folder == folder
    other = Pool(tmp_path / "runs", 1, command=("false",))
    state = other.state(other.submit("cy", small()))
    other.close()
    assert (state.status, state.folder) == ("finished", folder)


def test_a_waiting_job_knows_that_the_one_before_it_waits_for_the_compiler(tmp_path):
    pool = Pool(tmp_path, 1, command=NAUGHTY)
    before, waiting = (pool.submit(owner, trick(name)) for owner, name in (("ada", "waits"), ("bob", "forever")))
    running = until(pool, before, lambda state: state.status == "running")
    assert not pool.state(waiting).phase
    pool._jobs[before].state = replace(running, phase=compiling.WORDS)
    assert (pool.state(waiting).status, pool.state(waiting).phase) == ("queued", compiling.WORDS)
    pool.close()


def test_under_a_bound_what_a_reader_had_computed_may_go_until_somebody_keeps_it(pool, monkeypatch):
    monkeypatch.setenv(cached.VARIABLE, "1e12")
    folder = end(pool, pool.submit("ada", small())).folder
    assert (folder / sealed.CACHED).exists() and not sealed.altered_files(folder)
    monkeypatch.setenv(cached.VARIABLE, "1")
    cached.keep(folder)
    state = end(pool, pool.submit("bob", small(seed=1)))
    assert state.status == "failed" and cached.VARIABLE in state.message and folder.exists()


def test_progress_and_curves_arrive_while_it_runs(pool, monkeypatch):
    monkeypatch.setattr("experiments.jobs.pool.POLITE", 240.0)
    job = pool.submit("ada", small(workers=8, steps=1_000_000))
    state = until(pool, job, lambda state: len(state.curve.get("loss", ())) > 3)
    assert state.status == "running" and 0 < state.fraction < 1 and state.seconds > 0
    assert {len(column) for column in state.curve.values()} == {len(state.curve["loss"])}
    assert state.curve["loss"].dtype == "float32"
    pool.cancel(job)
    state = end(pool, job)
    assert state.status == "cancelled" and "cancelled" in state.message
    kept = store.load(state.folder)  # asked politely, it stored what it had
    assert kept.status == "cancelled" and len(kept.losses["loss"]) > 3


def test_a_job_that_ends_when_asked_and_before_it_records_anything_lost_nothing():
    for code, words in ((-signal.SIGTERM, UNRECORDED), (-signal.SIGKILL, UNSTORED)):
        one = Job("job", small(), JobState("running"), ending=UNSTORED)
        one.end(code, {})
        assert (one.state.status, one.state.message) == ("cancelled", f"{words}.")


def test_a_run_stopped_before_its_first_step_is_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    stop, said = threading.Event(), []
    stop.set()
    monkeypatch.setattr(worker, "threading", SimpleNamespace(Event=lambda: stop))

    class Report:
        def __call__(self, kind, **values):
            said.append((kind, values))

        def progress(self, progress): ...

    worker.perform(
        {"experiment": json.loads(small(cluster="threads").json()), "root": str(tmp_path / "runs")}, Report()
    )
    assert said == [("result", {"status": "cancelled", "error": "stopped before it began", "folder": ""})]
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("values", [{"workload": "text", "file": "/etc/passwd"}, {"workload": "mnist", "folder": "/"}])
def test_an_experiment_that_names_files_of_the_machine_is_not_done_for_a_reader(pool, values):
    with pytest.raises(ValueError, match=r"readers .*files"):
        pool.submit("ada", Experiment.of(values))


def test_a_mistake_of_the_reader_is_told_in_the_jobs_own_sentence(pool):
    state = end(pool, pool.submit("ada", small(batch=60_000)))
    assert state.status == "failed" and "larger than the shard" in state.message and state.folder is None


def test_a_diverged_run_is_finished_and_says_so(tmp_path):
    e = Experiment.of({"algorithm": "sgd", "workload": "quadratic", "learning_rate": 999, "workers": 1})
    job = Job(e.key(), e, JobState("running"))

    class Report:
        def __call__(self, kind, **values):
            job.hear({"kind": kind, **values})

        def progress(self, progress): ...

    worker.perform({"experiment": json.loads(e.json()), "root": str(tmp_path)}, Report(), threading.Event())
    job.end(0, {})
    assert job.state.status == "finished" and "no longer finite" in job.state.message
    assert store.load(job.state.folder).status == "diverged"


@naughty
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("raises", "something is wrong here"),
        ("segfaults", "segmentation fault"),
        ("eats_memory", "memory"),
        ("is_killed", "killed from outside"),
        ("writes_nonsense", "wrote nonsense and went on"),
        ("ends_without_a_word", "code 3 and without a result. the last words"),
        ("floods", "a line that is too long to read"),
        ("forges_a_result", "the true end"),
    ],
)
def test_a_job_that_misbehaves_is_failed_with_a_sentence_and_the_pool_goes_on(pool, name, sentence):
    pool.limits["memory"] = 1_000_000_000
    state = end(pool, pool.submit("ada", trick(name)))
    assert state.status == "failed" and sentence in state.message and "\n" not in state.message
    again = pool.submit("bob", trick("waits"))
    assert until(pool, again, lambda state: state.fraction).status == "running"


@pytest.mark.parametrize("pool", [{"wall": 0.5}], indirect=True)
def test_a_run_that_reaches_a_limit_of_time_is_stopped_and_says_so(pool):
    state = end(pool, pool.submit("ada", small(workers=8, steps=10_000_000)))
    assert state.status == "cancelled" and "the limit of 0.5 s" in state.message


@pytest.mark.parametrize(("clock", "words"), [("monotonic", "600 s"), ("process_time", "300 s of CPU time")])
def test_a_run_that_is_stopped_at_a_limit_keeps_what_it_recorded(tmp_path, monkeypatch, clock, words):
    clocks, said = {"monotonic": 0.0, "process_time": 0.0}, []
    monkeypatch.setattr(worker, "LOOK", 0.01)
    monkeypatch.setattr(worker.signal, "signal", lambda *_: None)
    monkeypatch.setattr(worker, "time", SimpleNamespace(**{name: partial(clocks.get, name) for name in clocks}))

    class Report:
        def __call__(self, kind, **values):
            said.append(values)

        def progress(self, progress):
            clocks[clock] = 1e9 if len(progress.curve["loss"]) else 0.0

    spec = {"experiment": json.loads(small(steps=10_000_000).json()), "root": str(tmp_path), "wall": 600.0, "cpu": 300}
    worker.perform(spec, Report())
    kept = store.load(said[0]["folder"])
    assert kept.status == said[0]["status"] == "cancelled" and len(kept.losses["loss"]) > 0
    assert f"the limit of {words} ended it after {kept.summary['steps']:,} step" in kept.error == said[0]["error"]


@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "wall": 0.7}], indirect=True)
def test_an_endless_loop_ends_at_the_wall_limit(pool, monkeypatch):
    monkeypatch.setattr("experiments.jobs.pool.POLITE", 0.1)
    state = end(pool, pool.submit("ada", trick("forever")))
    assert state.status == "failed" and "longer than 0.7 s" in state.message


@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "cpu": 1}], indirect=True)
def test_an_endless_loop_ends_at_the_limit_of_processor_time(pool, monkeypatch):
    monkeypatch.setattr("experiments.jobs.pool.POLITE", 0.1)
    state = end(pool, pool.submit("ada", trick("forever")))
    assert state.status == "failed" and "1 s of CPU time" in state.message


@pytest.mark.skipif(not memory.WATCHED, reason="only Linux says how much memory processes share")
@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "memory": 400_000_000}], indirect=True)
def test_a_job_whose_processes_need_more_memory_together_than_one_may_is_ended(pool):
    state = end(pool, pool.submit("ada", trick("shares_out_memory")))
    assert state.status == "failed"
    assert "0.4 GB of memory" in state.message
    assert not children(pool)


@pytest.mark.skipif(not memory.WATCHED, reason="only Linux says how much memory processes share")
def test_memory_that_the_ranks_of_a_job_share_counts_once():
    hold = (
        "import mmap, os, time; shared = mmap.mmap(-1, 100_000_000); shared.write(b'x' * len(shared))\n"
        "for _ in range(3):\n    if not os.fork(): break\n"
        "hash(shared[:]); print('.', end='', flush=True); time.sleep(600)\n"
    )
    job = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, start_new_session=True)
    try:
        assert job.stdout.read(4) == b"...."  # all four have read all of it
        family = memory.groups([job.pid])[job.pid]
        assert len(family) == 4
        assert memory.memory_used(family, 10**12) > 400_000_000  # far below the limit it is not looked at closely
        assert 100_000_000 < memory.memory_used(family, 0) < 200_000_000
    finally:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        job.stdout.close()


@naughty
def test_cancelling_ends_the_grandchildren_too(pool):
    job = pool.submit("ada", trick("has_grandchildren"))
    pids = until(pool, job, lambda state: state.curve).curve["pids"].astype(int).tolist()
    assert len(pids) == 3 and all(psutil.pid_exists(pid) for pid in pids)
    pool.cancel(job)
    assert end(pool, job).status == "cancelled"
    _, alive = psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=PATIENCE)
    assert not alive


@naughty
def test_a_job_that_does_not_listen_is_killed(pool, monkeypatch):
    monkeypatch.setattr("experiments.jobs.pool.POLITE", 0.2)
    job = pool.submit("ada", trick("is_deaf"))
    until(pool, job, lambda state: state.fraction)
    pool.cancel(job)
    state = end(pool, job)
    assert state.status == "cancelled" and "not be stored" in state.message


@naughty
def test_waiting_jobs_know_their_place_and_move_up(pool):
    owners = ["ada", "bob", "cy", "dee", "eve"]
    jobs = [pool.submit(owner, trick("waits", batch)) for batch, owner in enumerate(owners, 1)]
    for job in jobs[:2]:
        until(pool, job, lambda state: state.status == "running")
    assert [pool.state(job).place for job in jobs] == [0, 0, 1, 2, 3]
    pool.cancel(jobs[2])
    assert pool.state(jobs[2]).status == "cancelled"
    assert [pool.state(job).place for job in jobs[3:]] == [1, 2]
    pool.cancel(jobs[0])
    until(pool, jobs[3], lambda state: state.status == "running")
    assert pool.state(jobs[4]).place == 1


@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "queue": 3}], indirect=True)
def test_tabs_of_one_reader_neither_hold_up_nor_turn_away_another(pool):
    with pool._lock:  # so that none of them starts before all have been submitted
        tabs = [pool.submit(f"ada:{n}", trick("waits", n)) for n in range(1, 6)]
    for job in tabs[:2]:
        until(pool, job, lambda state: state.status == "running")
    with pytest.raises(ValueError, match=r"3 runs .*waiting.* 3 "):
        pool.submit("ada:6", trick("waits", 6))
    bob = pool.submit("bob:1", trick("waits", 7))
    assert [pool.state(job).place for job in (bob, *tabs[2:4])] == [1, 2, 3]
    lost = pool.state(tabs[4])
    assert lost.status == "cancelled" and "queue was full" in lost.message
    pool.cancel(tabs[0])
    until(pool, bob, lambda state: state.status == "running")


@naughty
def test_a_pool_is_crowded_for_a_reader_while_another_waits_or_runs(pool):
    assert not pool.has_other_readers("ada:1")
    jobs = [pool.submit("ada:1", trick("waits", 1)), pool.submit("ada:2/study", trick("waits", 2))]
    for job in jobs:
        until(pool, job, lambda state: state.status == "running")
    assert not pool.has_other_readers("ada:3") and pool.has_other_readers("bob:1")
    jobs.append(pool.submit("bob:1", trick("waits", 3)))
    assert pool.state(jobs[-1]).place == 1 and pool.has_other_readers("ada:3")  # it has to wait
    for job in jobs:
        pool.cancel(job)


@naughty
def test_a_new_job_of_an_owner_replaces_the_old_one_running_or_waiting(pool):
    old = pool.submit("ada", trick("waits", 1))
    until(pool, old, lambda state: state.fraction)
    new = pool.submit("ada", trick("waits", 2))
    state = end(pool, old)
    assert state.status == "cancelled" and "replaced" in state.message
    assert until(pool, new, lambda state: state.fraction).status == "running"
    for batch, owner in enumerate(["bob", "cy", "dee"], 3):
        waiting = pool.submit(owner, trick("waits", batch))
    assert pool.state(waiting).place > 0
    pool.submit("dee", trick("waits", 9))
    assert pool.state(waiting).status == "cancelled"


@naughty
def test_a_job_of_two_owners_ends_only_when_both_gave_it_up(pool):
    job = pool.submit("ada", trick("waits"))
    assert pool.submit("bob", trick("waits")) == job
    until(pool, job, lambda state: state.fraction)
    child = pool._jobs[job].child
    assert not pool.cancel(job, "bob")
    assert pool.submit("bob", trick("waits")) == job
    assert not pool.cancel(job, "ada")
    assert pool.state(job).status == "running" and pool._jobs[job].child is child
    assert pool.cancel(job, "bob")
    assert end(pool, job).status == "cancelled"


@naughty
def test_a_job_may_be_asked_for_again_while_it_is_being_cancelled(pool, monkeypatch):
    monkeypatch.setattr("experiments.jobs.pool.POLITE", 0.3)
    job = pool.submit("ada", trick("is_deaf"))
    until(pool, job, lambda state: state.fraction)
    old = pool._jobs[job].child
    pool.cancel(job)
    assert pool.submit("ada", trick("is_deaf")) == job
    until(pool, job, lambda _: old not in [running.child for running in pool._running])
    assert until(pool, job, lambda state: state.fraction).status == "running"


@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "grace": 0.1}], indirect=True)
def test_a_released_owners_job_ends_after_the_grace_unless_the_owner_returns(pool):
    job, kept = pool.submit("ada", trick("waits", 1)), pool.submit("bob", trick("waits", 2))
    for each in (job, kept):
        until(pool, each, lambda state: state.fraction)
    with pool._lock:  # or the grace may be over between the two
        pool.release("bob")
        pool.touch("bob")
    pool.release("ada")
    state = end(pool, job)
    assert state.status == "cancelled" and "its reader has left" in state.message
    assert pool.state(kept).status == "running"


@naughty
def test_a_job_left_behind_is_reattached_by_the_next_who_asks_and_a_job_of_another_is_not(pool):
    job = pool.submit("ada", trick("waits"))
    assert pool.reattach("eve", trick("waits")) is None  # ada is still there
    pool.release("ada")
    assert pool.reattach("ada again", small(seed=77)) is None  # another experiment, which nobody has asked for
    assert pool.reattach("ada again", trick("waits")) == job
    assert pool.reattach("eve", trick("waits")) is None
    assert pool.cancel(job, "ada again")  # and stops for its one owner
    assert end(pool, job).status == "cancelled"


@naughty
def test_a_job_that_ended_while_the_page_was_reloaded_is_reattached_too(pool):
    job = pool.submit("ada", trick("continues"))
    folder = end(pool, job).folder
    pool.release("ada")
    assert pool.reattach("ada again", trick("continues")) == job
    assert pool.state(job).folder == folder


@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "lease": 1.0}], indirect=True)
def test_an_owner_not_heard_of_for_a_lease_is_gone(pool):
    job = pool.submit("ada", trick("waits"))
    assert "its reader has left" in end(pool, job).message


@pytest.mark.parametrize("pool", [{"command": NAUGHTY, "queue": 1}], indirect=True)
def test_a_full_queue_refuses_with_a_sentence(pool):
    for batch, owner in enumerate("abc", 1):
        job = pool.submit(owner, trick("waits", batch))
        if batch < 3:
            until(pool, job, lambda state: state.status == "running")
    with pytest.raises(ValueError, match="try again"):
        pool.submit("d", trick("waits", 4))


@pytest.mark.parametrize("pool", [{"command": ("/nowhere/python",)}], indirect=True)
def test_a_process_that_cannot_be_started_is_a_failed_job(pool):
    assert "no process could be started" in end(pool, pool.submit("ada", small())).message


@naughty
def test_closing_waits_for_the_children_and_refuses_new_jobs(pool):
    job, waiting = pool.submit("ada", trick("has_grandchildren")), pool.submit("bob", trick("is_deaf"))
    pids = until(pool, job, lambda state: state.curve).curve["pids"].astype(int).tolist()
    pool.close()
    assert not children(pool)
    assert pool.state(job).status == pool.state(waiting).status == "cancelled"
    with pytest.raises(ValueError, match="closed"):
        pool.submit("cy", small())
    psutil.wait_procs([psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)], timeout=PATIENCE)
    assert not any(psutil.pid_exists(pid) for pid in pids)


def test_the_ranks_of_a_real_cluster_end_with_their_job(pool, monkeypatch):
    phases, hear = [], Job.hear
    monkeypatch.setattr(Job, "hear", lambda job, line: (phases.append(line.get("phase")), hear(job, line)))
    monkeypatch.setattr("experiments.jobs.pool.POLITE", 240.0)
    job = pool.submit("ada", small(cluster="processes", steps=1_000_000))
    until(pool, job, lambda state: state.status == "failed" or len(state.curve.get("loss", ())))
    assert phases[0] == "loading torch" and phases[-1] == pool.state(job).phase == ""
    family = children(pool)
    assert pool.state(job).status == "running" and len(family) > 3
    pool.cancel(job)
    state = end(pool, job)
    assert state.status == "cancelled" and store.load(state.folder).experiment.cluster == "processes"
    _, alive = psutil.wait_procs(family, timeout=PATIENCE)
    assert not alive


def ready(pool):
    """The process that waits for a job."""
    return wait_until(lambda: children(pool))[0]


def test_a_process_that_was_foreseen_does_the_next_job_and_another_takes_its_place(pool):
    pool.prewarm()
    first = ready(pool)
    state = end(pool, pool.submit("ada", small()))
    assert (state.status, state.message) == ("finished", "")
    wait_until(lambda: not first.is_running())  # it continues with what follows
    assert store.load(state.folder).experiment == small()
    assert ready(pool) != first


def test_a_process_that_knows_an_older_source_does_no_job(pool, monkeypatch):
    pool.prewarm()
    first = ready(pool)
    monkeypatch.setattr("experiments.jobs.pool.source_version", lambda: "0" * 8)
    job = pool.submit("ada", small(steps=1_000_000))
    until(pool, job, lambda state: state.fraction)
    assert not first.is_running()


def test_a_foreseen_process_that_has_ended_is_not_missed(pool):
    pool.prewarm()
    waiting = ready(pool)
    waiting.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        while waiting.status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.001)
    assert end(pool, pool.submit("ada", small())).status == "finished"


def test_an_unknown_job_is_refused(pool):
    with pytest.raises(ValueError, match="there is no job"):
        pool.state("0123456789abcdef")
    pool.cancel("0123456789abcdef")
    pool.release("nobody")


@pytest.mark.slow
def test_many_jobs_end_and_nothing_piles_up(pool):
    jobs = [
        pool.submit(f"owner {n}", small(algorithm="sgd", workers=1, workload="quadratic", seed=n)) for n in range(4)
    ]
    assert {end(pool, job).status for job in jobs} == {"finished"}
    assert len(store.recent(pool.root)) == 4
    wait_until(lambda: not children(pool))  # the last one continues with what follows


@pytest.mark.skipif(sys.platform != "linux", reason="PR_SET_PDEATHSIG is Linux's")
def test_the_death_of_the_server_ends_its_jobs(tmp_path):
    code = (
        "import sys, time; from experiments.jobs.pool import Pool\n"
        "from experiments.specification.experiment import Experiment\n"
        f"pool = Pool({str(tmp_path)!r}, 1, command={NAUGHTY!r})\n"
        f"e = Experiment.from_json({trick('is_deaf').json()!r})\n"
        "job = pool.submit('ada', e)\n"
        "while not pool.state(job).fraction: time.sleep(0.01)\n"
        "print(pool._running[0].child.process.pid, flush=True); time.sleep(600)\n"
    )
    root = Path(__file__).resolve().parents[3]
    server = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=root)
    job = psutil.Process(int(server.stdout.readline()))
    server.kill()
    server.wait()
    server.stdout.close()
    job.wait(timeout=PATIENCE) if job.is_running() else None
    assert not psutil.pid_exists(job.pid) or job.status() == psutil.STATUS_ZOMBIE


def test_what_the_workbench_imports_is_light():
    code = (
        "import sys, experiments.jobs.pool, experiments.execution.run, experiments.runs.store;"
        "import experiments.exports.export, experiments.viewer.column_codec;"
        "heavy = {'numba', 'torch', 'pyarrow', 'plotly', 'pandas', 'streamlit', 'greenlet'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 0, done.stderr


FOLLOWING = JobSpec("learning", {"digest": "of the run before"})


def known(pool, job):
    """The state of `job`; None while the pool has none."""
    with contextlib.suppress(ValueError):
        return pool.state(job)


@naughty
def test_a_run_is_done_although_its_process_continues_with_what_follows(pool):
    state = end(pool, pool.submit("ada", trick("continues")))
    assert (state.status, state.folder) == ("finished", Path("the run"))
    assert wait_until(lambda: known(pool, FOLLOWING.key())).status == "running"
    assert not pool.has_other_readers("bob"), "nobody asked for it"


@naughty
def test_a_reader_who_asks_for_what_follows_gets_that_of_the_process_that_is_at_it(pool):
    end(pool, pool.submit("ada", trick("continues")))
    wait_until(lambda: known(pool, FOLLOWING.key()))
    pids = {child.pid for child in children(pool)}
    state = until(pool, pool.submit("bob/learning", FOLLOWING), lambda state: state.fraction == 0.5)
    assert state.status == "running" and {child.pid for child in children(pool)} == pids
    pool.cancel(FOLLOWING.key(), "bob/learning")
    assert end(pool, FOLLOWING.key()).status == "cancelled"


@naughty
def test_the_result_of_what_follows_is_no_result_of_the_run(pool):
    state = end(pool, pool.submit("ada", trick("continues_to_the_end")))
    assert state.folder == Path("the run")
    after = wait_until(lambda: (state := known(pool, FOLLOWING.key())) and not state.active and state)
    assert (after.status, after.folder) == ("finished", Path("what follows"))


def test_what_nobody_asked_for_makes_way_for_a_run(tmp_path):
    pool = Pool(tmp_path, 1, command=NAUGHTY)
    end(pool, pool.submit("ada", trick("continues")))
    wait_until(lambda: known(pool, FOLLOWING.key()))
    state = end(pool, pool.submit("bob", trick("raises")))
    assert "something is wrong here" in state.message
    assert pool.state(FOLLOWING.key()).status == "cancelled"
    pool.close()


def test_after_a_run_the_pool_has_how_it_learned_before_anybody_asks(pool):
    recorded = small(workload="text", width=8, heads=2, depth=1)  # however busy the machine is
    spec = learning_record.spec(store.load(end(pool, pool.submit("ada", recorded)).folder))
    assert wait_until(lambda: spec.find_result(pool.root))


def test_only_of_a_short_or_recorded_run_that_ended_well_something_follows():
    done = fabricated.run(small())
    assert following(done) == learning_record.spec(done)
    done.summary["wall_seconds"] = SOON + 1
    assert following(done) is None
    assert following(done, is_recorded=True) == learning_record.spec(done), "it need not be run again"
    assert following(fabricated.run(small(), status="diverged")) is None
    assert following(fabricated.run(small(cluster="threads"))) is None
