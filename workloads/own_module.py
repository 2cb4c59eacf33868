"""Own module: your torch network, from a Python file, with your data.

    net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10))
    loss = nn.functional.cross_entropy
    train, test = (x, y), (x_test, y_test)

The file is executed. Anybody who can type a command can run Python anyway, so the command line stores such files next
to the runs and executes them (`allow_folder`). Everywhere else, above all on a server, this is disabled unless
$LOCKSTEP_MODULES names a folder. Only files that `lockstep add FILE.py` or the workbench put there are executed. A file
is stored under a name with a hash of its content, which is checked before it is executed. An experiment that names it
is therefore reproducible, and a changed file is a new one. Random generators are seeded first.
`workloads/torch_module.py` describes how the network becomes a workload.
"""

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

from kernels import meter_kernels
from knobs import knob
from workloads.workload import DataKnobs

MOST_BYTES = 1_000_000
TRIED = 2  # number of samples on which a network is tried before training; a single one would have no variance
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
"""A file that can be trained without changes."""


class Settings(DataKnobs):
    """The settings: the file that defines the network."""

    net: str = knob("", "name under which your network's file was stored when you added it", max_length=100)

    @property
    def numbers(self) -> float:
        """Infinity, since what a file does is unknown until it has been executed."""
        return math.inf


def folder() -> Path | None:
    """Return the folder of the files, or None if own modules are disabled."""
    return Path(os.environ[SETTING]).expanduser() if os.environ.get(SETTING) else None


@contextmanager
def allow_folder(place: Path) -> Iterator[None]:
    """Allow files of the folder `place` to be executed in the block, and in processes started there.

    $LOCKSTEP_MODULES takes precedence if it is set: it names another folder or, if it is empty, none.
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
    """Store `content`, and return its new name, made from `file`. Raise ValueError if it is invalid or not allowed."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file} has {len(content):,} bytes; use a Python file of at most {MOST_BYTES:,}.")
    try:
        compile(content, file, "exec")
        missing = [name for name in WANTED if name not in defined_names(content)]
    except (SyntaxError, ValueError, RecursionError) as error:
        raise ValueError(f"{file} is not valid Python: {' '.join(str(error).split())[:200]}.") from None
    if missing:
        raise ValueError(f"{file} does not define {', '.join(missing)}; {SHOULD}.")
    stem = re.sub(r"\W", "_", Path(file).stem, flags=re.ASCII)[:40] or "net"
    name = f"{stem}_{hashlib.sha256(content).hexdigest()[:8]}"
    _allowed_folder().mkdir(parents=True, exist_ok=True)
    (_allowed_folder() / f"{name}.py").write_bytes(content)
    return name


def defined_names(content: bytes) -> set[str]:
    """Return the names that a Python file defines anywhere, or imports, including all WANTED if it imports *.

    The file is parsed, not executed. Raise SyntaxError or ValueError if it is not valid Python.
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
    """Return the title of the network stored as `name`, such as "mynet" for "mynet_0f9a2c11"."""
    return name.rpartition("_")[0] or name


def build(settings: Settings, dtype=np.float32):
    """Return the workload. Raise ValueError if own modules are disabled or the file cannot be trained."""
    from workloads.torch_module import TorchModule

    path = _stored_file(settings.net)
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
    except SystemExit as error:  # from a script that parses arguments, or exits when it is done
        raise ValueError(
            f"own_module: {settings.net}: the file ends the program (exit code {error.code}); it is run without "
            f"arguments and should only define {', '.join(WANTED)}."
        ) from None
    except Exception as error:  # a user's file may raise anything
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        raise ValueError(f"own_module: {settings.net}: {kind}{' '.join(str(error).split())[:300]}") from None


def _allowed_folder() -> Path:
    place = folder()
    if place is None:
        raise ValueError(
            f"own_module: disabled, because it executes Python files; on your own machine, set {SETTING} to the folder "
            "that holds them."
        )
    return place


def _stored_file(name: str) -> Path:
    place = _allowed_folder()
    if not name:
        add = "lockstep add FILE.py"
        raise ValueError(f"own_module: no file was given; add one with {add}.")
    path = place / f"{name}.py"
    if not re.fullmatch(r"\w{1,60}_[0-9a-f]{8}", name, flags=re.ASCII) or not path.is_file():
        raise ValueError(f"own_module: there is no file {name[:60]!r} in {place}; add it again.")
    if hashlib.sha256(path.read_bytes()).hexdigest()[:8] != name[-8:]:
        raise ValueError(f"own_module: {name} has changed since it was added; add it again.")
    return path


def _seed() -> None:
    """Seed all random generators before the user's file runs, so that every rank gets the same network and data.

    The file may set its own seeds. Ranks started by torchrun or SLURM, and replays, are separate processes and would
    otherwise differ.
    """
    import torch

    random.seed(0)
    np.random.seed(0)
    torch.manual_seed(0)


def _arrays(name: str, pair) -> tuple:
    """Return a pair (x, target) of arrays or tensors as NumPy arrays. Raise ValueError if `pair` is not such a pair."""
    import torch

    try:
        x, target = (part.detach().cpu().numpy() if torch.is_tensor(part) else np.asarray(part) for part in pair)
        fits = len(x) == len(target) > 0 and x.dtype.kind in "biuf" and target.dtype.kind in "biuf"
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} has the type {type(pair).__name__}; it should be a pair (x, target) of arrays or tensors."
        ) from None
    if not fits:
        raise ValueError(
            f"{name} has an x of {_describe(x)} and a target of {_describe(target)}; it should have numbers, and the "
            "same number of samples and targets, at least one."
        )
    return x, target


def _describe(array: np.ndarray) -> str:
    return f"shape {array.shape} and type {array.dtype}"


def _try(few) -> None:
    """Try a workload of a few samples once, so that errors in net and loss are raised here and not during a run."""
    import torch

    with meter_kernels(None), torch.random.fork_rng(devices=[]):  # so that a dropout draws the same numbers afterwards
        w = few.start()
        few.gradient(w, few.batch(np.arange(few.samples)))
        few.evaluate(w)
