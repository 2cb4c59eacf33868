"""The cost of an all-reduce: every algorithm timed on the simulated cluster, for a vector of any size.

    all_reduces(32, 4e9, NETWORKS["HDR"])      # an AllReduceCost for each of cluster.collectives.ALL_REDUCE

Which messages are sent depends on the ranks and on the length of the vector, never on its values, and a message's time
is linear in its bytes. So a few numbers on links slowed by the right factor take exactly as long as gigabytes on the
real links. Additions are free, as in nccl-tests' bus bandwidth.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cluster.collectives import ALL_REDUCE, trees
from cluster.devices import Device
from cluster.network import Link, Network, parse_network
from experiments.jobs.spec import JobSpec
from experiments.wording import units
from theory import collective_costs

MOST = 1024  # largest number of ranks, which takes a few seconds to simulate
FREE = Device(math.inf, math.inf, 0.0)
ITEM = 4  # bytes of each number, which represents a piece of the vector
FILE = "costs.json"
FULL = 4  # times the depth of a double tree: with this many chunks all levels are busy, and its time is right to 0.5 %


@dataclass(frozen=True)
class AllReduceCost:
    """The cost of one all-reduce of `nbytes` among `ranks` that all start at the same time."""

    name: str
    ranks: int
    nbytes: float
    rounds: int  # length of the longest chain of messages, if the vector is not cut into chunks
    sent: float  # bytes sent by the rank that sends most
    seconds: float
    waiting: float  # s; the part of `seconds` that links without latency and overhead would save

    @property
    def bus_bandwidth(self) -> float:
        """Bytes per second on a link if every rank sent the minimum possible: busbw in nccl-tests."""
        return self.nbytes / self.seconds * collective_costs.share(self.ranks) if self.seconds else math.inf


def all_reduces(ranks: int, nbytes: float, network: Network) -> list[AllReduceCost]:
    """Return the cost of each all-reduce of `nbytes` among `ranks`, fastest first.

    Raise ValueError if there are too many ranks to simulate, fewer than two, or no bytes.
    """
    if not 2 <= ranks <= MOST:
        raise ValueError(f"{ranks:,} ranks cannot be simulated; use 2 to {MOST:,}.")
    if not 0 < nbytes < math.inf:
        raise ValueError(f"{nbytes:g} is not a vector's size in bytes; give a number above 0, for example 4e9.")
    return sorted((_cost(name, ranks, nbytes, network) for name in ALL_REDUCE), key=lambda cost: cost.seconds)


def rows(costs: list[AllReduceCost]) -> list[dict[str, Any]]:
    """Return the costs as rows to print, with units."""
    return [
        {
            "all-reduce": cost.name,
            "rounds": cost.rounds,
            "sent": units.size(cost.sent),
            "time": units.seconds(cost.seconds),
            "latency": units.percent(cost.waiting / cost.seconds) if cost.seconds else "–",
            "bus bandwidth": units.rate(cost.bus_bandwidth),
        }
        for cost in costs
    ]


def links(network: Network, ranks: int) -> str:
    """Return a phrase with bandwidth and latency of the links that these ranks use."""
    within, between = (
        f"{units.rate(link.bandwidth)} and {units.seconds(link.alpha)}" for link in (network.within, network.between)
    )
    if network.per_node == 1:
        return between
    within += f" within a node of {network.per_node}"
    nics = min(network.nics, network.per_node)
    between += f" between nodes, for each of a node's {nics} NICs" if nics > 1 else " between nodes"
    return f"{within}, {between}" if ranks > network.per_node else within


def note_on_nodes(network: Network, ranks: int) -> str:
    """Return a sentence on why links within a node are slower than those between nodes, or "" if they are not."""
    if not 1 < network.per_node < ranks or network.within.bandwidth >= network.between.bandwidth:
        return ""
    return "Ranks of a node exchange messages through its memory, without NVLink: that is slower than this network."


# as a job of the pool


def job_spec(ranks: int, nbytes: float, network: str, per_node: int, nics: int | None = None) -> JobSpec:
    values = {"ranks": ranks, "nbytes": nbytes, "network": network, "per_node": per_node, "nics": nics}
    return JobSpec("collective", values)


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    network = parse_network(values["network"]).on_nodes(values["per_node"], values["nics"])
    costs = [asdict(cost) for cost in all_reduces(values["ranks"], values["nbytes"], network)]
    return JobSpec("collective", values).keep_json(root, FILE, costs)


def load(folder: Path) -> list[AllReduceCost]:
    return [AllReduceCost(**cost) for cost in json.loads((folder / FILE).read_text("utf-8"))]


def _cost(name: str, ranks: int, nbytes: float, network: Network) -> AllReduceCost:
    rounds, _ = _timed(name, ranks, ITEM, _links(network, lambda link: Link(1.0, math.inf)))
    free, _ = _timed(name, ranks, nbytes, _links(network, lambda link: replace(link, latency=0.0, overhead=0.0)))
    seconds, sent = _timed(name, ranks, nbytes, network)
    return AllReduceCost(name, ranks, nbytes, round(rounds), sent, seconds, seconds - free)


def _timed(name: str, ranks: int, nbytes: float, network: Network) -> tuple[float, float]:
    """Return the time of an all-reduce in s, and the bytes sent by the rank that sends most."""
    if name != "double_tree":
        return _simulated(name, ranks, nbytes, network, _pieces(name, ranks, network))
    chunks, full = trees.chunks_of(ranks, nbytes), FULL * (ranks - 1).bit_length()
    if chunks <= 2 * full:
        return _simulated(name, ranks, nbytes, network, 2 * chunks)
    # once all levels are busy, each further chunk takes the same time
    part = nbytes * full / chunks
    (some, sent), (more, _) = (_simulated(name, ranks, n * part, network, 2 * n * full) for n in (1, 2))
    return some + (more - some) * (chunks / full - 1), sent * chunks / full


def _simulated(name: str, ranks: int, nbytes: float, network: Network, pieces: int) -> tuple[float, float]:
    """Return time and bytes as `_timed` does, from a vector of only `pieces` numbers on proportionally slower links."""
    factor = nbytes / (ITEM * pieces)
    slowed = _links(
        network, lambda link: replace(link, bandwidth=link.bandwidth / factor, per_byte=link.per_byte * factor)
    )

    from cluster import simulated

    def program(comm):
        x = np.ones(pieces, np.float32)
        if name == "double_tree":
            trees.double_tree(comm, x, tag=0, chunks=pieces // 2)
        else:
            comm.all_reduce(x)
        return comm.event_log.clock()

    collective = {"ring": "fast", "double_tree": "fast"}.get(name, name)  # "fast" takes as long as the ring
    outcome = simulated.run(program, ranks, network=slowed, device=FREE, collective=collective)
    if outcome.error:
        raise outcome.error
    return max(outcome.results), factor * outcome.trace().traffic().sum(axis=1).max()


def _pieces(name: str, ranks: int, network: Network) -> int:
    """Return the smallest length of a vector that this all-reduce can cut into equal pieces."""
    nodes = math.ceil(ranks / network.per_node)
    return {
        "ring": ranks,
        "halving_doubling": 1 << ranks.bit_length() - 1,
        "hierarchical": nodes * min(ranks, network.per_node),
    }.get(name, 1)


def _links(network: Network, changed) -> Network:
    """Return the network with `changed` applied to both of its links."""
    return replace(network, between=changed(network.between), within=changed(network.within), sum=None)
