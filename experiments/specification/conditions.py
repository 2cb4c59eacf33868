"""Conditions of a run: the network, the device and the faults that its cluster simulates or emulates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from cluster.devices import Device, parse_device
from cluster.faults import JITTERS, Faults
from cluster.network import Network, link_of, parse_network
from experiments.specification.experiment import OWN, Experiment


@dataclass(frozen=True)
class Conditions:
    """What a cluster simulates or emulates, as arguments of its `run`."""

    network: Network | None  # None: a real cluster's own
    device: Device | None  # what a rank computes on; None: a real cluster's own
    faults: Faults

    @classmethod
    def of(cls, experiment: Experiment) -> Conditions:
        """Return the conditions of an experiment. Raise ValueError if settings contradict each other."""
        device = None if experiment.device == OWN else parse_device(experiment.device)
        return cls(_network(experiment), device, _faults(experiment))


def _network(experiment: Experiment) -> Network | None:
    """Return the network with the experiment's settings (latency includes overhead), or None if none is emulated."""
    own = experiment.network == OWN
    changed = experiment.latency, experiment.bandwidth, experiment.nics
    if own and changed == (None, None, None) and experiment.per_node == 1:
        return None
    preset = parse_network("ideal" if own else experiment.network)
    between = preset.between
    if experiment.latency is not None:
        between = link_of(experiment.latency, between.bandwidth, between.overhead)
    if experiment.bandwidth is not None:
        between = replace(between, bandwidth=experiment.bandwidth, per_byte=0.0)
    total = preset.sum if between is preset.between else None  # not the network that was measured
    return replace(preset, between=between, sum=total).on_nodes(experiment.per_node, experiment.nics)


def _faults(experiment: Experiment) -> Faults:
    """Return the jitter and the fault settings of the experiment."""
    lost = experiment.crash.by_rank
    return Faults(
        slow=experiment.slow.by_rank,
        jitter=JITTERS[experiment.jitter],
        pause=experiment.pause.by_rank,
        crash={rank: at for rank, (at, _) in lost.items()},
        back={rank: back for rank, (_, back) in lost.items() if back < math.inf},
        seed=experiment.seed,
    )
