"""Past one machine: batch jobs of SLURM, and ranks that srun or mpirun started."""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.real.launchers import first_host
from experiments.runs import store
from experiments.specification.experiment import Experiment
from tests.quotes import quote
from tests.system.experiments import slurm_cluster
from tests.unit.cluster.test_launchers import LISTS

ROOT = Path(__file__).resolve().parents[3]
SMALL = ("easgd", "--workers", "2", "--steps", "8", "--period", "2")
SCRIPT = """\
#!/bin/bash
#SBATCH --job-name=easgd
#SBATCH --nodes=2
#SBATCH --ntasks=3
#SBATCH --time=1:00:00
#SBATCH --partition=teaching
#SBATCH --account='cs 101'
#SBATCH --output=easgd-%j.out

export PYTHONPATH=ROOT${PYTHONPATH:+:$PYTHONPATH} \
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
# A task is a rank; ranks meet on the first node. If one is lost, the others continue if they can.
srun --kill-on-bad-exit=0 PYTHON -m experiments run easgd \
--period 2 --cluster processes --workers 2 --steps 8 --runs RUNS --timeout 60
"""
GPUS = """\
#!/bin/bash
#SBATCH --job-name=sync_sgd
#SBATCH --nodes=2
#SBATCH --ntasks=5
#SBATCH --gpus-per-node=3
#SBATCH --output=sync_sgd-%j.out
"""


def test_an_experiment_becomes_a_batch_script_with_a_task_for_each_rank(main, tmp_path):
    code, out, err = main(
        *("run", *SMALL, "--to", "slurm", "--nodes", 2),
        *("--time", "1:00:00", "--partition", "teaching", "--account", "cs 101"),
    )
    given = {"ROOT": str(ROOT), "PYTHON": sys.executable, "RUNS": str(tmp_path / "runs")}
    expected = re.sub("ROOT|PYTHON(?!PATH)|RUNS", lambda word: given[word[0]], SCRIPT)
    assert (code, err) == (0, "") and out == expected
    assert not (tmp_path / "runs").exists()  # nothing was run


@pytest.fixture
def task(main, tmp_path):
    """task(script, number) executes the script of an array as one of its tasks, with its runs in this process."""
    python, given = tmp_path / "python", tmp_path / "given"
    python.write_text(f'#!/bin/sh\necho "$@" >> {given}\ncase "$*" in *none*) exit 2;; esac\n')
    python.chmod(0o755)

    def execute(script, number):
        given.write_text("")
        assert sys.executable in script
        environment = {**os.environ, "SLURM_ARRAY_TASK_ID": number}
        done = subprocess.run(["bash", "-c", script.replace(sys.executable, str(python))], env=environment)
        for _, module, *words in map(shlex.split, given.read_text().splitlines()):
            assert module == "experiments" and main(*words)[0] == 2 * ("none" in words)
        return done.returncode

    return execute


def test_a_sweep_becomes_a_job_array_whose_tasks_share_the_runs_and_whose_table_is_then_shown(main, task, tmp_path):
    words = ("sweep", "easgd", "--slow", "1:2,0:3", "--period", "1,2,4", "--steps", 4)
    code, out, _ = main(*words, "--to", "slurm", "--array", 2, "--time", 10)
    assert code == 0 and "#SBATCH --array=0-1\n" in out and "#SBATCH --time=10\n" in out
    assert not (tmp_path / "runs").exists()
    for number, runs in (("0", 2), ("1", 3)):  # the first, the third; the second
        assert task(out, number) == 0
        assert len(store.recent(tmp_path / "runs")) == runs
    assert {store.experiment(folder).slow.text for folder in store.recent(tmp_path / "runs")} == {"1:2,0:3"}
    _, table, err = main(*words)
    assert err == "" and len(store.recent(tmp_path / "runs")) == 3 and "period" in table


