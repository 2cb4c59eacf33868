"""This machine as it was fitted, kept in the user's own folder; `fit.py` measures it.

`--device here --network here` put its numbers into the experiment, which then means the same on every machine.
LOCKSTEP_HOME names another folder.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

NAME = "here"


class Fit(BaseModel):
    """A device and a network as `parse_device` and `parse_network` read them, and how well they fit what was measured.

    kernels   name, FLOPs, bytes, s measured, s by the device
    messages  what ("message" or "all-reduce"), bytes, s measured, s by the network
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    network: str
    machine: str
    moment: str
    kernels: tuple[tuple[str, float, float, float, float], ...] = ()
    messages: tuple[tuple[str, float, float, float], ...] = ()


def place() -> Path:
    """Return the file."""
    return Path(os.environ.get("LOCKSTEP_HOME") or _settings_folder()) / "here.json"


def _settings_folder() -> Path:
    """Return the folder in which this system keeps a user's settings of a program."""
    if sys.platform == "win32":
        return Path(os.environ.get("APPDATA") or Path.home(), "lockstep")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "lockstep"
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config", "lockstep")


def load() -> Fit | None:
    """Return the last fit; None if there is none, or none that this version can read."""
    try:
        return Fit.model_validate_json(place().read_bytes())
    except (OSError, ValidationError):
        return None


def save(fit: Fit) -> Path:
    """Keep `fit` instead of the last one, whole or not at all. OSError if that is impossible."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=".here-", delete=False) as part:
        part.write(fit.model_dump_json(indent=1))
    os.replace(part.name, path)
    return path


def resolved(kind: str, text: str) -> str:
    """Return `text`, or this machine's "device" or "network" in numbers if it is "here". ValueError if not fitted."""
    if text != NAME:
        return text
    fit = load()
    if fit is None:
        raise ValueError(f"there is no {kind} here: this machine was not fitted yet; run python -m experiments fit.")
    return getattr(fit, kind)
