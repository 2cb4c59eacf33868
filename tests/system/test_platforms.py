"""Windows and macOS: everything of ours is imported and used without what only Linux, or only POSIX, has.

`tests/elsewhere/sitecustomize.py` takes it away, from our modules and not from libraries, in every process of a test.
"""

import json
import os
import subprocess
import sys

import pytest

from tests.patience import PATIENCE
from tests.sources import FILES, ROOT

ELSEWHERE = ROOT / "tests" / "elsewhere"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("elsewhere")


@pytest.fixture(scope="module")
def elsewhere(folder):
    """elsewhere("-m", "experiments", ...) is (exit code, stdout, stderr) of Python there."""
    path = os.pathsep.join((str(ELSEWHERE), str(ROOT)))
    names = {"PYTHONPATH": path, "LOCKSTEP_RUNS": str(folder / "runs"), "PYTHONIOENCODING": "cp1252"}
    environment = {**os.environ, **names, "PYTHONWARNDEFAULTENCODING": "1", "PYTHONUTF8": "0"}
    environment.pop("COLUMNS", None)  # which pytest-xdist gives its workers; a pipe has no edge

    def call(*words: str, **more: str) -> tuple[int, str, str]:
        command, there = [sys.executable, *words], {**environment, **more}
        done = subprocess.run(command, cwd=folder, env=there, capture_output=True, encoding="utf-8")
        return done.returncode, done.stdout, done.stderr

    return call


def test_ours_see_windows_and_libraries_what_there_is(elsewhere, tmp_path):
    (tmp_path / "probe.py").write_text("import os\nprint(hasattr(os, 'fork'))", "utf-8")
    look = "import cluster.real.memory as m, os, probe; print(m.fcntl, hasattr(m.os, 'fork'), hasattr(os, 'fork'))"
    code, out, err = elsewhere("-c", look, PYTHONPATH=os.pathsep.join((str(ELSEWHERE), str(ROOT), str(tmp_path))))
    assert (code, out.split()) == (0, ["True", "None", "False", "True"]), err


COMMANDS = {
    "experiments list": 0,
    "experiments run easgd --workers 2 --steps 5": 0,
    "experiments run hogwild --workers 2 --steps 5 --cluster threads": 0,
    "experiments sweep sync_sgd --workers 1,2 --steps 5": 0,
    "experiments schedule 1f1b --ranks 2 --chunks 2": 0,
    "lessons show order_of_sums": 0,
    f"lessons check stragglers {ROOT / 'lessons' / 'stragglers' / 'solution.py'}": 1,
}
"""With the exit code of each."""


@pytest.fixture(scope="module")
def used(elsewhere):
    """What one process says there that executes the commands, then imports all modules, and prints the failures."""
    scripts = {"__main__.py", "main.py"}  # which run when they are imported
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES if path.name not in scripts]
    names = [name.removesuffix(".__init__") for name in names]
    names.remove("cluster.strands.browser")  # which is imported in a browser alone
    return elsewhere("-W", "ignore", "-c", USING, json.dumps([*COMMANDS]), *names)


def test_every_module_is_imported(used):
    code, out, err = used
    assert code == 0 and json.loads(out.splitlines()[-1]) == {}, err


def test_the_command_line_runs_sweeps_lists_and_shows_a_figure(used, folder):
    _, out, err = used
    assert json.loads(out.splitlines()[-2]) == [*COMMANDS.values()], err
    for words in (
        "EASGD on",
        "▁",
        "Hogwild",
        "threads",
        "the same in all",
        "critical path",
        "agree bit for bit",
    ):
        assert words in out, words
    assert len([path for path in (folder / "runs").iterdir() if (path / "run.json").is_file()]) == 4


def test_solutions_are_refused_in_a_sentence_where_nothing_can_confine_them(used):
    assert "this system cannot confine a process, so nothing was run; grade on Linux" in used[1]


USING = """
import importlib, json, sys
from experiments.cli.main import main
from lessons.cli.main import command_line as lessons
codes = []
for command in json.loads(sys.argv[1]):
    room, *words = command.split()
    try:
        codes.append(main(words) if room == "experiments" else lessons(words) or 0)
    except SystemExit as end:
        codes.append(end.code or 0)
failed = {}
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = repr(error)
print()
print(json.dumps(codes))
print(json.dumps(failed))
"""


@pytest.mark.slow
def test_real_processes_start_and_one_that_is_lost_comes_back_to_memory_that_is_locked(elsewhere):
    words = "run easgd --workers 2 --steps 60 --cluster processes --crash 1:0.02-0.04 --json"
    for system in ("Windows", "macOS"):  # where they are spawned; forked by a server, with memory that has a name
        code, out, err = elsewhere("-W", "ignore", "-m", "experiments", *words.split(), ELSEWHERE=system)
        assert code == 0 and json.loads(out)["status"] == "finished", err


@pytest.mark.slow
def test_the_workbench_runs_a_job_in_its_pool_and_shows_it(elsewhere):
    code, out, err = elsewhere("-W", "ignore", "-c", WORKBENCH)
    assert code == 0 and out.splitlines()[-1].startswith("shown"), err + out


WORKBENCH = f"""
import time
from app.session import session
from experiments.specification.experiment import Experiment
from experiments.jobs import child_output
from streamlit.testing.v1 import AppTest

def until(job, so):
    for _ in range(6000):
        if so(state := session.pool().state(job)):
            return state
        time.sleep(0.05)
    raise AssertionError(f"the job is still {{state}}")

assert not child_output.SELECTABLE
experiment = Experiment.of({{"algorithm": "easgd", "workers": 2, "steps": 5, "evaluations": 2}})
job = session.pool().submit("reader", experiment)
state = until(job, lambda state: not state.active)
assert state.folder, state
endless = session.pool().submit("another", Experiment.of({{"steps": 1_000_000}}))
until(endless, lambda state: state.fraction)
assert session.pool().cancel(endless)
ended = until(endless, lambda state: not state.active)
assert ended.status == "cancelled", ended
page = AppTest.from_file({str(ROOT / "app" / "pages.py")!r}, default_timeout={PATIENCE})
page.query_params["run"] = state.folder.name
page.run()
assert not page.exception, page.exception
assert page.metric and "EASGD" in str([one.value for one in [*page.title, *page.markdown, *page.caption]])
session.pool().close()
print("shown", len(page.metric))
"""
