"""Networks: latency, bandwidth and overhead of links, and presets with their sources.

A message of n bytes takes latency + n / bandwidth. A node has one port each way, shared by its ranks; ranks of one node
communicate over the link within it. Times are in seconds, sizes in bytes; gigabits appear nowhere else.
"""

from __future__ import annotations

from dataclasses import dataclass

from knobs import numbers


@dataclass(frozen=True)
class Link:
    """One direction of a connection."""

    latency: float  # s, first bit sent to first bit received, software included
    bandwidth: float  # bytes/s
    overhead: float = 0.0  # s of the sender's processor per message

    @property
    def spelled(self) -> str:
        """The text that `parse_network` parses."""
        return f"{self.latency:.4g}:{self.bandwidth:.4g}:{self.overhead:.4g}"


@dataclass(frozen=True)
class Network:
    """The links between nodes and, for ranks that share one, within a node; `source` is where the numbers come from."""

    between: Link
    within: Link
    per_node: int = 1
    source: str = ""


_MEMORY = Link(latency=1e-6, bandwidth=8e9)

NETWORKS: dict[str, Network] = {
    "ideal": Network(Link(0.0, float("inf")), Link(0.0, float("inf")), source="no cost at all: algorithms alone"),
    "1GbE": Network(Link(24e-6, 0.118e9), _MEMORY, source="TCP, LivMPI measurements: 23.6 us, 118.2 MB/s"),
    "10GbE": Network(Link(20e-6, 1.17e9), _MEMORY, source="TCP, 9.4 Gb/s of payload; d2l's table has 10 us for 4 KB"),
    "25GbE": Network(
        Link(15e-6, 2.7e9), _MEMORY, source="TCP, several streams (BytePS notes: one stream does not fill it)"
    ),
    "40GbE cloud": Network(Link(35e-6, 0.51e9), _MEMORY, source="a bad cloud: iperf 4.1 Gb/s measured by DeepSpeed"),
    "FDR": Network(Link(7e-6, 4.6e9), _MEMORY, source="56 Gb InfiniBand, fitted to MG-WFBP's all-reduce times"),
    "EDR": Network(Link(1.5e-6, 10.9e9), _MEMORY, source="100 Gb InfiniBand or RoCE; FlexFlow: 10.94 GB/s"),
    "HDR": Network(Link(1.2e-6, 23.5e9), _MEMORY, source="200 Gb InfiniBand, nominal 25 GB/s"),
    "NDR": Network(
        Link(1.0e-6, 47e9), Link(0.94e-6, 365e9), source="400 Gb InfiniBand between, NVLink 4 within a node"
    ),
    "NVLink": Network(
        Link(0.94e-6, 365e9), Link(0.94e-6, 365e9), source="NVLink 4, ring all-reduce rate (stas00's notes)"
    ),
    "loopback": Network(
        Link(40e-6, 1.5e9), Link(40e-6, 1.5e9), source="TCP on one machine, measured with Python sockets"
    ),
}


def parse_network(text: str) -> Network:
    """Return the preset of this name, or one link for all ranks from numbers, "4e-5:1.5e9:1e-5".

    Raises ValueError, in one sentence.
    """
    if text in NETWORKS:
        return NETWORKS[text]
    form = "latency in s:bytes/s:s of the sender per message, for example 4e-5:1.5e9:1e-5"
    latency, bandwidth, overhead = numbers(text, "network", form)
    if not bandwidth:
        raise ValueError(f"network: over {text} nothing would ever arrive; bytes/s must be above 0.")
    link = Link(latency, bandwidth, overhead)
    return Network(link, link, source="as given")
