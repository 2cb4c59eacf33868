"""Own module: your torch network, from a Python file, with your data.

    net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10))
    loss = nn.functional.cross_entropy
    train, test = (x, y), (x_test, y_test)

The file is executed. Anybody who can type a command can run Python anyway, so commands keep such files beside the runs
and execute them (`allowed`). Everywhere else, above all on a server, this is off unless $LOCKSTEP_MODULES names a
folder. Only files that `lockstep add FILE.py` or the workbench put there are executed. A file is stored
under a name with a hash of its content, which is checked before it is executed: so an experiment that names it is
reproducible, and a changed file is a new one. Generators of random numbers are seeded before. How the network becomes a
workload is described in `workloads/torch_module.py`.
"""

from __future__ import annotations

import ast
import hashlib
import math
import os
import random
import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from kernels import metered
from knobs import knob
from workloads.workload import DataKnobs

MOST_BYTES = 1_000_000
TRIED = 2  # samples on which a network is tried before it is trained; one would have no variance
SETTING = "LOCKSTEP_MODULES"
WANTED = ("net", "loss", "train", "test")
SHOULD = (
    "it should define net, loss, train, test: a torch module, a function of its output and target, and two pairs of "
    "(samples, targets)"
)
EXAMPLE = '''"""A network of your own for Lockstep: change what you like, but define net, loss, train and test."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(1200, 2)  # points on the plane: (samples, features)
y = (x[:, 0] * x[:, 1] > 0).long()  # in which quadrants they lie: the class of each

net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))
loss = nn.functional.cross_entropy
train, test = (x[:1000], y[:1000]), (x[1000:], y[1000:])
'''
"""A file that can be trained as it is."""


class Settings(DataKnobs):
    """The file of the network."""

    net: str = knob("", "name under which your network's file was stored when you added it", max_length=100)

    @property
    def numbers(self) -> float:
        """Infinitely many: what a file does is known once it has been executed."""
        return math.inf


def folder() -> Path | None:
    """Return the folder of the files, None where this is off."""
    return Path(os.environ[SETTING]).expanduser() if os.environ.get(SETTING) else None


@contextmanager
def allowed(place: Path) -> Iterator[None]:
    """Execute files of the folder `place` during the block, also in processes that it starts.

    $LOCKSTEP_MODULES goes before it: another folder, or, where it is set and empty, none.
    """
    if SETTING in os.environ:
        yield
        return
    os.environ[SETTING] = str(place.resolve())
    try:
        yield
    finally:
        del os.environ[SETTING]


def save(content: bytes, file: str) -> str:
    """Store a file that was called `file` and return its new name; ValueError if it cannot be stored."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file} has {len(content):,} bytes; a Python file has at most {MOST_BYTES:,}.")
    try:
        compile(content, file, "exec")
        missing = [name for name in WANTED if name not in defined(content)]
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"{file} is no Python: {' '.join(str(error).split())[:200]}.") from None
    if missing:
        raise ValueError(f"{file} does not define {', '.join(missing)}; {SHOULD}.")
    stem = re.sub(r"\W", "_", Path(file).stem, flags=re.ASCII)[:40] or "net"
    name = f"{stem}_{hashlib.sha256(content).hexdigest()[:8]}"
    _allowed().mkdir(parents=True, exist_ok=True)
    (_allowed() / f"{name}.py").write_bytes(content)
    return name


def defined(content: bytes) -> set[str]:
    """Return the names that a Python file defines at any place of it, or imports; all WANTED if it imports *.

    The file is read and not executed. SyntaxError, ValueError if it is no Python.
    """
    found = set()
    for node in ast.walk(ast.parse(content)):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.alias):
            found |= {*WANTED} if node.name == "*" else {node.asname or node.name}
    return found


def title(name: str) -> str:
    """Return what the network of this name is called: "mynet_0f9a2c11" is mynet."""
    return name.rpartition("_")[0] or name


def build(settings: Settings, dtype=np.float32):
    """Return the workload; ValueError if this is off, or the file does not define what it must and can be trained."""
    from workloads.torch_module import TorchModule

    path = _stored(settings.net)
    try:
        _seed()
        made = runpy.run_path(str(path))
        missing = [name for name in WANTED if name not in made]
        if missing:
            raise ValueError(f"it does not define {', '.join(missing)}; {SHOULD}.")
        net, loss = made["net"], made["loss"]
        train, test = (_arrays(name, made[name]) for name in ("train", "test"))
        _try(TorchModule(net, loss, *(tuple(part[:TRIED] for part in pair) for pair in (train, test)), dtype=dtype))
        return TorchModule(net, loss, train, test, name="own_module", dtype=dtype)
    except SystemExit as error:  # of a script that reads options, or says that it has done its work
        raise ValueError(
            f"own_module: {settings.net}: it ends the program (exit {error.code}); it is run without options and "
            f"should only define {', '.join(WANTED)}."
        ) from None
    except Exception as error:  # a reader's file may raise anything
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"own_module: {settings.net}: {kind}{' '.join(str(error).split())[:300]}") from None


def _allowed() -> Path:
    place = folder()
    if place is None:
        raise ValueError(
            f"own_module: it is off, since it runs files; on your own machine, say with ${SETTING} in which folder "
            "they are kept."
        )
    return place


def _stored(name: str) -> Path:
    place = _allowed()
    if not name:
        add = "lockstep add FILE.py"
        raise ValueError(f"own_module: no file was named; add one with {add}.")
    path = place / f"{name}.py"
    if not re.fullmatch(r"\w{1,60}_[0-9a-f]{8}", name, flags=re.ASCII) or not path.is_file():
        raise ValueError(f"own_module: there is no file {name[:60]!r} in {place}; add it once more.")
    if hashlib.sha256(path.read_bytes()).hexdigest()[:8] != name[-8:]:
        raise ValueError(f"own_module: {name} was changed since it was added; add it once more.")
    return path


def _seed() -> None:
    """Seed what a file may draw from, unless it does so itself: its network and data are the same on every rank.

    Ranks of one machine are copies of one process, but those of torchrun and SLURM start apart, as a replay does.
    """
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def _arrays(name: str, pair) -> tuple:
    """Return (x, target) as NumPy arrays, from arrays or tensors. ValueError for what is no such pair."""
    import torch

    try:
        x, target = (part.detach().cpu().numpy() if torch.is_tensor(part) else np.asarray(part) for part in pair)
        fits = len(x) == len(target) > 0 and x.dtype.kind in "biuf" and target.dtype.kind in "biuf"
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} is of type {type(pair).__name__}; it should be a pair (x, target) of arrays or tensors."
        ) from None
    if not fits:
        raise ValueError(
            f"{name} has an x of {_said(x)} and a target of {_said(target)}; it should have numbers, and as many "
            "targets as samples, at least one."
        )
    return x, target


def _said(array: np.ndarray) -> str:
    return f"shape {array.shape} and type {array.dtype}"


def _try(few) -> None:
    """Use the workload of a few samples once: whatever is wrong with net and loss is raised here, and not in a run."""
    import torch

    with metered(None), torch.random.fork_rng(devices=[]):  # a dropout draws the same afterwards
        w = few.start()
        few.gradient(w, few.batch(np.arange(few.samples)))
        few.evaluate(w)
