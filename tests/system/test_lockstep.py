"""`import lockstep` in a folder of the reader's, whatever the files there are called."""

import os
import subprocess
import sys

import pytest

from experiments.cli.notebook import sweep
from tests.patience import PATIENCE
from tests.sources import ROOT

SMALL = "workers=2, steps=2, evaluations=1"
NAMESAKES = ("experiments.py", "cluster.py", "knobs.py", "workloads/mine.py", "kernels/__init__.py", "app.py")


@pytest.fixture(scope="module")
def script(tmp_path_factory):
    """Run a script in a folder that has these files, too; return what it printed, and what it complained about."""

    def run(text: str, *files: str, name: str = "mine.py") -> tuple[str, str]:
        folder = tmp_path_factory.mktemp("mine")
        for path in (folder / file for file in files):
            path.parent.mkdir(exist_ok=True)
            path.write_text("WHOSE = 'theirs'\n", "utf-8")
        (folder / name).write_text(text, "utf-8")
        done = subprocess.run(
            [sys.executable, name],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), "LOCKSTEP_RUNS": str(folder / "runs")},
            capture_output=True,
            encoding="utf-8",
            timeout=PATIENCE,
        )
        return done.stdout, done.stderr

    return run


@pytest.fixture(scope="module")
def beside_namesakes(script):
    """What a script says, beside files of our names, that runs an experiment in its process, on ranks and in a pool."""
    text = f"""
import time
import lockstep
from experiments.jobs.pool import Pool
print("here", lockstep.run("easgd", {SMALL}).status)
print("ranks", lockstep.run("easgd", {SMALL}, cluster="processes").status)
pool = Pool("kept", 1)
job = pool.submit("ada", lockstep.Experiment.of(dict({SMALL})))
while pool.state(job).active:
    time.sleep(0.05)
print("job", pool.state(job).status)
pool.close()
import app
print("app", app.WHOSE)
"""
    return script(text, *NAMESAKES)


def test_a_folder_with_files_of_our_names_runs_an_experiment_and_is_told_which_it_cannot_import(beside_namesakes):
    out, err = beside_namesakes
    assert {"here finished", "app theirs"} <= {*out.splitlines()}, err
    (told,) = [line for line in err.splitlines() if "rename" in line]
    assert all(f"/{name.split('/')[0]}" in told for name in NAMESAKES[:-1]) and "/app.py" not in told


def test_real_ranks_are_started_from_a_folder_with_files_of_our_names(beside_namesakes):
    out, err = beside_namesakes
    assert "ranks finished" in out.splitlines(), err


def test_a_job_of_the_pool_is_done_from_a_folder_with_files_of_our_names(beside_namesakes):
    out, err = beside_namesakes
    assert "job finished" in out.splitlines(), err


def test_a_file_that_was_imported_before_under_a_name_of_ours_is_named(script):
    out, err = script("import cluster\nimport lockstep\n", "cluster.py")
    last = err.strip().splitlines()[-1]
    assert out == "" and last.startswith("ImportError") and "cluster.py" in last and "rename" in last


@pytest.fixture(scope="module")
def own_algorithm(script):
    """What a script says that trains with an algorithm of its own, and is called as a package of ours."""
    text = f"""
import lockstep

def worker(comm: lockstep.Comm, task, s):
    x = task.start()
    for _ in task.steps():
        _, g = task.gradient(x)
        x -= s.learning_rate * comm.all_reduce(g) / comm.size
        task.report(x)
    return x

r = lockstep.run("sync_sgd", worker=worker, {SMALL})
print(r.status, r.summary["messages"] > 0, len(lockstep.algorithms()) > 50)
for wrong in ({{"worker": 8}}, {{"worker": worker, "cluster": "threads"}}):
    try:
        lockstep.run("sync_sgd", **wrong)
    except ValueError as error:
        print("workers=8" in str(error) or "simulated" in str(error))
"""
    return script(text, name="experiments.py")


def test_a_script_may_itself_have_the_name_of_a_package_of_ours(own_algorithm):
    out, err = own_algorithm
    assert out.startswith("finished") and "rename" not in err


def test_an_algorithm_of_ones_own_trains_in_place_of_the_named_one(own_algorithm):
    out, err = own_algorithm
    assert out.split() == ["finished", "True", "True", "True", "True"], err


def test_a_sweep_over_workers_has_its_speed_up_and_divides_a_global_batch():
    runs = sweep("sync_sgd", workers=[1, 2, 4], steps=4, global_batch=32)
    assert [run.experiment.batch for run in runs] == [32, 16, 8]
    rate = [run.summary["samples_per_second"] for run in runs]
    assert [row["speed_up"] for row in runs.rows] == pytest.approx([one / rate[0] for one in rate])
    assert [row["efficiency"] * row["workers"] for row in runs.rows] == pytest.approx([r / rate[0] for r in rate])
    with pytest.raises(ValueError, match=r"batch: global_batch=32 already sets it"):
        sweep("sync_sgd", workers=[1, 2], batch=8, global_batch=32)


def test_a_sweep_has_the_words_of_the_command_line():
    runs = sweep(["sync_sgd", "easgd"], workers=2, steps=2)
    for text in (repr(runs), runs._repr_html_()):
        assert all(word in text for word in ("traffic", "computed", "virtual time", "optimizer", "held-out loss"))
        assert "bytes" not in text and "flops" not in text and "the same in all runs: handwritten digits" in text


def test_a_sweep_of_something_else_has_no_speed_up():
    (row, _) = sweep("sync_sgd", batch=[4, 8], workers=2, steps=2).rows
    assert "speed_up" not in row
