"""Starting and ending: what is tested, a signal ends the server, a port in use ends the start. Nothing is installed."""

import hashlib
import os
import signal
import socket
import subprocess
import sys
import sysconfig
import time
import venv
from pathlib import Path

import pytest

import installation
import start
from app.browser import serve
from tests.ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SERVER = """
import os, pathlib, signal, sys, time

def end(*_):
    pathlib.Path("ended").write_text(str(os.getpid()))
    sys.exit(7)

signal.signal(signal.SIGTERM, end)
part = pathlib.Path("part")
part.write_text(f"{os.getpid()} {' '.join(sys.argv[1:])}")
part.rename("started")
time.sleep(100)
"""
FOLLOWING = """
import os, sys, start
from app.browser import serve
sys.exit(serve.follow([str(start.PYTHON), "-m", "streamlit"], os.environ))
"""


@pytest.fixture
def house(tmp_path):
    """A copy of what start.py needs, with an environment that looks installed and a server that only waits."""
    for name in (
        "start.py",
        "requirements.txt",
        "app/__init__.py",
        *(f"app/browser/{name}.py" for name in ("__init__", "serve")),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    digest = hashlib.sha256((ROOT / "requirements.txt").read_bytes()).hexdigest()
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    (tmp_path / ".venv" / "lockstep-installed").write_text(f"{version} {digest}\n")
    (tmp_path / "streamlit").mkdir()
    (tmp_path / "streamlit" / "__main__.py").write_text(SERVER)
    return tmp_path


@pytest.fixture
def held():
    """A port at which this very process listens."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(1)
        yield listening.getsockname()[1]


def server(house: Path, process: subprocess.Popen) -> tuple[int, str]:
    """(process, arguments) of the server, once it is there."""
    while not (house / "started").exists():
        assert process.poll() is None
        time.sleep(0.01)
    pid, _, words = (house / "started").read_text().partition(" ")
    return int(pid), words


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_takes_long_is_tested_if_it_is_named_or_everything_is_asked_for():
    assert start.pytest_arguments(["-x"]) == ["tests", "-m", "not slow", "-x"]
    assert start.pytest_arguments(["--all", "-x"]) == ["tests", "-x"]
    assert start.pytest_arguments(["tests/system/test_learning.py::test_it", "-x"]) == [
        "tests/system/test_learning.py::test_it",
        "-x",
    ]


@pytest.mark.skipif(os.name == "nt", reason="Windows gets another kind of command")
def test_the_set_up_puts_the_command_into_the_environment_for_whatever_folder(tmp_path, monkeypatch):
    home, folder = tmp_path / "an env", tmp_path / "mine"
    venv.create(home, symlinks=True)
    monkeypatch.setattr(start, "HOME", home)
    monkeypatch.setattr(start, "PYTHON", home / "bin" / "python")
    start.add_command()
    (site,) = home.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    folder.mkdir()
    for name in ("cluster", "experiments", "app", "click"):
        (folder / f"{name}.py").write_text("WHOSE = 'theirs'")
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    for words in (["list"], ["book", "list"]):
        done = subprocess.run(
            [home / "bin" / "lockstep", *words], cwd=folder, env=bare, capture_output=True, encoding="utf-8"
        )
        assert (done.returncode, done.stderr) == (0, "") and (
            "easgd" if words == ["list"] else "stragglers"
        ) in done.stdout


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a program can be told")
@pytest.mark.parametrize("how", ["replaced", "followed"])
def test_ending_the_start_ends_the_server(house, how):
    words = ["start.py", "--server.port", str(free_port())] if how == "replaced" else ["-c", FOLLOWING]
    process = subprocess.Popen([sys.executable, *words], cwd=house)
    pid, said = server(house, process)
    try:
        assert (pid == process.pid) == (how == "replaced")
        assert how == "followed" or said == f"run app/main.py --server.port {words[-1]}"
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 7  # the server's own
        assert (house / "ended").read_text() == str(pid) and not alive(pid)
    finally:
        process.kill()
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a program can be told")
def test_ending_the_start_while_it_installs_ends_the_installer(house):
    (house / ".venv" / "lockstep-installed").unlink()
    (house / "installer.py").write_text(SERVER)
    python = house / ".venv" / "bin" / "python"  # for which -m pip is the installer, so that nothing is installed
    python.unlink()
    python.write_text(
        f'#!/bin/sh\n[ "$2" = pip ] && shift 2 && exec {sys.executable} installer.py "$@"\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    process = subprocess.Popen([sys.executable, "start.py"], cwd=house)
    pid = None
    try:
        pid, words = server(house, process)
        assert words.startswith("install ") and pid != process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert not alive(pid) and not (house / ".venv" / "lockstep-installed").exists()
    finally:
        process.kill()
        if pid and alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGTERM that a program can be told")
def test_ending_the_start_while_it_compiles_ends_both_compilers(house):
    (house / ".venv" / "lockstep-installed").unlink()
    (house / "kernels.py").write_text(SERVER)
    (house / "sources.py").write_text(
        "import os, pathlib, time\npathlib.Path('sources').write_text(str(os.getpid()))\ntime.sleep(100)\n"
    )
    python = house / ".venv" / "bin" / "python"
    python.unlink()
    python.write_text(
        '#!/bin/sh\n[ "$2" = pip ] && exit\n'
        f'[ "$2" = compileall ] && exec {sys.executable} sources.py\n'
        'until [ "$2" != experiments.jobs.precompile ] || [ -s sources ]; do sleep 0.1; done\n'
        f'[ "$2" = experiments.jobs.precompile ] && exec {sys.executable} kernels.py\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    process = subprocess.Popen([sys.executable, "start.py"], cwd=house)
    compilers = []
    try:
        kernels, _ = server(house, process)
        compilers = [kernels, int((house / "sources").read_text())]
        assert all(map(alive, compilers))
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 128 + signal.SIGTERM
        assert not any(map(alive, compilers)) and not (house / ".venv" / "lockstep-installed").exists()
    finally:
        process.kill()
        for pid in filter(alive, compilers):
            os.kill(pid, signal.SIGKILL)


def test_a_port_in_use_ends_the_start_and_the_way_out_is_said(held):
    command = [sys.executable, "-m", "app", f"--server.port={held}", "--server.headless=true"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8")
    assert done.returncode == 1
    assert f"{held} is not available" in done.stderr and "--server.port N uses port N" in done.stdout


def test_an_option_that_the_workbench_does_not_have_is_named_before_anything_opens(capsys):
    assert serve.workbench(sys.executable, "app/main.py", ["--port", "8700"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "no option --port" in printed.err and "--server.port" in printed.err


def test_help_after_an_option_of_the_workbench_is_ours_and_names_the_port():
    helps = []
    for words in (["--help"], ["--server.port", "8633", "--help"]):
        done = subprocess.run([sys.executable, "-m", "app", *words], cwd=ROOT, capture_output=True, encoding="utf-8")
        assert done.returncode == 0 and "--server.port" in done.stdout and "sweep" in done.stdout
        helps.append(done.stdout)
    assert helps[0] == helps[1]


@pytest.mark.parametrize("words", ["experiments list", "algorithms sgd", "lessons list", "app list", "app"])
def test_a_python_without_the_requirements_is_told_how_to_install_them_and_which_one_has_them(words):
    command = [sys.executable, "-S", "-m", *words.split()]  # without site-packages
    bare = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    told = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True)
    assert told.returncode == 2 and told.stdout == "" and told.stderr.count("\n") == 1, told.stderr
    assert f"is not installed for {sys.executable}. Run python3 start.py install once" in told.stderr
    assert ".venv/bin/python" in told.stderr


def test_a_module_of_our_own_that_is_missing_is_no_requirement():
    with pytest.raises(ModuleNotFoundError, match=r"lessons\.nowhere"), installation.exit_if_missing():
        import lessons.nowhere  # noqa: F401