def test_a_task_of_an_array_runs_the_rest_of_its_share_after_a_failure_and_then_fails(main, task):
    *_, out = main("sweep", "easgd", "--period", "1,2", "--steps", 4, "--to", "slurm", "--array", 1)[:2]
    broken = out.replace("--period 1 ", "--period none ")
    assert task(broken, "0") == 1
    assert [store.experiment(folder).settings["period"] for folder in store.recent("runs")] == [2]


def test_a_node_has_as_many_gpus_as_tasks(main):
    _, out, _ = main("run", "sync_sgd", "--workers", 5, "--cluster", "gpus", "--to", "slurm", "--nodes", 2)
    assert out.startswith(GPUS) and "--cluster gpus" in out


def test_what_cannot_be_a_job_is_told_in_a_sentence_before_anything_starts(main, monkeypatch, tmp_path):
    for words, sentence in (
        (("--nodes", 2), "--nodes … --to slurm"),
        (("--submit",), "--submit … batch job"),
        (("--to", "slurm", "--nodes", 9), "9 nodes … 3 ranks … at most 3"),
        (("--to", "slurm", "--batch", 100_000), "batch"),
        (("--to", "ssh"), "slurm"),
        (
            ("--to", "slurm", "--time", "soon"),
            "minutes … [days-]hours:minutes:seconds",
        ),
        (("--to", "slurm", "--time", "10\n#SBATCH --exclusive"), "minutes … 10"),
        (
            ("--to", "slurm", "--cluster", "threads"),
            "one process per task … threads",
        ),
    ):
        code, out, err = main("run", *SMALL, *words)
        assert code == 2 and re.search(quote(sentence), err) and err.count("\n") == 1 and not out
    monkeypatch.setenv("PATH", str(tmp_path))
    code, out, err = main("run", *SMALL, "--to", "slurm", "--submit")
    assert code == 2 and "sbatch, which was not found" in err and err.count("\n") == 1 and not out


def test_ranks_that_share_memory_are_on_one_node(main):
    assert main("run", "hogwild", "--to", "slurm", "--nodes", 1)[0] == 0
    code, out, err = main("run", "hogwild", "--to", "slurm", "--nodes", 2)
    assert (code, out) == (2, "")
    assert "hogwild needs memory shared by all its ranks" in err and "use 1 node" in err


