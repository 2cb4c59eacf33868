"""Run experiments in a Python that has what Python in a browser has: no compiler, no greenlets, no processes.

    python -m tests.bare_python < experiments.json        a list of Experiments; prints what `measure` returns of each

Importing what such a Python lacks raises ImportError. Threads it has, unlike a browser: ranks switch by them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.abc import MetaPathFinder
from typing import Any

from tests.sources import ROOT

ABSENT = {
    *("numba", "llvmlite", "greenlet", "scipy", "sklearn", "torch", "threadpoolctl", "pyarrow", "pandas"),
    *("streamlit", "plotly", "rich", "click", "jinja2", "platformdirs"),
    *("fcntl", "resource", "termios", "_multiprocessing", "_posixshmem", "_posixsubprocess", "ssl", "sqlite3", "lzma"),
}


class Refuse(MetaPathFinder):
    """Refuses to import what is absent."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.split(".")[0] in ABSENT:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def measure(experiments: list[dict]) -> list[dict[str, Any]]:
    """Return status, notes, losses and their virtual times of a run of each experiment, or its refusal."""
    from experiments.execution.run import run
    from experiments.specification.experiment import Experiment

    rows = []
    for settings in experiments:
        made = run(Experiment(**settings))
        columns = {name: made.losses[name].tolist() for name in ("rank", "loss", "seconds")}
        rows.append({"status": made.status, "notes": list(made.notes), **columns, "end": made.trace.seconds()})
    return rows


def measure_bare(experiments: list[dict]) -> list[dict[str, Any]]:
    """Return what `measure` returns in a bare Python."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tests.bare_python"]
    process = subprocess.run(
        command, input=json.dumps(experiments), capture_output=True, text=True, cwd=ROOT, env=environment, check=False
    )
    assert not process.returncode, process.stderr
    return json.loads(process.stdout)


if __name__ == "__main__":
    for name in [name for name in sys.modules if name.split(".")[0] in ABSENT]:
        del sys.modules[name]
    sys.meta_path.insert(0, Refuse())
    del os.fork
    json.dump(measure(json.load(sys.stdin)), sys.stdout)
