"""The pool on a Dask cluster: the same jobs, states and results, on other processes, which may end at any moment."""

import json
import os
import re
import signal
import threading
from functools import partial
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from experiments.cli.running import pool_at
from experiments.execution.run import run
from experiments.jobs import dask_cluster
from experiments.jobs import pool as pool_module
from experiments.jobs.dask_cluster import DaskCluster, mapping, may_leave, unpack
from experiments.jobs.pool import Pool
from experiments.jobs.spec import JobSpec
from experiments.runs import sealed, store
from experiments.runs.progress import Progress
from experiments.runs.summary import source_version
from experiments.specification.experiment import Experiment
from experiments.study import rates
from tests import ports
from tests.patience import wait_until

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
dask_job = pytest.importorskip("experiments.jobs.dask_job")
pack, DaskReport = dask_job.pack, dask_job.DaskReport

ENDLESS = 10_000_000


def small(**values):
    return Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 6, "evaluations": 2, **values})


def end(pool, job):
    return wait_until(lambda: not (state := pool.state(job)).active and state)


def begun(pool, job):
    """The state of a job that records."""
    return wait_until(lambda: (state := pool.state(job)).fraction > 0 and state)


def far_child(pool, job):
    return wait_until(lambda: (child := getattr(pool._jobs[job], "child", None)) and child.address and child)


def cluster_of(count, **options):
    options = {"dashboard_address": None, "memory_limit": 0, "silence_logs": "CRITICAL", **options}
    return distributed.LocalCluster(n_workers=count, threads_per_worker=1, **options)


@pytest.fixture(scope="module")
def cluster():
    with cluster_of(2) as made:
        yield made


@pytest.fixture
def pool(cluster, tmp_path):
    """A pool whose jobs run on two Dask workers that do not share its disk."""
    made = Pool(tmp_path / "runs", 1, dask=cluster.scheduler_address)
    (tmp_path / "runs" / made.dask._token).unlink()
    yield made
    made.close()


def kill_worker(pool, job):
    """Kill the process of the worker that does the job, as the memory's guard of a machine would."""
    child = far_child(pool, job)
    pid = pool.dask._client.run(os.getpid, workers=[child.address])[child.address]
    child.address = ""
    os.kill(pid, signal.SIGKILL)


def test_a_run_of_a_dask_worker_is_stored_here_and_is_the_run_of_this_machine(pool):
    state = end(pool, pool.submit("ada", small()))
    assert (state.status, state.message) == ("finished", "")
    assert state.folder.parent == pool.root and not sealed.altered_files(state.folder)
    assert store.load(state.folder).digest == run(small()).digest


def test_where_the_disk_is_shared_a_worker_writes_to_it_and_nothing_is_fetched(cluster, tmp_path, monkeypatch):
    fetched = []
    monkeypatch.setattr(distributed.Future, "result", lambda *_, **__: fetched.append("a result"))
    pool = Pool(tmp_path, 1, dask=cluster.scheduler_address)
    state = end(pool, pool.submit("ada", small(seed=1)))
    pool.close()
    assert state.status == "finished" and not sealed.altered_files(state.folder) and not fetched


def test_a_job_of_another_kind_runs_there_too_and_its_result_comes_back(pool):
    state = end(pool, pool.submit("ada", rates.job_spec(small())))
    assert state.status == "finished" and rates.read(state.folder) > 0


def test_a_job_shows_its_curve_and_stopped_it_keeps_what_it_recorded(pool):
    job = pool.submit("ada", small(steps=ENDLESS))
    assert len(begun(pool, job).curve["loss"]) > 0
    assert pool.cancel(job, "ada")
    state = end(pool, job)
    assert state.status == "cancelled" and len(store.load(state.folder).losses["step"]) > 0


def test_a_run_that_has_just_begun_sends_no_curve_and_later_it_does():
    lines, curve = [], {"loss": np.ones(3)}
    report = DaskReport(SimpleNamespace(log_event=lambda *event: lines.append(event)), "topic", "key", None)
    now = Progress(0.5, 1.0, 1.0, None, curve, {})
    report.began += 3600.0
    report.progress(now)
    assert not lines
    report.began -= 7200.0
    report.progress(now)
    assert [json.loads(event["line"])["curve"] for _, event in lines] == [{"loss": [1.0] * 3}]


def test_a_job_that_reaches_its_time_limit_keeps_what_it_recorded_and_says_which_limit(cluster, tmp_path):
    pool = Pool(tmp_path, 1, wall=1.0, dask=cluster.scheduler_address)
    state = end(pool, pool.submit("ada", small(steps=ENDLESS)))
    pool.close()
    assert "the limit of 1 s ended it" in state.message and state.folder