@pytest.mark.parametrize("time", ["10", "10:30", "1:00:00", "2-12", "2-12:30", "2-12:30:00"])
def test_a_job_s_limit_is_what_sbatch_reads(main, time):
    assert f"#SBATCH --time={time}\n" in main("run", *SMALL, "--to", "slurm", "--time", time)[1]


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """An sbatch that writes down what it is given, and answers as `answer(exit code, stdout, stderr)` says."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "sbatch"
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    def answer(code=0, out="", err=""):
        lines = ["#!/bin/sh", f'echo "$@" > {folder}/words', f"cat > {folder}/script", f"echo '{out}'"]
        program.write_text("\n".join([*lines, f"echo '{err}' >&2", f"exit {code}"]))
        program.chmod(0o755)
        return folder

    return answer


def test_a_job_is_submitted_by_sbatch_and_its_number_is_told(main, sbatch):
    folder = sbatch(out="4711;cluster")
    _, script, _ = main("run", *SMALL, "--to", "slurm", "--time", 10)
    code, out, err = main("run", *SMALL, "--to", "slurm", "--time", 10, "--submit")
    assert (code, err) == (0, "") and out.startswith("job 4711: ") and "easgd-4711.out" in out
    assert (folder / "words").read_text() == "--parsable\n" and (folder / "script").read_text() == script


def test_what_sbatch_refuses_is_told_in_its_words(main, sbatch):
    sbatch(code=1, err="sbatch: error: invalid partition specified: teaching")
    code, out, err = main("run", *SMALL, "--to", "slurm", "--submit")
    assert code == 2 and not out
    assert err == "sbatch rejected the job: sbatch: error: invalid partition specified: teaching.\n"


def by_hand(variables, tmp_path, size=2):
    """What `size` ranks print that were started with these variables of a launcher: [(stdout, stderr, exit code)]."""
    command = [sys.executable, "-m", "experiments", "run", "easgd", "--steps", "8", "--json", "--runs", str(tmp_path)]
    given = [{name: str(value) for name, value in variables(rank).items()} for rank in range(size)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": ROOT}
    started = [subprocess.Popen(command, env={**os.environ, **one}, **pipes) for one in given]
    return [(*one.communicate(), one.returncode) for one in started]


def slurms(rank):
    step = {"SLURM_STEP_ID": os.getpid() % 7, "SLURM_STEP_NUM_TASKS": 2, "SLURM_NNODES": 1}
    job = {"SLURM_JOB_ID": os.getpid(), "SLURM_JOB_NODELIST": "elsewhere", "SLURM_NTASKS": 2}
    return {**job, **step, "SLURM_PROCID": rank, "SLURM_LOCALID": rank}


def open_mpis(rank):
    names = {"RANK": rank, "SIZE": 2, "LOCAL_RANK": rank, "LOCAL_SIZE": 2}
    return {f"OMPI_COMM_WORLD_{name}": value for name, value in names.items()} | {"PMIX_NAMESPACE": os.getpid()}


@pytest.mark.slow
@pytest.mark.parametrize("variables", [slurms, open_mpis], ids=["slurm", "open_mpi"])
def test_ranks_of_a_launcher_train_together_and_rank_0_writes_the_record(variables, tmp_path):
    (out, err, code), (silence, _, other) = by_hand(variables, tmp_path)
    assert code == other == 0 and silence == "", err
    told = json.loads(out)
    assert told["status"] == "finished" and told["experiment"]["workers"] == 1
    (folder,) = store.recent(tmp_path)
    assert len(store.load(folder).trace.messages) > 0


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("mpirun"), reason="Open MPI is not installed: there is no mpirun")
def test_ranks_that_mpirun_started_train_together(tmp_path):
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"]
    command = [*mpirun, sys.executable, "-m", "experiments", "run"]
    done = subprocess.run([*command, *SMALL, "--json", "--runs", tmp_path], cwd=ROOT, capture_output=True, text=True)
    assert json.loads(done.stdout)["status"] == "finished", done.stderr


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    if why := slurm_cluster.missing():
        pytest.skip(why)
    with slurm_cluster.Slurm(tmp_path_factory.mktemp("slurm")) as started:
        yield started


def test_the_first_host_of_a_node_list_is_that_of_scontrol(slurm):
    for nodes in filter(None, LISTS):
        assert slurm.call("scontrol", "show", "hostnames", nodes).splitlines()[0] == first_host(nodes)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [1, 2])
def test_a_job_that_a_real_slurm_runs_leaves_its_record(slurm, nodes, monkeypatch):
    if nodes == 2:  # for n1 is the name of no computer
        monkeypatch.setitem(slurm.environment, "MASTER_ADDR", socket.gethostname())
    runs = slurm.folder / f"runs{nodes}"
    words = ("--to", "slurm", "--submit", "--nodes", str(nodes), "--time", "10", "--runs", str(runs))
    out = slurm.call(*(sys.executable, "-m", "experiments", "run"), *SMALL, *words)
    number = re.match(r"job (\d+): ", out)[1]
    state, wrote = slurm.ended(number), (slurm.folder / f"easgd-{number}.out").read_text()
    assert state == "COMPLETED", wrote
    (folder,) = store.recent(runs)
    assert store.load(folder).status == "finished" and wrote.count("stored  ") == 1
    expected = Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 8, "period": 2, "cluster": "processes"})
    assert store.experiment(folder) == expected


@pytest.mark.slow
def test_an_experiment_in_the_batch_script_itself_is_a_run_of_its_own(slurm):
    runs = slurm.folder / "own"
    command = f"{sys.executable} -m experiments run sgd --steps 3 --runs {runs}"
    number = slurm.call(
        "sbatch", "--parsable", "--ntasks=2", f"--chdir={ROOT}", "--output=/dev/null", "--wrap", command
    )
    assert slurm.ended(number.strip()) == "COMPLETED" and len(store.recent(runs)) == 1
