"""Installed as a package, in an environment of its own, and used from an empty folder by the command `lockstep`."""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import time
import urllib.request
import venv
from pathlib import Path

import psutil
import pytest
from hatchling.builders.wheel import WheelBuilder

from tests.patience import PATIENCE
from tests.ports import free_port
from tests.tiers import slow_except

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(os.name == "nt", reason="the layout of an environment is that of POSIX here")
CHEAT = """
import importlib, json, os, sys

def f():
    found = {{}}
    for name in {names!r}:
        try:
            with open(name) as file:
                found[name] = file.read(10)
        except OSError as error:
            found[name] = "refused"
    for name in ("lessons.stragglers.solution", "algorithms.synchronous.backup"):
        try:
            found[name] = importlib.import_module(name).__file__
        except Exception as error:
            found[name] = "refused"
    import numpy.fft, statistics
    return json.dumps(found)
"""
GRADE = """
import sys
from lessons.grading import bubblewrap
from lessons.grading.grader import Solution
if sys.argv[1] == "own":
    bubblewrap.works = lambda readable: False
solution = Solution(sys.stdin.read())
with solution.attempt() as attempt:
    print(solution.sandbox["files"] if "files" in solution.sandbox else "nothing", attempt.call("f"))
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """site-packages of an environment into which the wheel is installed; what it needs is borrowed from ours."""
    home = tmp_path_factory.mktemp("installed")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(home / "dist"), versions=["standard"])
    venv.create(home / "env")
    (site,) = (home / "env").glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    python = home / "env" / "bin" / "python"
    install = ["install", "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check", wheel]
    subprocess.run([sys.executable, "-m", "pip", "--python", python, *install], check=True)
    (home / "folder").mkdir()
    (home / "folder" / "lessons.py").write_text("raise ImportError('a file of the reader')")
    return site


def environment(site: Path) -> dict[str, str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith(("LOCKSTEP_", "PYTHON"))}
    kept = str(site.parents[3] / "kept")
    return given | {"XDG_DATA_HOME": kept, "HOME": kept, "COLUMNS": "80"}


def command(site: Path, *words: str) -> list[str]:
    return [str(site.parents[2] / "bin" / "lockstep"), *words]


def lockstep(site: Path, *words: str, code: int = 0) -> str:
    """What a command prints, in a folder with a file that is called as one of our modules."""
    done = subprocess.run(
        command(site, *words), env=environment(site), cwd=site.parents[3] / "folder", capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_its_help_fits_80_columns_and_says_what_to_start_with(site):
    told = lockstep(site, "--help")
    assert max(map(len, told.splitlines())) <= 80
    (start,) = re.findall(r"Start here:\n((?:  lockstep.*\n){4})\n", told)
    assert start.count("lockstep") == 4
    assert lockstep(site, "--version").strip() == "lockstep, version 0.1.0"


@pytest.mark.slow
def test_a_run_is_kept_by_the_user_and_repeated_by_a_command_that_can_be_typed(site):
    before = {path for path in site.rglob("*") if "__pycache__" not in path.parts}
    told = lockstep(site, "run", "easgd", "--workers", "2", "--steps", "3")
    assert "again   lockstep run easgd --workers 2 --steps 3" in told
    assert len(list((site.parents[3] / "kept" / "lockstep" / "runs").iterdir())) == 1
    assert {path for path in site.rglob("*") if "__pycache__" not in path.parts} == before
    assert "run lockstep fit" in " ".join(lockstep(site, "run", "--network", "here", code=2).split())


def test_the_textbook_and_its_documents_came_along(site):
    told = lockstep(site, "book", "list")
    assert "stragglers" in told and "lockstep book show NAME" in told
    assert "clone" in lockstep(site, "book", "new", "momentum", code=2) and not (site / "lessons" / "momentum").exists()
    assert "@" in lockstep(site, "book", "bib", "--cited-by", "algorithms.averaging.easgd")


@pytest.mark.slow
def test_ranks_of_torchrun_are_joined_and_a_missing_algorithm_is_explained(site):
    told = lockstep(site, "torch", "--standalone", "--nproc-per-node", "2", "easgd", "--workers", "1", "--steps", "3")
    assert "again   lockstep run easgd --cluster processes --workers 1 --steps 3" in told
    assert "which algorithm?" in lockstep(site, "torch", "--nproc-per-node", "2", code=2)


@pytest.mark.skipif(sys.platform != "linux", reason="only the limits hold here")
@pytest.mark.parametrize("way", ["bubblewrap", "own"])
def test_a_solution_reads_no_answers_from_the_package(site, way):
    names = [str(site / name) for name in ("lessons/stragglers/solution.py", "lessons/stragglers/golden.json")]
    numpy = str(Path(sysconfig.get_path("purelib")) / "numpy" / "__init__.py")
    done = subprocess.run(
        [site.parents[2] / "bin" / "python", "-c", GRADE, way],
        env=environment(site), cwd="/", input=CHEAT.format(names=[*names, numpy]), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    held, _, found = done.stdout.partition(" ")
    if held == "nothing":
        pytest.skip("this system protects no files")
    found = json.loads(found)
    assert found.pop(numpy) != "refused"
    assert set(found.values()) == {"refused"}, found


# of SIGTERM: test_ending_the_start_ends_the_server
@pytest.mark.parametrize("end", slow_except((signal.SIGKILL,), (signal.SIGTERM, signal.SIGKILL)), ids=str)
def test_it_opens_the_workbench_and_nothing_is_left_when_that_ends(site, end):
    port = free_port()
    options = "--server.headless", "true", "--server.port", str(port)
    server = subprocess.Popen(command(site, *options), env=environment(site), cwd=site.parents[3] / "folder")
    try:
        assert answer(server, f"http://127.0.0.1:{port}/_stcore/health") == b"ok"
        assert b"<html" in answer(server, f"http://127.0.0.1:{port}/")
        while not (started := psutil.Process(server.pid).children(recursive=True)):
            assert server.poll() is None
            time.sleep(0.1)  # until it has made a process ready for the first run
        server.send_signal(end)
        server.wait()
        assert not psutil.wait_procs(started, timeout=PATIENCE)[1]
    finally:
        server.kill()


def answer(server: subprocess.Popen, address: str) -> bytes:
    """What the server answers, once it does."""
    while True:
        try:
            return urllib.request.urlopen(address).read()
        except OSError:
            assert server.poll() is None
            time.sleep(0.2)
