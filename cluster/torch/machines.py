"""The machines on which a script is simulated."""

import math
from dataclasses import dataclass

from cluster.devices import Device
from cluster.faults import NONE, Faults
from cluster.network import Network, parse_network
from cluster.script_device import parse_script_device
from cluster.torch.pricing import Measured, Pricer, Roofline
from cluster.torch.watchdog import PATIENCE

CLOCKS: dict[str, type[Pricer]] = {"roofline": Roofline, "measured": Measured}


@dataclass(frozen=True)
class SimulatedMachines:
    """The machines that a script runs on. `network` and `device` are names of presets, or values.

    `eager` is the size in bytes up to which a send does not wait for its receiver; the default, 0, is as in gloo.
    `clock` is "roofline", which prices each operation, or "measured", the time of this machine, which is not
    repeatable. A rank ends after `steps` steps of its optimizer. The run is abandoned if nothing happens for `patience`
    seconds of real time.
    """

    ranks: int
    network: str | Network = "10GbE"
    device: str | Device = "laptop"
    faults: Faults = NONE
    eager: int = 0
    clock: str = "roofline"
    steps: float = math.inf
    patience: float = PATIENCE

    def __post_init__(self):
        if self.ranks < 1:
            raise ValueError(f"ranks: {self.ranks} ranks cannot run a script; use 1 or more.")
        if self.clock not in CLOCKS:
            raise ValueError(f"clock: there is no {self.clock!r}; use {' or '.join(CLOCKS)}.")
        if self.faults.back:
            raise ValueError(
                "crash: ranks that run torch cannot restart; give the time of the crash only, as in 3:0.4."
            )

    @property
    def links(self) -> Network:
        return parse_network(self.network) if isinstance(self.network, str) else self.network

    @property
    def processor(self) -> Device:
        return parse_script_device(self.device) if isinstance(self.device, str) else self.device

    def environment(self, rank: int) -> dict[str, str]:
        """Return the variables that torchrun would set."""
        per_node = min(self.links.per_node, self.ranks)
        numbers = {
            "RANK": rank,
            "LOCAL_RANK": rank % per_node,
            "GROUP_RANK": rank // per_node,
            "WORLD_SIZE": self.ranks,
            "LOCAL_WORLD_SIZE": per_node,
            "GROUP_WORLD_SIZE": -(-self.ranks // per_node),
            "MASTER_ADDR": "localhost",
            "MASTER_PORT": 29500,
            "OMP_NUM_THREADS": 1,
        }
        return {name: str(value) for name, value in numbers.items()}
