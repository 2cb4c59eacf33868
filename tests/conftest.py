"""How tests are dealt to the cores: file by file, since a file's tests share servers and count processes, but for the
large ones, whose tests share nothing. Ranks that are processes find loaded what their programs import."""

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from cluster.real import processes
from experiments.cli import main as command_line
from experiments.experiment import Experiment
from experiments.run import run
from tests import fabricated

processes.PRELOADED += ["torch.distributed", "pytest", "experiments.run", "tests.training"]

# the same examples in every run, however slowly they are drawn
settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

SPREAD = (
    "test_every_algorithm.py",
    "test_every_compression.py",
    "test_implementations.py",
    "test_figures.py",
    "test_kills.py",
)


class FileByFile(LoadScopeScheduling):
    """What has the same scope runs in one process."""

    def _split_scope(self, nodeid):
        file = nodeid.partition("::")[0]
        return nodeid if file.endswith(SPREAD) else file


def pytest_collection_modifyitems(items):
    """A test that is named by an address has another name in every process, and xdist gives up without saying why."""
    if unnamed := [item.nodeid for item in items if " object at 0x" in item.nodeid]:
        raise pytest.UsageError(f"{unnamed[0]} is named by an address; give its parameters ids.")


def pytest_xdist_make_scheduler(config, log):
    return FileByFile(config, log)


@pytest.fixture
def main(capsys, tmp_path, monkeypatch):
    """Run a command line; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCKSTEP_RUNS", "runs")

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


@pytest.fixture
def made():
    """made(experiment) gives a run that never happened."""
    return fabricated.run
