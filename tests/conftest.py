"""How tests are dealt to the cores: file by file, since a file's tests share servers and count processes, but for the
large ones, whose tests share nothing. Ranks that are processes find loaded what their programs import."""

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

from cluster.real import processes

processes.PRELOADED += ["torch.distributed", "pytest", "experiments.run", "tests.training"]

# the same examples in every run, however slowly they are drawn
settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

SPREAD = ("test_every_algorithm.py", "test_every_compression.py", "test_twins.py", "test_figures.py", "test_kills.py")


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
