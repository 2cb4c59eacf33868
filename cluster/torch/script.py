"""Run an unmodified script: once per rank, each in a `__main__` of its own, as torchrun does.

A script that starts its ranks itself, with mp.spawn or mp.Process, is executed once; its ranks are what it starts.
"""

from __future__ import annotations

import ast
import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import torch.multiprocessing as mp

from cluster.torch.launch import Recorded, run
from cluster.torch.machines import SimulatedMachines
from cluster.torch.process import this
from cluster.torch.process_state import own_modules
from cluster.torch.replaced import replaced

SPAWNS = {"spawn", "start_processes", "Process"}


def run_script(
    path: str | Path, machines: SimulatedMachines, arguments: Sequence[str] = (), **options: Any
) -> Recorded:
    """Run the script on every rank. `options` are those of `launch.run`.

    Raise ValueError if the file cannot be read or is not Python.
    """
    path = Path(path)
    code, starts_ranks = read(path)
    before = sys.argv
    sys.argv = [str(path), *map(str, arguments)]
    try:
        with own_modules(str(path.resolve().parent)):
            if starts_ranks:
                return _Launcher(path, code, machines, options).run()
            return run(lambda: _execute(code), machines, main=lambda: _main_module(path), **options)
    finally:
        sys.argv = before


def read(path: Path) -> tuple[CodeType, bool]:
    """Return the compiled script, and whether it starts its ranks itself. Raise ValueError if it cannot be read."""
    try:
        text = path.read_text("utf-8")
        tree = ast.parse(text, str(path))
        return compile(tree, str(path), "exec", dont_inherit=True), _starts_ranks(tree)
    except OSError as error:
        raise ValueError(f"cannot read the script {path}: {error.strerror}; check its name.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not a text file in UTF-8; give a Python script.") from None
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
    """Run the script in this rank's __main__. Return its globals."""
    names = sys.modules["__main__"].__dict__
    exec(code, names)
    return names


class _Launcher:
    """The process that starts the ranks."""

    def __init__(self, path: Path, code: CodeType, machines: SimulatedMachines, options: dict[str, Any]):
        self._code, self._machines, self._options = code, machines, options
        self._module = _main_module(path)
        self._recorded: list[Recorded] = []
        self._started: list[_Started] = []

    def run(self) -> Recorded:
        """Run the script. Raise ValueError if it starts no ranks after all."""
        main = sys.modules["__main__"]
        sys.modules["__main__"] = self._module
        try:
            with self._in_place(), contextlib.suppress(SystemExit):
                exec(self._code, self._module.__dict__)
                self._run_started()
        finally:
            sys.modules["__main__"] = main
        if not self._recorded:
            raise ValueError(
                f"{self._module.__file__} calls mp.spawn or mp.Process somewhere, but has started no ranks; call it "
                "when the script runs, or remove the call: a script without it runs once per rank."
            )
        recorded = self._recorded[-1]
        size = len(recorded.outcome.results)
        if size != self._machines.ranks:
            note = f"the script itself starts {size} ranks, not the {self._machines.ranks} asked for"
            recorded.outcome.notes = (note, *recorded.outcome.notes)
        return recorded

    @contextlib.contextmanager
    def _in_place(self) -> Iterator[None]:
        process = self._process
        with (
            replaced(mp, spawn=self._spawn, start_processes=self._spawn, Process=process),
            replaced(multiprocessing, Process=process, get_context=lambda *_: mp),
            replaced(mp, get_context=lambda *_: mp, set_start_method=lambda *_, **__: None),
        ):
            yield

    def _spawn(self, fn: Callable, args: tuple = (), nprocs: int = 1, *_: Any, **__: Any) -> Any:
        return self._run([(fn, (rank, *args), {}) for rank in range(nprocs)])

    def _process(
        self, group: Any = None, target: Any = None, name: Any = None, args: tuple = (), kwargs: Any = None, **_: Any
    ) -> _Started:
        return _Started(self, target, tuple(args), dict(kwargs or {}))

    def start(self, process: _Started) -> None:
        self._started.append(process)

    def _run_started(self) -> None:
        """Run what was started as ranks: all of it, when the script first waits for one of them."""
        if self._started:
            calls = [(one.target, one.arguments, one.options) for one in self._started]
            self._started = []
            self._run(calls)

    join = _run_started

    def _run(self, calls: list[tuple[Callable, tuple, dict]]) -> None:
        def program() -> Any:
            function, arguments, options = calls[this().comm.rank]
            return function(*arguments, **options)

        machines = replace(self._machines, ranks=len(calls))
        self._recorded.append(run(program, machines, main=lambda: self._module, **self._options))


@dataclass
class _Started:
    """What mp.Process returns: a rank to be."""

    launcher: _Launcher
    target: Callable
    arguments: tuple
    options: dict[str, Any] = field(default_factory=dict)
    exitcode = 0

    def start(self) -> None:
        self.launcher.start(self)

    def join(self, timeout: float | None = None) -> None:
        self.launcher.join()

    def is_alive(self) -> bool:
        return False
