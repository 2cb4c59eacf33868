"""NCCL's own cost model: its tuner's estimate of the latency of an all-reduce, by which it chooses an algorithm.

    ring   base + 2 (P - k) hops inside + 2 (k - 1) hops between       k nodes of g GPUs, P = k g
    tree   base + 2 ((g - 1) hops inside + log2 k hops between)

Protocols trade latency for bandwidth: LL sends flags with the data, Simple synchronises instead. The time of the bytes
at the links' bandwidth is added to the latency. Source: NVIDIA's NCCL, src/graph/tuning.cc.
"""

from math import log2
from typing import Literal

US = 1e-6
BASE = {  # us: (LL, LL128, Simple)
    "tree": (6.8, 14.0, 8.4),
    "ring": (6.6, 14.0, 8.4),
}
HOP = {  # us
    ("NVLink", "tree"): (0.6, 1.25, 4.0),
    ("NVLink", "ring"): (0.6, 1.9, 3.4),
    ("PCIe", "tree"): (1.0, 1.9, 4.0),
    ("PCIe", "ring"): (1.0, 2.5, 5.7),
    ("network", "tree"): (5.0, 8.5, 14.0),
    ("network", "ring"): (2.7, 4.0, 14.0),
}
PROTOCOLS = ("LL", "LL128", "Simple")
POST = (1.0, 1.0, 3.0)  # us per message to the network on an Intel processor: a lower bound on a ring's hop
PLATEAU = 1.4  # factor of a Simple ring over several nodes (since Ampere; 1.9 before)


def latency(
    algorithm: Literal["ring", "tree"], protocol: Literal["LL", "LL128", "Simple"], nodes: int, gpus: int
) -> float:
    """Return the time in s of an empty all-reduce on `nodes` nodes of `gpus` GPUs each, over NVLink and the network."""
    which = PROTOCOLS.index(protocol)
    base, inside, between = (
        table[which] for table in (BASE[algorithm], HOP["NVLink", algorithm], HOP["network", algorithm])
    )
    if algorithm == "tree":
        return US * (base + 2 * ((gpus - 1) * inside + log2(nodes) * between))
    if nodes > 1:
        inside = max(inside, POST[which])
    total = base + 2 * nodes * (gpus - 1) * inside + 2 * (nodes - 1) * between
    if nodes > 1 and protocol == "Simple":
        total *= PLATEAU
    return US * total
