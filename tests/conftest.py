"""How tests are dealt to the cores: file by file, since a file's tests share servers and count processes. Tests of a
chapter or of an algorithm go together, because they share runs; those of some large files share nothing and go
anywhere. Ranks that are processes find loaded what their programs import.
"""

import gc
import re
import shutil

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

import lessons
from cluster.real import processes
from experiments.cli import main as command_line
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.chapters import Chapter
from tests import fabricated
from tests.chromium import browser  # noqa: F401  (a fixture)

processes.PRELOADED += ["torch.distributed", "pytest", "experiments.execution.run", "tests.training"]

# the same examples in every run, however slowly they are drawn
settings.register_profile("house", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")

# tests of these share nothing, so that each may run anywhere
SPREAD = re.compile(
    r"tests/contract/(test_on_tensors|kernels/)"
    r"|tests/system/(test_learning|cluster/test_algorithms|cluster/test_gpus|experiments/test_kills|kernels/)"
)
# a chapter, or an algorithm, whose tests share runs
SHARED = re.compile(
    r"tests/(?:system/lessons/test_(?:figures|chapters|labs)|contract/test_every_algorithm)\.py::\w+\[(\w+)"
)
SOURCES = re.compile(r"tests/unit/test_(architecture|bibliography|glossary)\.py")  # which parse all sources, once
FIRST = (  # what takes long in one process is begun first, the longest before all, so that nobody waits for it
    "tests/system/app/test_journey.py",
    "tests/system/cluster/test_two_nodes.py",
    "tests/system/app/test_every_page.py",
    "tests/system/cluster/test_torchrun.py",
    "staleness",
    "pipedream",
    "averaging",
    "tests/system/lessons/test_exercises.py",
    "tests/system/lessons/test_book.py",
    "tests/system/app/test_progress_journey.py",
    "tests/system/experiments/test_pool.py",
    "tests/system/app/test_workbench.py",
    "tests/system/cluster/test_processes.py",
    "tests/system/lessons/test_cheats.py",
    "tests/system/lessons/test_pile.py",
    "tests/system/app/test_book_journey.py",
    "decoupled",
    "pipelines",
    "gossip",
    "stragglers",
    "compression",
    "shared_memory",
    "overlap",
    "sandblaster",
    "model_parallel",
    "distributed_update",
    "large_batches",
    "tests/system/app/test_links.py",
    "tests/contract/compression/test_every_compression.py",
    "tests/contract/algorithms/test_tensor.py",
    "tests/contract/algorithms/test_implicit_momentum.py",
    "tests/system/experiments/test_run.py",
    "tests/system/experiments/test_command_line.py",
    "tests/system/test_platforms.py",
    "tests/system/test_installed.py",
    "tests/system/test_notebooks.py",
)


def scope(nodeid: str) -> str:
    """What runs in one process: a chapter, an algorithm, files on sources, a file, or a test that shares nothing."""
    if SOURCES.match(nodeid):
        return "sources"
    if shared := SHARED.match(nodeid):
        return shared[1]
    return nodeid if SPREAD.match(nodeid) else nodeid.partition("::")[0]


SLOW = re.compile(r"^pytestmark = (?:JOURNEY|pytest\.mark\.slow)$", re.MULTILINE)


def _quick(config) -> bool:
    """Whether slow tests do not run."""
    return config.option.markexpr == "not slow"


def pytest_ignore_collect(collection_path, config):
    """Leave out a file of slow tests where these do not run: to import it may take a second in every process."""
    if _quick(config) and collection_path.suffix == ".py":
        return bool(SLOW.search(collection_path.read_text("utf-8"))) or None
    return None


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector, name, obj):
    """Leave out slow functions where these do not run: their cases are thousands of items in every process."""
    if _quick(collector.config) and name.lower().startswith("test"):
        return [] if any(mark.name == "slow" for mark in getattr(obj, "pytestmark", ())) else None
    return None


class LongestFirst(LoadScopeScheduling):
    """Deal scopes to the processes in the order of collection."""

    def _split_scope(self, nodeid):
        return scope(nodeid)


def pytest_collection_modifyitems(config, items):
    """Begin with what takes longest. A test that is named by an address is refused.

    It has another name in every process, and xdist gives up without saying why.
    """
    if unnamed := [item.nodeid for item in items if " object at 0x" in item.nodeid]:
        raise pytest.UsageError(f"{unnamed[0]} is named by an address; give its parameters ids.")
    if hasattr(config, "workerinput"):
        rank = {name: place for place, name in enumerate(FIRST)}
        items.sort(key=lambda item: rank.get(scope(item.nodeid), len(rank)))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Collect without the garbage collector, which would look through the growing heap again and again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_finish():
    """Keep what was imported and collected from the garbage collector, which would look through it for ever.

    To collect once before takes over a second, and frees a few megabytes.
    """
    gc.freeze()


@pytest.hookimpl(optionalhook=True)  # so that pytest also runs without xdist
def pytest_xdist_make_scheduler(config, log):
    config.option.loadscopereorder = False  # which would begin with the scope of the most tests
    return LongestFirst(config, log)


@pytest.fixture
def main(capsys, tmp_path, monkeypatch):
    """Run a command line; gives (exit code, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LOCKSTEP_RUNS", "runs")
    monkeypatch.delenv("COLUMNS", raising=False)  # no terminal, so no edge

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
def draft(tmp_path, monkeypatch):
    """The name of a chapter that has its figures, and nothing else yet."""
    name, find = "sandblaster", lessons.chapter
    folder = tmp_path / "draft" / name
    folder.mkdir(parents=True)
    for file in ("experiments.py", "golden.json", "chapter.toml"):
        shutil.copy(find(name).folder / file, folder)
    front = (folder / "chapter.toml").read_text("utf-8")
    (folder / "chapter.toml").write_text(f'title = "Sandblaster: one careful step"\n{front}', "utf-8")
    monkeypatch.setattr(lessons, "chapter", lambda asked: Chapter(folder) if asked == name else find(asked))
    return name


@pytest.fixture
def made():
    """made(experiment) gives a run that never happened."""
    return fabricated.run
