"""Run an unmodified script: once per rank, each in its own `__main__`, as torchrun does.

A script that starts its ranks itself, with mp.spawn or mp.Process, is executed once (`launcher.py`).
"""

import ast
import sys
from collections.abc import Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from cluster.script_source import read_source
from cluster.torch.launch import Recorded, run
from cluster.torch.launcher import Launcher
from cluster.torch.machines import SimulatedMachines
from cluster.torch.opened_files import opened_files
from cluster.torch.process_state import own_modules

SPAWNS = {"spawn", "start_processes", "Process"}


def run_script(
    path: str | Path,
    machines: SimulatedMachines,
    arguments: Sequence[str] = (),
    text: str | None = None,
    **options: Any,
) -> Recorded:
    """Run the script on every rank, and return what it produced. `options` are those of `launch.run`.

    If `text` is given, it is run instead of the current content of the file. Raise ValueError if the file cannot be
    read or is not Python.
    """
    path = Path(path)
    code, starts_ranks = read(path, text)
    before = sys.argv
    sys.argv = [str(path), *map(str, arguments)]
    try:
        folder = str(path.resolve().parent)
        with own_modules(folder) as imported, opened_files(folder) as opened:
            if starts_ranks:
                recorded = Launcher(_main_module(path), code, machines, options).run()
            else:
                recorded = run(lambda: _execute(code), machines, main=lambda: _main_module(path), **options)
            recorded.files = tuple(sorted((imported | opened) - {str(path.resolve())}))
            return recorded
    finally:
        sys.argv = before


def read(path: Path, text: str | None = None) -> tuple[CodeType, bool]:
    """Return the compiled script, and whether it starts its ranks itself.

    Raise ValueError if it cannot be read or is not Python.
    """
    try:
        text = read_source(path) if text is None else text
        tree = ast.parse(text, str(path))
        return compile(tree, str(path), "exec", dont_inherit=True), _starts_ranks(tree)
    except SyntaxError as error:
        raise ValueError(f"{path} is not Python: {error.msg}, line {error.lineno}.") from None


def _starts_ranks(tree: ast.Module) -> bool:
    """True if the script imports multiprocessing and calls one of SPAWNS."""
    nodes = list(ast.walk(tree))
    names = [alias.name for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
    names += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    called = {_called(node.func) for node in nodes if isinstance(node, ast.Call)}
    return any("multiprocessing" in name for name in names) and bool(called & SPAWNS)


def _called(function: ast.expr) -> str:
    return getattr(function, "attr", getattr(function, "id", ""))


def _main_module(path: Path) -> ModuleType:
    module = ModuleType("__main__")
    module.__file__ = str(path)
    module.__dict__["__builtins__"] = __builtins__
    return module


def _execute(code: CodeType) -> dict[str, Any]:
    """Run the script in this rank's __main__. Return its global names, without those that every module has."""
    names = sys.modules["__main__"].__dict__
    exec(code, names)
    return {name: value for name, value in names.items() if not name.startswith("__")}
