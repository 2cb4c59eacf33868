"""Every algorithm is a script with the options of `run`."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import algorithms
from experiments.experiment import Experiment

ROOT = Path(__file__).resolve().parents[2]


def script(name, *words):
    module = algorithms.find(name).__name__
    return subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, capture_output=True, text=True)


def test_a_module_run_as_a_script_is_that_experiment(tmp_path):
    done = script("easgd", "--workers", "2", "--steps", "5", "--period", "2", "--json", "--runs", str(tmp_path))
    assert done.returncode == 0, done.stderr
    expected = Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 5, "period": 2})
    assert json.loads(done.stdout)["experiment"] == json.loads(expected.json())


def test_a_mistake_gives_one_sentence_and_exit_code_2():
    done = script("downpour", "--n-push", "0")
    assert done.returncode == 2 and "n_push" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", algorithms.names())
def test_every_module_ends_with_the_lines_that_make_it_a_script(name):
    footer = 'if __name__ == "__main__":\n    from experiments.script import main\n\n    main(__spec__.name)\n'
    assert Path(algorithms.find(name).__file__).read_text().endswith("\n\n\n" + footer)
