"""A mutant: an algorithm module with one mistake, the experiment that shows it, and the questions about it.

A mutant is an entry of mutants.toml:

    chapter                 the chapter that explains the background
    module, old, new        the text to replace, which occurs once in the module, and its replacement
    at                      texts of the lines that are the right answer; each occurs once in the listing
    shown                   functions and classes of the module in the listing; by default all roles
    experiment              settings of the experiment, without the seed
    shows, factor           a quantity of the run, and the smallest factor by which the mutant changes it
    curves                  quantities to plot next to the loss
    mechanism, distractors  keys of the file's table `mechanism`
    look, why               what to look at; the explanation
"""

import ast
import importlib
import inspect
import io
import random
import tokenize
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from algorithms import compression
from algorithms.parts import error_feedback
from experiments.execution.run import run as run_experiment
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment

FILE = Path(__file__).parent / "mutants.toml"
DECLARED = ("Settings", "check", "elements_sent", "notes", "servers", "restartable", "data_shards")
"""What a module declares next to its roles; listings omit it."""


@dataclass(frozen=True)
class Mechanism:
    """A kind of mistake, and the symptom that it causes in a run."""

    key: str
    says: str
    sign: str


@dataclass(frozen=True)
class Mutant:
    """One mutant. The module's docstring describes its fields."""

    name: str
    module: str
    old: str
    new: str
    at: tuple[str, ...]
    chapter: str
    difficulty: int
    experiment: dict[str, Any]
    shows: str
    factor: float
    mechanism: str
    distractors: tuple[str, ...]
    look: str
    why: str
    shown: tuple[str, ...] = ()
    curves: tuple[str, ...] = field(default=())

    @property
    def source(self) -> str:
        """The source code of the mutated module. Raise ValueError unless the text to replace occurs in the module
        exactly once.
        """
        text = inspect.getsource(importlib.import_module(self.module))
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.name}: {self.old!r} occurs {found} times in {self.module}; choose a "
                             "text that occurs once.")  # fmt: skip
        return text.replace(self.old, self.new)

    @property
    def listing(self) -> list[str]:
        """The source lines that the reader sees: some functions and classes of the module, with the mutation and
        without comments.
        """
        text = without_comments(self.source)
        wanted = [node for node in ast.parse(text).body
                  if isinstance(node, ast.FunctionDef | ast.ClassDef)
                  and (node.name in self.shown if self.shown else node.name not in DECLARED)]  # fmt: skip
        lines = text.splitlines()
        blocks = ["\n".join(lines[node.lineno - 1 : node.end_lineno]) for node in wanted]
        return "\n\n\n".join(blocks).splitlines()

    @property
    def lines(self) -> list[int]:
        """The numbers of the wrong lines in the listing, counted from 1."""
        return [number for number, line in enumerate(self.listing, 1) if any(text in line for text in self.at)]

    def choices(self, seed: int = 0) -> list[Mechanism]:
        """Return the right mechanism and the distractors, in an order that depends on the seed."""
        keys = [self.mechanism, *self.distractors]
        return [mechanisms()[key] for key in random.Random(f"{seed} {self.name}").sample(keys, len(keys))]

    def healthy(self, seed: int = 0) -> Run:
        """Run the experiment with the catalogue's unchanged algorithm, and return the Run."""
        return run_experiment(self._experiment(seed))

    def run_mutant(self, seed: int = 0) -> Run:
        """Run the same experiment with the mutant, and return the Run."""
        experiment = self._experiment(seed)
        plain = experiment.model_copy(update={"compression": "none", "coding": {}})
        return run_experiment(plain, worker_override=self._worker(experiment))

    def _experiment(self, seed: int) -> Experiment:
        return Experiment.of({**self.experiment, "seed": seed})

    def _worker(self, experiment: Experiment) -> Callable[[Any, Any, Any], Any]:
        """Return the program that every rank runs: the algorithm, with the mutated module in place of the original."""
        changed = load_module(self.module, self.source)
        if hasattr(changed, "ALGORITHM"):
            return changed.ALGORITHM.worker
        if experiment.compression != "none":
            attach = getattr(changed, "attach", error_feedback.attach)
            declared = getattr(changed, "COMPRESSION", compression.find(experiment.compression))
            return with_compression(experiment, attach, declared)
        return rebuilt(experiment.algorithm, importlib.import_module(self.module), changed).ALGORITHM.worker


@cache
def _read() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(FILE.read_text("utf-8"))


@cache
def mechanisms() -> dict[str, Mechanism]:
    """Return {key: Mechanism} for all kinds of mistakes."""
    return {key: Mechanism(key, **values) for key, values in _read()["mechanism"].items()}


@cache
def mutants() -> tuple[Mutant, ...]:
    """Return all mutants in the order of their difficulty, the easy ones first."""
    made = [Mutant(**{name: tuple(value) if isinstance(value, list) else value for name, value in one.items()})
            for one in _read()["mutant"]]  # fmt: skip
    return tuple(sorted(made, key=lambda one: one.difficulty))


def find(name: str) -> Mutant:
    """Return the mutant with this name. Raise ValueError if there is none."""
    for one in mutants():
        if one.name == name:
            return one
    raise ValueError(f"there is no mutant {name[:60]!r}; choose one of {', '.join(one.name for one in mutants())}.")


def load_module(name: str, source: str) -> ModuleType:
    """Run `source` as a new module called `name` and return that module. An imported module of the same name stays
    unchanged.
    """
    module = ModuleType(name)
    exec(compile(source, f"<mutant of {name}>", "exec"), vars(module))
    return module


def rebuilt(algorithm: str, part: ModuleType, changed: ModuleType) -> ModuleType:
    """Return a copy of the algorithm's module in which everything that it imports from `part` comes from `changed`
    instead.
    """
    import algorithms

    module = algorithms.module(algorithm)
    copy = load_module(module.__name__, inspect.getsource(module))
    for name, value in list(vars(copy).items()):
        if name in vars(part) and value is vars(part)[name] and hasattr(value, "__module__"):
            setattr(copy, name, getattr(changed, name))
    return copy


def with_compression(experiment: Experiment, attach: Callable, declared: Any) -> Callable[[Any, Any, Any], Any]:
    """Return a program that runs the algorithm on a communicator with the compression `declared`."""
    coding = declared.Settings(**experiment.coding)

    def worker(comm, task, s):
        servers = experiment.servers if experiment.method.compresses == "push" else 0
        place = task.workload.tensors, experiment.seed, servers, task.workload.dtype
        return experiment.method.worker(attach(comm, declared, coding, *place), task, s)

    return worker


def without_comments(source: str) -> str:
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
    return "\n".join(lines)
