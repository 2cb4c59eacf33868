"""Lockstep from Python: run an experiment, sweep over settings, look at what was recorded.

    import lockstep

    r = lockstep.run("easgd", workers=8, network="10GbE")      # r alone in a cell is its summary
    r.show()                                                    # its curves and its timeline
    lockstep.sweep("sync_sgd", workers=[1, 2, 4, 8])           # a table; lists are swept
    lockstep.algorithms()                                       # everything there is to run

An algorithm of your own is a function that every rank runs, `worker(comm: lockstep.Comm, task, settings)`:

    lockstep.run("sync_sgd", worker=mine)

A script for torchrun, run with `lockstep script`, logs values with `lockstep.log(loss=0.3, accuracy=0.9)`.

Lockstep's packages have everyday names, such as `experiments` and `cluster`. This module lets them be found next to
itself, whatever files of these names are in the user's folder.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cluster.comm import Comm
    from experiments.cli.notebook import run, sweep
    from experiments.specification.experiment import Experiment

__all__ = ["Comm", "Experiment", "algorithms", "log", "run", "sweep"]
FROM = {
    "run": "experiments.cli.notebook",
    "sweep": "experiments.cli.notebook",
    "Experiment": "experiments.specification.experiment",
    "Comm": "cluster.comm",
}
"""The module of each name, imported at first use."""
HERE = Path(__file__).resolve().parent
ROOMS = ("experiments", "theory", "algorithms", "cluster", "workloads", "kernels", "tracing", "knobs", "installation")
"""The packages and modules that a run imports. The command line adds the textbook and the workbench."""


def __getattr__(name: str) -> Any:
    if name not in FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}; it has {', '.join(__all__)}.")
    return getattr(importlib.import_module(FROM[name]), name)


def __dir__() -> list[str]:
    return __all__


def algorithms() -> dict[str, str]:
    """Return the title of every algorithm by its name, in teaching order."""
    from experiments.specification.catalogue import ALGORITHMS

    return {name: entry.title for name, entry in ALGORITHMS.items()}


def log(**values: float) -> None:
    """Record values of this rank, with their step and virtual time, in a script that `lockstep script` runs.

    Values are numbers, or tensors of one element; raise TypeError for others. On a real cluster this does nothing, and
    does not even read a tensor from its GPU.
    """
    if simulated := sys.modules.get("cluster.torch.logged_values"):
        simulated.log_values(values)


def main() -> int:
    """Run the `lockstep` command line, and return its exit code."""
    find_here(*ROOMS, "lessons", "app")
    from app.__main__ import main

    return main()


class Rooms:
    """A module finder, for sys.meta_path, that finds the packages `names` next to this file, not on sys.path."""

    def __init__(self, names: Sequence[str]):
        self.names = names

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        """Return the spec of a module of ours, or None for any other."""
        return PathFinder.find_spec(name, [str(HERE)]) if name in self.names else None


def find_here(*names: str) -> None:
    """Make the packages of these names next to this file importable.

    Raise ImportError if another module was already imported under one of them.
    """
    for name in names:
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if name in sys.modules and not (spec and _is_here(spec)):
            raise ImportError(
                f"{name} was already imported from {_place(spec)}, and Lockstep has a package of that name; "
                "import lockstep first, or rename yours."
            )
    sys.meta_path.insert(0, Rooms(names))


def _is_here(spec: ModuleSpec) -> bool:
    return any(Path(place).resolve().parent == HERE for place in _places(spec))


def _places(spec: ModuleSpec) -> list[str]:
    """Return the folders of a package, or the file of a module."""
    return list(spec.submodule_search_locations or filter(None, [spec.origin]))


def _place(spec: ModuleSpec | None) -> str:
    return next(iter(_places(spec)), "memory") if spec else "memory"


def _warn_of_namesakes() -> None:
    """Warn about the user's modules, next to the script or in the current folder, that `import` no longer finds."""
    folder = Path(sys.path[0] or ".").resolve()
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    found = [folder / f"{name}.py" for name in ROOMS if (folder / f"{name}.py").is_file()]
    found += [folder / name for name in ROOMS if any((folder / name).glob("*.py"))]
    mine = [str(path) for path in found if not (script and Path(script).resolve() == path)]
    if mine and folder != HERE:
        warnings.warn(
            "`import` now finds Lockstep's packages instead of your modules with the same names: "
            f"{', '.join(mine)}; rename yours to import both.",
            stacklevel=3,
        )


find_here(*ROOMS)
if __name__ == "__main__":
    sys.exit(main())
_warn_of_namesakes()