def test_a_job_whose_worker_dies_is_begun_again_elsewhere_with_nothing_twice(pool):
    job = pool.submit("ada", small(steps=ENDLESS))
    begun(pool, job)
    child = far_child(pool, job)
    died, before = child.address, pool.state(job).seconds
    kill_worker(pool, job)
    wait_until(lambda: child.address or not pool.state(job).active)
    assert child.address not in ("", died)
    wait_until(lambda: (state := pool.state(job)).seconds != before or not state.active)
    pool.cancel(job, "ada")
    state = end(pool, job)
    assert state.status == "cancelled"
    assert [path.name for path in store.recent(pool.root)] == [state.folder.name]


def test_a_job_whose_worker_dies_twice_fails_with_a_sentence_and_the_next_one_runs(pool):
    job = pool.submit("ada", small(steps=ENDLESS))
    for _ in range(2):
        kill_worker(pool, job)
    state = end(pool, job)
    assert state.status == "failed" and "2 Dask workers ended while they ran it" in state.message
    assert end(pool, pool.submit("ada", small(seed=2))).status == "finished"


def test_a_job_that_no_reader_waits_for_leaves_its_worker_to_others(pool):
    job = pool.submit("ada", small(steps=ENDLESS, seed=3))
    begun(pool, job)
    pool.submit("ada", small(seed=4))
    assert end(pool, job).status == "cancelled"
    key = pool._jobs[job].child.key
    wait_until(lambda: key not in pool.dask._children)


@pytest.mark.slow
def test_a_memory_hog_ends_with_a_sentence_and_not_with_the_cluster(tmp_path):
    with cluster_of(2, memory_limit="500MB") as small_ones:
        pool = Pool(tmp_path, 1, dask=small_ones.scheduler_address)
        hog = small(workload="quadratic", dimension=10_000_000, precision="float64", evaluations=40)
        state = end(pool, pool.submit("ada", hog))
        assert state.status == "failed" and "memory" in state.message
        assert end(pool, pool.submit("ada", small(seed=5))).status == "finished"
        pool.close()


def test_a_worker_of_another_version_is_refused_with_both_versions_named(pool, monkeypatch):
    monkeypatch.setattr(pool_module, "source_version", lambda: "0ther")
    state = end(pool, pool.submit("ada", small(seed=6)))
    assert state.status == "failed" and "0ther" in state.message and source_version() in state.message


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_named_and_runs_begin_again_when_it_is_back(tmp_path):
    start = partial(cluster_of, 1, scheduler_port=ports.free_port())
    with start() as first:
        pool = Pool(tmp_path, 1, dask=first.scheduler_address)
        job = pool.submit("ada", small(steps=ENDLESS))
        begun(pool, job)
    state = end(pool, job)
    assert state.status == "failed" and f"the Dask scheduler at {pool.dask.address} does not answer" in state.message
    again = end(pool, pool.submit("ada", small(seed=7)))
    assert again.status == "failed" and "stored results can still be shown" in again.message
    with start():
        wait_until(lambda: pool.dask.workers)
        assert end(pool, pool.submit("ada", small(seed=7))).status == "finished"
        pool.close()


@pytest.mark.slow
def test_two_hundred_jobs_of_thirty_readers_all_finish_and_readers_take_turns(pool):
    jobs = {}
    for number in range(200):
        wait_until(lambda: sum(pool.state(job).active for job in jobs.values()) < pool.most)
        owner = f"reader {number % 30}/{number}"
        jobs[owner] = pool.submit(owner, small(steps=2, seed=1000 + number))
    ended = [end(pool, job) for job in jobs.values()]
    assert [state.status for state in ended] == ["finished"] * 200
    assert len(store.recent(pool.root)) == 200


@pytest.mark.parametrize(
    ("work", "leaves"),
    [
        (small(), True),
        (small(cluster="threads"), False),
        (JobSpec("script", {"source": "print(1)"}), False),
        (JobSpec("lesson", {"check": "sgd", "source": ""}), False),
        (JobSpec("upload", {}), False),
        (JobSpec("study", {"schedule": "1f1b"}), True),
        (JobSpec("rate", {"experiment": {"workload": "table"}}), False),
    ],
)
def test_nothing_that_a_reader_wrote_leaves_this_machine(work, leaves):
    assert may_leave(work) is leaves


def test_a_script_runs_here_while_the_cluster_is_busy(pool):
    far = pool.submit("ada", small(steps=ENDLESS, seed=8))
    begun(pool, far)
    near = end(pool, pool.submit("bob", JobSpec("upload", {})))
    assert near.status == "failed" and not isinstance(
        pool._jobs[JobSpec("upload", {}).key()].child, dask_cluster.DaskChild
    )
    pool.cancel(far)


