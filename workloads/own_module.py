"""Own module: a torch network of your own, from a Python file of yours, with your data.

    net = nn.Sequential(nn.Linear(64, 32), nn.GELU(), nn.Linear(32, 10))
    loss = nn.functional.cross_entropy
    train, test = (x, y), (x_test, y_test)

The file is run, so this is for your own machine: it is off unless $LOCKSTEP_MODULES names a folder, and only files in
there are run, which `python -m experiments add FILE.py` or the workbench puts there. A file is kept under a name with
a hash of its content, which is compared before it is run: so an experiment that names it is repeatable, and a file
that was changed is a new one. What becomes of the network is said in `workloads/torch_module.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import runpy
from pathlib import Path

import numpy as np

from knobs import Knobs, knob

MOST_BYTES = 1_000_000
SETTING = "LOCKSTEP_MODULES"
WANTED = ("net", "loss", "train", "test")


class Settings(Knobs):
    """Which file."""

    net: str = knob("", "the file, by the name that it got when it was added", max_length=100)


def folder() -> Path | None:
    """Where the files are, None where this is off."""
    return Path(os.environ[SETTING]).expanduser() if os.environ.get(SETTING) else None


def save(content: bytes, file: str) -> str:
    """Keep a file that was called `file`; gives its new name. ValueError in one sentence if it cannot be kept."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file} has {len(content):,} bytes; a Python file has at most {MOST_BYTES:,}.")
    try:
        compile(content, file, "exec")
    except (SyntaxError, ValueError) as error:
        raise ValueError(f"{file} is no Python: {' '.join(str(error).split())[:200]}.") from None
    stem = re.sub(r"\W", "_", Path(file).stem, flags=re.ASCII)[:40] or "net"
    name = f"{stem}_{hashlib.sha256(content).hexdigest()[:8]}"
    _allowed().mkdir(parents=True, exist_ok=True)
    (_allowed() / f"{name}.py").write_bytes(content)
    return name


def build(settings: Settings, dtype=np.float32):
    """The workload. ValueError in one sentence if it is off, or the file is not what it should be."""
    from workloads.torch_module import TorchModule

    path = _kept(settings.net)
    try:
        made = runpy.run_path(str(path))
        missing = [name for name in WANTED if name not in made]
        if missing:
            raise ValueError(f"it does not define {', '.join(missing)}; it should define {', '.join(WANTED)}.")
        net, loss, train, test = (made[name] for name in WANTED)
        return TorchModule(net, loss, _arrays(train), _arrays(test), name="own_module", dtype=dtype)
    except Exception as error:  # a file of the reader's may do anything
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


def _kept(name: str) -> Path:
    place = _allowed()
    if not name:
        raise ValueError("own_module: no file was named; add one with python -m experiments add FILE.py.")
    path = place / f"{name}.py"
    if not re.fullmatch(r"\w{1,60}_[0-9a-f]{8}", name, flags=re.ASCII) or not path.is_file():
        raise ValueError(f"own_module: there is no file {name[:60]!r} in {place}; add it once more.")
    if hashlib.sha256(path.read_bytes()).hexdigest()[:8] != name[-8:]:
        raise ValueError(f"own_module: {name} was changed since it was added; add it once more.")
    return path


def _arrays(pair) -> tuple:
    """(x, target) as NumPy arrays, whatever they were."""
    x, target = pair
    return tuple(part.detach().cpu().numpy() if hasattr(part, "detach") else np.asarray(part) for part in (x, target))
