"""ScriptExperiment: a script for torchrun and the machines it is simulated on, i.e. everything that determines its run.

Settings are numbers and texts, as the command line takes them; they are checked without importing torch.
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from cluster.devices import DEVICES
from cluster.faults import JITTERS, Faults, parse_crash, parse_pause, parse_slow
from cluster.network import NETWORKS, parse_network
from cluster.script_device import parse_script_device
from cluster.script_source import read_source
from experiments.specification.this_machine import resolve_here
from knobs import match_name

if TYPE_CHECKING:
    from cluster.torch.machines import SimulatedMachines

MOST_RANKS = 1024
OF_TORCH = ("torch", "numpy", "cuda", "triton")
"""Modules that torch imports by name; it imports `cuda` and `triton` only if they are installed."""
CLOCKS = "roofline", "measured"
RANGES = {
    "ranks": (1, MOST_RANKS),
    "per_node": (1, 10**6),
    "seed": (0, 2**32),
    "eager": (0, 10**15),
    "steps": (1, 10**12),
}
"""The least and the largest value of each numeric setting."""


def check_name(file: str) -> None:
    """Raise ValueError if torch would import a script with this name instead of a library."""
    stem = Path(file).stem
    if stem in OF_TORCH:
        raise ValueError(
            f"{file} has the name of the module {stem}, which torch imports: Python would import the script instead. "
            f"Rename it, e.g. to train_{stem}.py."
        )


@dataclass(frozen=True)
class ScriptExperiment:
    """A script, its arguments and its machines. Raise ValueError for the first invalid setting.

    source      the text of the script
    path        its file: modules of its folder can be imported, and messages name it
    arguments   the script's own
    per_node    ranks on a node
    slow, pause, crash   "5:4", "1:0.5-0.8", "3:0.4", as for experiments; ranks cannot restart
    seed        of the jitter
    eager       bytes up to which a send does not wait for its receiver
    clock       "roofline", or "measured", which is not repeatable
    steps       steps of its optimizer after which a rank ends; None for no limit
    """

    source: str
    path: str
    arguments: tuple[str, ...] = ()
    ranks: int = 4
    network: str = "10GbE"
    per_node: int = 1
    device: str = "laptop"
    slow: str = ""
    pause: str = ""
    crash: str = ""
    jitter: str = "none"
    seed: int = 0
    eager: int = 0
    clock: str = "roofline"
    steps: int | None = None

    cluster: ClassVar[str] = "simulated"
    servers: ClassVar[int] = 0
    rank_memory: ClassVar[None] = None
    """Values that an Experiment may choose, but a script may not."""

    def __post_init__(self):
        equal = {  # equal settings have equal texts
            "arguments": tuple(self.arguments),
            "network": resolve_here("network", match_name(self.network, NETWORKS), for_scripts=True),
            "device": resolve_here("device", match_name(self.device, DEVICES), for_scripts=True),
            "jitter": match_name(self.jitter, JITTERS),
            **{name: getattr(self, name).strip() for name in ("slow", "pause", "crash")},
        }
        for name, value in equal.items():
            object.__setattr__(self, name, value)
        self._check()

    def _check(self) -> None:
        for name, (least, most) in RANGES.items():
            value = getattr(self, name)
            if value is not None and not least <= value <= most:
                raise ValueError(f"{name}: {value} is out of range; use {least} to {most:,}.")
        for name, known in (("jitter", [*JITTERS]), ("clock", CLOCKS)):
            if getattr(self, name) not in known:
                some = f"{', '.join(known[:-1])} or {known[-1]}"
                raise ValueError(f"{name}: there is no {getattr(self, name)!r}; use {some}.")
        parse_network(self.network), parse_script_device(self.device)
        parse_slow(self.slow, self.ranks), parse_pause(self.pause, self.ranks)
        if any(back < math.inf for _, back in parse_crash(self.crash, self.ranks).values()):
            raise ValueError(
                "crash: ranks that run torch cannot restart; give the time of the crash only, as in 3:0.4."
            )

    @classmethod
    def read(cls, path: str | Path, arguments: Sequence[str] = (), **settings: Any) -> ScriptExperiment:
        """Return the experiment of the script in this file.

        Raise ValueError if the file cannot be read, or has the name of a module that torch imports.
        """
        check_name(Path(path).name)
        return cls(read_source(path), str(Path(path).resolve()), tuple(map(str, arguments)), **settings)

    @property
    def name(self) -> str:
        """The name of the script's file."""
        return Path(self.path).name

    @property
    def is_repeatable(self) -> bool:
        """True if the same experiment gives the same run, bit for bit.

        On a device with a price for Python, runs with DTensor, such as FSDP2, differ by a few calls.
        """
        return self.clock != "measured" and not parse_script_device(self.device).is_measured

    @property
    def slow_ranks(self) -> dict[int, float]:
        """The ranks that compute slower or faster than usual, each with its factor."""
        return {rank: factor for rank, factor in parse_slow(self.slow, self.ranks).items() if factor != 1}

    @property
    def machines(self) -> SimulatedMachines:
        """The simulated machines on which the script runs."""
        from cluster.torch.machines import SimulatedMachines  # with torch, which takes seconds to import

        faults = Faults(
            slow=parse_slow(self.slow, self.ranks),
            jitter=JITTERS[self.jitter],
            pause=parse_pause(self.pause, self.ranks),
            crash={rank: at for rank, (at, _) in parse_crash(self.crash, self.ranks).items()},
            seed=self.seed,
        )
        network = parse_network(self.network).on_nodes(self.per_node)
        return SimulatedMachines(
            self.ranks, network, self.device, faults, self.eager, self.clock, self.steps or math.inf
        )

    def changes(self) -> dict[str, Any]:
        """Return the number of ranks, and the settings of the machines that are not at their defaults, by name."""
        defaults = {one.name: one.default for one in fields(self)}
        given = {name: getattr(self, name) for name in SETTINGS if getattr(self, name) != defaults[name]}
        return {"ranks": self.ranks, **given}

    def command(self) -> str:
        """Return the command line that runs the script again, with the current content of its file."""
        words = ["lockstep", "script", self.path]
        for name, value in self.changes().items():
            words += [f"--{name.replace('_', '-')}", str(value)]
        return shlex.join([*words, *(["--", *self.arguments] if self.arguments else [])])

    def key(self) -> str:
        """Return 16 hexadecimal digits that identify this experiment. They are equal if script, file name, arguments
        and machines are equal.
        """
        text = json.dumps({**asdict(self), "path": self.name})
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


SETTINGS = tuple(one.name for one in fields(ScriptExperiment) if one.name not in ("source", "path", "arguments"))
"""The settings of the machines, by name."""