def test_workers_with_several_threads_are_refused_with_what_to_start_instead(tmp_path):
    here = {"processes": False, "protocol": "tcp://"}  # its worker is a thread of this process
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None, **here) as threads:
        pool = Pool(tmp_path, 1, dask=threads.scheduler_address)
        state = end(pool, pool.submit("ada", small(seed=9)))
        pool.close()
    assert state.status == "failed" and "--nthreads 1" in state.message


def test_a_pool_stores_what_its_own_cluster_ran_until_ctrl_c_and_closes_leaving_no_process(tmp_path):
    before = {*psutil.Process().children(recursive=True)}
    pool = Pool(tmp_path, 1, dask="local:1")
    job = pool.submit("ada", small(steps=ENDLESS))
    assert begun(pool, job)
    for child in {*psutil.Process().children(recursive=True)} - before:
        if "spawn_main" in str(child.cmdline()):
            child.send_signal(signal.SIGINT)  # as a terminal does, to all processes
    pool.cancel(job)
    assert (state := end(pool, job)).status == "cancelled" and state.folder
    pool.close()
    left = {child for child in psutil.Process().children(recursive=True) if "forkserver" not in str(child.cmdline())}
    wait_until(lambda: not [child for child in left - before if child.is_running() and "dask" in str(child.cmdline())])


def test_a_result_that_arrives_damaged_or_points_outside_its_folder_is_refused(tmp_path):
    folder = store.save(run(small()), tmp_path / "there")
    (folder / "run.json").write_text("{}")
    with pytest.raises(ValueError, match=r"run\.json is damaged"):
        unpack(pack(str(folder)), folder.name, tmp_path / "here")
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(ValueError, match="absolute path"):
        unpack(pack(str(folder)), folder.name, tmp_path / "here")
    assert not store.recent(tmp_path / "here")


def test_a_local_cluster_changes_only_settings_that_dask_has():
    assert all(dask.config.get(name) is not None for name in dask_cluster.LOCAL)  # KeyError for any other name


@pytest.mark.parametrize("address", ["local:0", "local:x", "scheduler", "10.0.0.1:8786"])
def test_an_address_that_is_none_is_refused_with_an_example(address, tmp_path, main):
    with pytest.raises(ValueError, match=r"such as tcp://10\.0\.0\.1:8786, or local:4"):
        DaskCluster(address, tmp_path)
    code, _, err = main("run", "--steps", 2, "--pool", address)
    assert code == 2 and "local:4" in err and err.count("\n") == 1


def test_a_scheduler_that_does_not_answer_is_named_before_anything_runs(main, tmp_path):
    for words in (("run",), ("sweep", "--workers", "1,2")):
        code, _, err = main(*words, "--steps", 2, "--pool", f"tcp://127.0.0.1:{ports.free_port()}")
        assert code == 2 and "does not answer" in err and not store.recent("runs")


def test_a_command_reads_the_version_of_the_source_once_for_all_its_runs(cluster, tmp_path, monkeypatch):
    reads = []
    monkeypatch.setattr(pool_module, "source_version", lambda: reads.append("once") or source_version())
    with pool_at(cluster.scheduler_address, str(tmp_path)) as pool:
        for seed in range(3):
            pool.submit(f"ada/{seed}", small(seed=20 + seed))
            pool._read -= 3600.0  # an hour passes
    assert reads == ["once"]


def test_functions_run_on_the_workers_in_order_unless_these_have_another_version(cluster, monkeypatch):
    with mapping(cluster.scheduler_address) as imap:
        assert [*imap(rates.rung, range(-3, 3))] == [0.1, 0.2, 0.5, 1.0, 2.0, 5.0]
    monkeypatch.setattr(dask_cluster, "source_version", lambda: "0ther")
    with pytest.raises(ValueError, match="0ther"), mapping(cluster.scheduler_address):
        pass


def test_a_run_on_the_cluster_prints_the_summary_of_a_run_here(main, cluster):
    _, here, _ = main("run", "easgd", "--steps", 4, "--runs", "here")
    code, there, _ = main("run", "easgd", "--steps", 4, "--pool", cluster.scheduler_address, "--runs", "there")
    both = [re.sub(r"[\d.]+ m?s of wall time|(stored|open) .*", "", out) for out in (here, there)]
    assert code == 0 and both[0] == both[1]


@pytest.mark.slow  # of a killed worker: test_a_job_whose_worker_dies_is_begun_again_elsewhere_with_nothing_twice
def test_a_sweep_over_a_dask_cluster_gives_the_table_of_one_machine_and_loses_no_run_of_a_killed_worker(main, cluster):
    words = ("sweep", "easgd", "--period", "1,2,4", "--workers", "2,4", "--steps", 40)
    _, alone, _ = main(*words, "--runs", "alone")
    killed = threading.Timer(1.0, lambda: os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL))
    killed.start()
    code, together, _ = main(*words, "--pool", cluster.scheduler_address)
    killed.join()
    assert code == 0 and together == alone and len(store.recent("runs")) == 6
