"""Per-process state that each rank needs a copy of: random numbers, `__main__`, modules, and torch settings."""

import contextlib
import random
import sys
import threading
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.random import get_bit_generator, set_bit_generator  # type: ignore[attr-defined]
from torch.distributed.tensor import DTensor
from torch.nn import functional

from cluster.torch.process import is_library_file

DISPATCHER = DTensor._op_dispatcher
"""Its handlers are replaced inside loss_parallel and context_parallel; the latter replaces attention, too."""
FRESH = torch.Generator().manual_seed(67280421310721).get_state()  # torch's generator in a new process
REDIRECTED = [
    name for name in random.__all__ if isinstance(getattr(getattr(random, name), "__self__", None), random.Random)
]


class ProcessState:
    """One strand's copy of the state. `rank` is None for the hub, which starts from the process's current state.

    A new process seeds `random` and numpy from the operating system; a rank uses its number, so that runs can be
    repeated.
    """

    def __init__(self, rank: int | None = None, main: ModuleType | None = None):
        self.rank = rank
        self.modules: dict[str, ModuleType] = {}
        self.numpy: Any = None
        if rank is None:
            self.put_away()
            return
        self.numpy = np.random.MT19937(rank)
        self.torch, self.dtype = FRESH, torch.float32
        self.main = main or sys.modules["__main__"]
        self.handlers, self.attention = dict(DISPATCHER._custom_op_handlers), functional.scaled_dot_product_attention

    def put_away(self) -> None:
        """Save the state of the process before another strand runs."""
        self.torch, self.numpy = torch.get_rng_state(), get_bit_generator()
        self.main, self.dtype = sys.modules["__main__"], torch.get_default_dtype()
        self.handlers, self.attention = DISPATCHER._custom_op_handlers, functional.scaled_dot_product_attention
        self.modules = {name: sys.modules.pop(name) for name in OwnModules.names if name in sys.modules}

    def put_back(self) -> None:
        """Make this the state of the process."""
        sys.modules.update(self.modules)
        sys.modules["__main__"] = self.main
        torch.set_rng_state(self.torch)
        set_bit_generator(self.numpy)
        if torch.get_default_dtype() != self.dtype:
            torch.set_default_dtype(self.dtype)
        DISPATCHER._custom_op_handlers, functional.scaled_dot_product_attention = self.handlers, self.attention


class OwnModules:
    """A finder, for sys.meta_path, of the modules in the script's folder. Each rank imports its own copy of them."""

    names: ClassVar[set[str]] = set()

    def __init__(self, folder: str):
        self.folder = folder
        self.files: set[str] = set()

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Return the module's spec, or None if it is not in the folder."""
        spec = PathFinder.find_spec(name, path or [self.folder])
        origin = (spec and spec.origin) or ""
        if not origin.startswith(self.folder) or is_library_file(origin):
            return None
        OwnModules.names.add(name)
        self.files.add(origin)
        return spec


@contextlib.contextmanager
def own_modules(folder: str) -> Iterator[set[str]]:
    """Let scripts import modules from `folder`; each rank gets its own copies. Yield the files that they import.

    No compiled files are written: Python considers a .pyc current if the source's size and time in seconds match, so a
    module that is changed and run again within a second would be the old one.
    """
    finder, path, no_pyc = OwnModules(folder), sys.path[:], sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, folder)
    try:
        yield finder.files
    finally:
        sys.meta_path.remove(finder)
        sys.path[:], sys.dont_write_bytecode = path, no_pyc
        for name in OwnModules.names:
            sys.modules.pop(name, None)
        OwnModules.names.clear()


OWN = threading.local()
"""`OWN.random` is the generator of this thread's rank."""


@contextlib.contextmanager
def own_random() -> Iterator[None]:
    """Make the functions of `random` draw from `OWN.random` if the thread has one.

    Redirecting them is a hundred times as fast as swapping the 2,500 bytes of the generator's state at every switch.
    """
    before = {name: getattr(random, name) for name in REDIRECTED}

    def redirect(name: str) -> Any:
        def function(*args: Any, **options: Any) -> Any:
            mine = getattr(OWN, "random", None)
            return (getattr(mine, name) if mine else before[name])(*args, **options)

        return function

    try:
        for name in REDIRECTED:
            setattr(random, name, redirect(name))
        yield
    finally:
        for name, function in before.items():
            setattr(random, name, function)
