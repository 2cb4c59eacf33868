"""This machine as it was fitted, stored next to the runs; `measure/fit.py` measures it.

`--device here --network here` put its numbers into the experiment, which then means the same on every machine.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from installation import home

NAME = "here"
STARVED = (
    0.1  # of the measuring time, above which the machine was too busy; a quiet one has 2 to 4 %, a busy one had 65 %
)
SPREAD = 0.25  # of the median of rounds, between their quartiles; a quiet machine has 6 to 13 %, a busy one had 60 %


class Fit(BaseModel):
    """A device and a network as `parse_device` and `parse_network` read them, and how well they fit what was measured.

    kernels   name, FLOPs, bytes, s measured, s by the device
    messages  what ("message" or "all-reduce"), bytes, s measured, s by the network
    starved   share of the time in which a process that measured kernels wanted a core and had none
    spread    from the lower to the upper quartile of the rounds of a large kernel, over their median, the typical one
    anyway    use it however busy the machine was
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    network: str
    machine: str
    moment: str
    kernels: tuple[tuple[str, float, float, float, float], ...] = ()
    messages: tuple[tuple[str, float, float, float], ...] = ()
    starved: float = 0.0  # of a fit that does not tell, nothing is held against it
    spread: float = 0.0
    anyway: bool = False

    @property
    def doubt(self) -> str:
        """Return, in a sentence, why this fit must not be used and what to do; "" if it may be."""
        if self.anyway or (self.starved <= STARVED and self.spread <= SPREAD):
            return ""
        return (
            f"this machine was busy when it was fitted: its processes wanted a core and had none for "
            f"{100 * self.starved:.0f} % of the time, and rounds differed by {100 * self.spread:.0f} %; stop what else "
            f"runs and fit again with lockstep fit, or add --anyway."
        )


def place() -> Path:
    """Return the file."""
    return home() / "here.json"


def load() -> Fit | None:
    """Return the last fit; None if there is none, or none that this version can read."""
    try:
        return Fit.model_validate_json(place().read_bytes())
    except (OSError, ValidationError):
        return None


def trusted() -> Fit | None:
    """Return the last fit if the machine was quiet enough for it to be used."""
    fit = load()
    return fit if fit and not fit.doubt else None


def save(fit: Fit) -> Path:
    """Keep `fit` instead of the last one, whole or not at all. OSError if that is impossible."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".here-", delete=False) as part:
        part.write(fit.model_dump_json(indent=1))
        part.flush()
        os.fsync(part.fileno())
    os.replace(part.name, path)
    return path


def resolved(kind: str, text: str) -> str:
    """Return `text`, or this machine's "device" or "network" in numbers if it is "here".

    ValueError if it was not fitted, or was busy then.
    """
    if text != NAME:
        return text
    fit = load()
    if fit is None:
        raise ValueError(f"there is no {kind} here: this machine was not fitted yet; run lockstep fit.")
    if fit.doubt:
        raise ValueError(f"{kind}: {fit.doubt}")
    return getattr(fit, kind)
