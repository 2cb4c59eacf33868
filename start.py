#!/usr/bin/env python3
"""Start Lockstep on a fresh machine: `python3 start.py` opens the workbench, `python3 start.py test` runs the tests.

Both create a virtual environment `.venv` next to this file, install `requirements.txt` into it, and print each step.
The second time, nothing needs to be installed. This file needs only the standard library.

    python3 start.py                     open the workbench in the browser; further arguments go to streamlit
                                         (--server.port 8600)
    python3 start.py test [ARGS ...]     run the fast tests (a few minutes), or those you name; further arguments go
                                         to pytest
    python3 start.py test --all          also run the slow tests: every figure, best rate and journey in the browser
    python3 start.py install             only install

Installing also puts the command `lockstep` into .venv.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
HOME = ROOT / ".venv"
PYTHON = HOME / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = HOME / "lockstep-installed"  # records what was installed, and with which Python
OLDEST = (3, 11)


def main(words: list[str]) -> int:
    """Run the command named by the first word. Return the exit code."""
    if sys.version_info < OLDEST:
        return fail(f"this is Python {sys.version.split()[0]}; Lockstep needs {OLDEST[0]}.{OLDEST[1]} or later.")
    task, *rest = words or ["run"]
    if task in ("-h", "--help"):
        print(__doc__)
        return 0
    if task.startswith("-"):
        task, rest = "run", words
    if task not in ("run", "test", "install"):
        return fail(f"there is no command {task!r}; use 'test', 'install', or no word to open the workbench.")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # also ends pip
    code = install()
    if code or task == "install":
        return code
    workers = str((os.cpu_count() or 1) + 2)  # more than cores, since tests often wait for browsers and processes
    from app.browser import serve  # only once the version of Python is checked

    os.chdir(ROOT)
    if task == "run":
        return serve.workbench(str(PYTHON), "app/main.py", rest)
    say("running the tests")
    return serve.become([str(PYTHON), "-m", "pytest", "-n", workers, "--dist", "loadfile", *pytest_arguments(rest)])


def pytest_arguments(words: list[str]) -> list[str]:
    """Return the arguments for pytest: the tests that `words` name or, if they name none, all tests but the slow ones.

    With --all, the slow tests run as well.
    """
    if any((ROOT / word.partition("::")[0]).exists() for word in words):
        return words
    if "--all" in words:
        return ["tests", *(word for word in words if word != "--all")]
    return ["tests", "-m", "not slow", *words]


def install() -> int:
    """Create .venv and install the requirements, unless that was done with the same Python and the same
    requirements.txt.

    Return the exit code.
    """
    requirements = ROOT / "requirements.txt"
    digest = hashlib.sha256(requirements.read_bytes()).hexdigest()
    wanted = f"{sys.version_info.major}.{sys.version_info.minor} {digest}"
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text("utf-8").strip() == wanted and works():
        add_command()
        return 0
    if HOME.exists() and not (works() and version() == list(sys.version_info[:2])):
        say(f"{HOME.name} belongs to another Python; recreating it")
        shutil.rmtree(HOME)
    if not HOME.exists():
        say(f"creating a virtual environment in {HOME.name}")
        try:
            venv.create(HOME, with_pip=True)
        except (OSError, subprocess.CalledProcessError) as error:
            shutil.rmtree(HOME, ignore_errors=True)
            return fail(f"cannot create a virtual environment ({error}); on Debian: apt install python3-venv.")
    say("installing the requirements; this takes a few minutes the first time")
    # torch first, by itself: once it is installed, no other package pulls in a build with gigabytes of CUDA
    torch = next(
        line.split("#")[0].strip() for line in requirements.read_text("utf-8").splitlines() if "torch==" in line
    )
    for packages in ([torch], ["-r", str(requirements)]):
        command = [str(PYTHON), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        command += packages
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            return fail(
                "pip could not install the requirements; its message is above. Try again, or install them by hand "
                "(docs/install.md)."
            )
    add_command()
    say("compiling the kernels")
    precompile()
    STAMP.write_text(wanted + "\n", "utf-8")
    say("done; run commands as .venv/bin/lockstep WORDS, or activate the environment and type lockstep WORDS")
    return 0


def add_command() -> None:
    """Add the command `lockstep` to .venv, and make these sources importable in it.

    Both are files of a line or two, so no package is built and nothing is downloaded.
    """
    site, scripts = (
        Path(sysconfig.get_path(name, "venv", {"base": str(HOME), "platbase": str(HOME)}))
        for name in ("purelib", "scripts")
    )
    site.mkdir(parents=True, exist_ok=True)
    (site / "lockstep.pth").write_text(f"{ROOT}\n", "locale")
    if os.name == "nt":
        (scripts / "lockstep.cmd").write_text(f'@"{PYTHON}" -P -m lockstep %*\n', "locale")
        return
    command = scripts / "lockstep"
    command.write_text(f'#!/bin/sh\nexec {shlex.quote(str(PYTHON))} -P -m lockstep "$@"\n', "locale")
    command.chmod(0o755)


def precompile() -> None:
    """Compile the kernels and, on another core, the installed packages except their tests.

    pip was told not to compile them. Anything not compiled now is compiled at first use.
    """
    sources = [str(PYTHON), "-m", "compileall", "-qq", "-x", r"site-packages.*[\\/]tests?[\\/]", str(HOME)]
    with subprocess.Popen(sources, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as other:
        try:
            subprocess.run([str(PYTHON), "-m", "experiments.jobs.precompile"], cwd=ROOT, check=False)
        except BaseException:  # such as Ctrl-C
            other.kill()
            raise


def works() -> bool:
    """True if .venv has a Python that starts."""
    return PYTHON.exists() and subprocess.run([str(PYTHON), "-c", ""], capture_output=True, check=False).returncode == 0


def version() -> list[int]:
    """Return the major and minor version of .venv's Python."""
    code = "import sys; print(*sys.version_info[:2])"
    return [
        int(n) for n in subprocess.run([str(PYTHON), "-c", code], capture_output=True, encoding="ascii").stdout.split()
    ]


def say(text: str) -> None:
    print(f"lockstep: {text}", flush=True)


def fail(text: str) -> int:
    """Print what is wrong and what to try. Return the exit code for a mistake."""
    print(f"lockstep: {text}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
