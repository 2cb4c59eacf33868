"""Windows and macOS: everything of ours is imported and used without what only Linux, or only POSIX, has.

`tests/elsewhere/sitecustomize.py` takes it away, from our modules and not from libraries, in every process of a test.
"""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.sources import FILES, ROOT

ELSEWHERE = ROOT / "tests" / "elsewhere"
pytestmark = pytest.mark.timeout(1500)


@pytest.fixture
def elsewhere(tmp_path):
    """elsewhere("-m", "experiments", ...) is (exit code, stdout, stderr) of Python there."""
    path = os.pathsep.join((str(ELSEWHERE), str(ROOT)))
    names = {"PYTHONPATH": path, "LOCKSTEP_RUNS": str(tmp_path / "runs"), "PYTHONIOENCODING": "cp1252"}
    environment = {**os.environ, **names, "PYTHONWARNDEFAULTENCODING": "1", "PYTHONUTF8": "0"}

    def call(*words: str, **more: str) -> tuple[int, str, str]:
        command, there = [sys.executable, *words], {**environment, **more}
        done = subprocess.run(command, cwd=tmp_path, env=there, capture_output=True, encoding="utf-8", timeout=1200)
        return done.returncode, done.stdout, done.stderr

    return call


def test_ours_see_windows_and_libraries_what_there_is(elsewhere, tmp_path):
    (tmp_path / "probe.py").write_text("import os\nprint(hasattr(os, 'fork'))", "utf-8")
    look = "import cluster.real.memory as m, os, probe; print(m.fcntl, hasattr(m.os, 'fork'), hasattr(os, 'fork'))"
    code, out, err = elsewhere("-c", look, PYTHONPATH=os.pathsep.join((str(ELSEWHERE), str(ROOT), str(tmp_path))))
    assert (code, out.split()) == (0, ["True", "None", "False", "True"]), err


def test_every_module_is_imported(elsewhere):
    scripts = {"__main__.py", "main.py"}  # which run when they are imported
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES if path.name not in scripts]
    names = [name.removesuffix(".__init__") for name in names]
    code, out, err = elsewhere("-W", "ignore", "-c", IMPORTING, *names)
    failed = json.loads(out.splitlines()[-1])
    assert code == 0 and not failed, failed


IMPORTING = """
import importlib, json, sys
failed = {}
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except BaseException as error:
        failed[name] = repr(error)
print()
print(json.dumps(failed))
"""
