"""The fit of this machine, stored next to the runs; `measure/fit.py` measures it.

`--device here --network here` copies its numbers into the experiment, which then means the same on every machine.
"""

import os
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from installation import home

NAME = "here"
# share of the measuring time; a quiet machine has 2 to 4 %, a busy one had 65 %
STARVED = 0.1
# quartile range of the rounds over their median; a quiet machine has 6 to 13 %, a busy one had 60 %
SPREAD = 0.25


class Fit(BaseModel):
    """A device and a network, as `parse_device` and `parse_network` read them, and how well they fit the measurements.

    kernels   name, FLOPs, bytes, s measured, s predicted by the device
    messages  what ("message" or "all-reduce"), bytes, s measured, s predicted by the network
    script_device, script_network   the same for scripts of torch.distributed; see `cluster.script_device`
    programs  name, s measured, s predicted by the device, for the programs to which they were fitted
    starved   share of the time in which a process that measured kernels waited for a core
    spread    quartile range of the rounds of a large kernel, divided by their median, for the typical kernel
    anyway    use it even if the machine was busy
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: str
    network: str
    machine: str
    moment: str
    kernels: tuple[tuple[str, float, float, float, float], ...] = ()
    messages: tuple[tuple[str, float, float, float], ...] = ()
    script_device: str = ""  # a fit without these is accepted, except for scripts
    script_network: str = ""
    programs: tuple[tuple[str, float, float], ...] = ()
    starved: float = 0.0  # a fit without this figure is accepted
    spread: float = 0.0
    anyway: bool = False

    @property
    def doubt(self) -> str:
        """A sentence on why this fit cannot be used and what to do, or "" if it can be used."""
        if self.anyway or (self.starved <= STARVED and self.spread <= SPREAD):
            return ""
        return (
            "this machine was busy when it was measured: its processes waited for a CPU core for "
            f"{100 * self.starved:.0f} % of the time, and rounds differed by {100 * self.spread:.0f} %; stop other "
            "programs and run lockstep fit again, or add --anyway."
        )


def place() -> Path:
    return home() / "here.json"


def load() -> Fit | None:
    """Return the last fit, or None if there is none that this version can read."""
    try:
        return Fit.model_validate_json(place().read_bytes())
    except (OSError, ValidationError):
        return None


def trusted_fit() -> Fit | None:
    """Return the last fit if the machine was quiet enough during it, else None."""
    fit = load()
    return fit if fit and not fit.doubt else None


def save(fit: Fit) -> Path:
    """Replace the stored fit by `fit`, atomically, and return the file. Raise OSError if that is impossible."""
    path = place()
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".here-", delete=False) as part:
        part.write(fit.model_dump_json(indent=1))
        part.flush()
        os.fsync(part.fileno())
    os.replace(part.name, path)
    return path


def resolve_here(kind: str, text: str, for_scripts: bool = False) -> str:
    """Return `text`, or the numbers of this machine's "device" or "network" if `text` is "here".

    Raise ValueError if there is no fit, if the machine was busy during it, or if it does not cover scripts.
    """
    if text != NAME:
        return text
    fit = load()
    if fit is None:
        raise ValueError(
            f"{kind}: 'here' needs a measurement of this machine, and there is none yet; run lockstep fit."
        )
    if fit.doubt:
        raise ValueError(f"{kind}: {fit.doubt}")
    if for_scripts and not fit.script_device:
        raise ValueError(
            f"{kind}: this machine was measured without scripts, by an older version; run lockstep fit again."
        )
    return getattr(fit, f"script_{kind}" if for_scripts else kind)
