"""What tests share: the command line, and small finished runs to store, compare and export."""

import pytest

from experiments.cli import main as command_line
from experiments.experiment import Experiment
from experiments.run import run


@pytest.fixture
def main(capsys, tmp_path, monkeypatch):
    """Run a command line; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        code = command_line.main([str(word) for word in words])
        out = capsys.readouterr()
        return code, out.out, out.err

    return call


@pytest.fixture(scope="session")
def small_run():
    """EASGD with two workers: losses, evaluations, messages, everything but staleness."""
    return run(Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 12, "evaluations": 3}))


@pytest.fixture(scope="session")
def stale_run():
    """Downpour with two workers: staleness as well."""
    return run(Experiment.of({"algorithm": "downpour", "workers": 2, "steps": 8, "evaluations": 3}))
