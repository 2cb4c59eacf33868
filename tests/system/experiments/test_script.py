"""`python -m algorithms NAME` runs an algorithm with the options of `run`, alone or as a rank of torchrun."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.specification.experiment import Experiment
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[3]


def script(name, *words):
    return subprocess.run([sys.executable, "-m", "algorithms", name, *words], cwd=ROOT, capture_output=True, text=True)


def test_an_algorithm_run_by_its_name_is_that_experiment(tmp_path):
    done = script("easgd", "--workers", "2", "--steps", "5", "--period", "2", "--json", "--runs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    expected = Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 5, "period": 2})
    assert json.loads(done.stdout)["experiment"] == json.loads(expected.json())


@pytest.mark.slow  # of a sentence and exit code 2: test_too_few_ranks_of_torchrun_are_told_once
def test_a_mistake_gives_one_sentence_and_exit_code_2():
    done = script("downpour", "--n-push", "0")
    assert done.returncode == 2 and "n_push" in done.stderr and done.stderr.count(".\n") == 1


def ranks(size, *words):
    """The module as `size` ranks that somebody else has started, as torchrun does."""
    port = free_port()
    started = []
    for rank in range(size):
        where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        environment = {**os.environ, **{name: str(value) for name, value in where.items()}}
        command = [sys.executable, "-m", "algorithms", "easgd", *words]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        started.append(subprocess.Popen(command, cwd=ROOT, env=environment, **pipes))
    return [(*one.communicate(), one.returncode) for one in started]


@pytest.mark.slow
def test_ranks_of_torchrun_are_as_many_workers_as_servers_leave_and_the_first_speaks_for_all(tmp_path):
    (out, err, code), (silence, _, other) = ranks(2, "--steps", "8", "--json", "--runs", str(tmp_path))
    assert code == 0, err
    told = json.loads(out)
    assert told["status"] == "finished" and told["summary"]["steps"] == 8
    assert (told["experiment"]["cluster"], told["experiment"]["workers"]) == ("processes", 1)
    assert (silence, other) == ("", 0)
    assert len(list(tmp_path.iterdir())) == 1


def test_too_few_ranks_of_torchrun_are_told_once():
    (_, err, code), (_, silence, other) = ranks(2, "--workers", "5")
    assert code == other == 2 and "started 2 ranks" in err and err.count(".\n") == 1 and silence == ""
