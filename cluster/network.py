"""Networks: latency, overhead and bandwidth of links, and presets with their sources.

A message of n bytes occupies its sender's processor for `overhead`, then takes latency + n / bandwidth (o, L and 1/G
of LogGP). Where the processors move the bytes themselves, as between ranks of one computer, the processor at each end
is occupied for `per_byte` seconds per byte (O of LogGOPS). A node has one or several network interfaces (NICs),
each with one port per direction; a rank uses the NIC next to it, as in NCCL. Ranks of one node communicate over the
link within it. Times are in seconds, sizes in bytes; gigabits appear only in the names of presets.

The simulated cluster and emulated networks on real ranks (`cluster.real.emulated_network`) compute with the same links
and ports. `docs/simulated_network.md` lists what the model leaves out.
Source: Alexandrov, Ionescu, Schauser & Scheiman, SPAA 1995 (LogGP); Hoefler, Schneider & Lumsdaine, HPDC 2010
(LogGOPS).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from knobs import match_name, numbers


@dataclass(frozen=True)
class Link:
    """One direction of a connection."""

    latency: float  # s from the first bit sent to the first bit received, including the receiver's software
    bandwidth: float  # bytes/s
    overhead: float = 0.0  # s of the sender's processor per message
    per_byte: float = 0.0  # s of each end's processor per byte, while the link carries it; at most 1 / bandwidth

    @property
    def alpha(self) -> float:
        """The time that a short message takes from one program to the other, in s; see `theory.collective_costs`."""
        return self.overhead + self.latency

    @property
    def text(self) -> str:
        """The link as text that `parse_network` can parse."""
        return f"{self.latency:.4g}:{self.bandwidth:.4g}:{self.overhead:.4g}"


@dataclass(frozen=True)
class Network:
    """The links between nodes and, for ranks on the same node, within it. `source` says where the numbers come from.

    `between` has the bandwidth of a single NIC. A node has `nics` of them; those in excess of `per_node` are not used.
    `sum` is set for a computer that sums vectors in memory instead of sending messages. A sum of vectors of n bytes
    over P ranks then takes latency + 2 (P - 1) / P n / bandwidth from the time at which the last rank joins.
    """

    between: Link
    within: Link
    per_node: int = 1
    source: str = ""
    nics: int = 1
    sum: Link | None = None

    @property
    def text(self) -> str:
        """The network as text that `parse_network` can parse, if all its links are alike."""
        link, total = self.between, self.sum
        own = f":{link.per_byte:.4g}:{total.latency:.4g}:{total.bandwidth:.4g}" if total else ""
        return link.text + own

    def node(self, rank: int) -> int:
        return rank // self.per_node

    def nic(self, rank: int) -> int:
        """Return the NIC, numbered across all nodes, through which `rank` reaches other nodes.

        Ranks are assigned in blocks: of 4 ranks on a node with 2 NICs, ranks 0 and 1 use NIC 0, the others NIC 1.
        """
        node, place = divmod(rank, self.per_node)
        nics = min(self.nics, self.per_node)
        return node * nics + place * nics // self.per_node

    def on_nodes(self, per_node: int, nics: int | None = None) -> Network:
        """Return this network with `per_node` ranks and `nics` NICs on each node (None: unchanged).

        Raise ValueError for more NICs than ranks per node, since some would do nothing.
        """
        if nics is not None and not 1 <= nics <= per_node:
            raise ValueError(
                f"nics: each rank uses one NIC, but there are {nics} for {per_node} rank{'s' * (per_node > 1)} per "
                "node; use at most as many NICs as ranks per node."
            )
        return replace(self, per_node=per_node, nics=nics or self.nics)

    def link(self, src: int, dst: int) -> Link:
        """Return the link from rank `src` to rank `dst`. A message from a rank to itself takes no time."""
        if src == dst:
            return _NOTHING
        return self.within if self.node(src) == self.node(dst) else self.between


class Carrier(Protocol):
    """Anything with an attribute `free`, the time at which it becomes free. `Port.carry` needs no more."""

    free: float  # s


class Port:
    """One direction of a network interface. It carries one message at a time, first in, first out.

    A message of n bytes sent at time t over a link with latency a and 1/b bytes per second:

        leaves    d = out.carry(t, n b)         the sender's port is busy until d + n b
        arrives   into.carry(d + a, n b)        the receiver's port is busy until the last byte is in: into.free
    """

    __slots__ = ("free",)

    def __init__(self):
        self.free = 0.0  # s: the time at which the last byte of all messages so far has passed

    def carry(self: Carrier, ready: float, seconds: float) -> float:
        """Carry a message that is ready at time `ready` and takes `seconds`. Return the time at which it starts."""
        begins = ready if ready > self.free else self.free
        self.free = begins + seconds
        return begins


_NOTHING = Link(0.0, float("inf"))

# The time that a message takes up on its sender's processor. This is software, so it does not fall as ports get faster.
TCP = 5e-6  # s; small MPI_Sends of Open MPI on 10 GbE: 3.8 and 5.8 us (SimGrid's calibrations of Grid'5000's taurus)
VERBS = 0.4e-6  # s; 0.38 us by InfiniBand verbs (Poke, Hoefler & Glass, HPDC 2017); MVAPICH has 1.0 us by netgauge
POST = 0.2e-6  # s; MPI_Isend until the network has the message (Zambre et al., "Breaking Band", ICPP 2019)


def link_of(one_way: float, bandwidth: float, overhead: float) -> Link:
    """Return a link over which a short message takes `one_way` seconds in total, i.e. half the time of a ping-pong.

    This includes the overhead, which is reduced to `one_way` if it is larger.
    """
    overhead = min(overhead, one_way)
    return Link(one_way - overhead, bandwidth, overhead)


_MEMORY = link_of(1e-6, 8e9, POST)
_NVLINK = link_of(0.94e-6, 365e9, POST)
_LOOPBACK = link_of(40e-6, 1.5e9, TCP)

NETWORKS: dict[str, Network] = {
    "ideal": Network(Link(0.0, float("inf")), Link(0.0, float("inf")), source="no cost at all: algorithms alone"),
    "1GbE": Network(link_of(24e-6, 0.118e9, TCP), _MEMORY, source="TCP, LivMPI measurements: 23.6 us, 118.2 MB/s"),
    "10GbE": Network(
        link_of(20e-6, 1.17e9, TCP), _MEMORY, source="TCP, 9.4 Gb/s of payload; d2l's table has 10 us for 4 KB"
    ),
    "25GbE": Network(
        link_of(15e-6, 2.7e9, TCP), _MEMORY, source="TCP, several streams (BytePS notes: one stream does not fill it)"
    ),
    "40GbE cloud": Network(
        link_of(35e-6, 0.51e9, TCP),
        _MEMORY,
        source="a cloud with 40 Gb/s ports, on which DeepSpeed measured only 4.1 Gb/s with iperf, a tenth of "
        "the nominal rate",
    ),
    "100GbE": Network(
        link_of(15e-6, 11.7e9, TCP),
        _MEMORY,
        source="TCP, several streams: 94 % of 12.5 GB/s is payload, as on 10GbE; the latency is that of 25GbE",
    ),
    "400GbE": Network(
        link_of(2e-6, 48e9, VERBS),
        _NVLINK,
        source="RoCE v2 between nodes: 4,096 of 4,178 bytes on the wire are payload, less 2 % for acknowledgements and "
        "control; the latency, 2 us, is our choice; NVLink 4 within a node; 8 NICs as in a DGX H100",
        nics=8,
    ),
    "FDR": Network(
        link_of(7e-6, 4.6e9, VERBS), _MEMORY, source="56 Gb InfiniBand, fitted to MG-WFBP's all-reduce times"
    ),
    "EDR": Network(link_of(1.5e-6, 10.9e9, VERBS), _MEMORY, source="100 Gb InfiniBand or RoCE; FlexFlow: 10.94 GB/s"),
    "HDR": Network(link_of(1.2e-6, 23.5e9, VERBS), _MEMORY, source="200 Gb InfiniBand, nominal 25 GB/s"),
    "NDR": Network(
        link_of(1.0e-6, 47e9, VERBS),
        _NVLINK,
        source="400 Gb InfiniBand between nodes, NVLink 4 within a node; 8 NICs as in a DGX H100",
        nics=8,
    ),
    "NVLink": Network(_NVLINK, _NVLINK, source="NVLink 4, ring all-reduce rate (stas00's notes)"),
    "loopback": Network(_LOOPBACK, _LOOPBACK, source="TCP on one machine, measured with Python sockets"),
}
"""Presets. Latencies and bandwidths are from `source`, overheads from the constants above."""


def parse_network(text: str) -> Network:
    """Return the preset called `text`, or a network in which all links are alike, e.g. "4e-5:1.5e9:1e-5"
    (latency:bandwidth:overhead).

    Three more numbers describe a computer whose processors move the bytes themselves: seconds per byte at each end, and
    latency and bandwidth of a sum. Raise ValueError for other text.
    """
    if (name := match_name(text, NETWORKS)) in NETWORKS:
        return NETWORKS[name]
    form = "latency:bandwidth:overhead, for example 4e-5:1.5e9:1e-5 (s, bytes/s, s)"
    latency, bandwidth, overhead, *own = numbers(text, "network", form, (3, 6), NETWORKS)
    per_byte, *total = own or (0.0,)
    if not bandwidth or 0 in total[1:]:
        raise ValueError(f"network: no message would ever arrive over {text}; use bytes/s above 0.")
    if per_byte * bandwidth > 1.002:
        raise ValueError(
            f"network: a processor takes {per_byte:g} s per byte, longer than the link, {1 / bandwidth:.3g} s; use at "
            "most the link's time."
        )
    link = Link(latency, bandwidth, overhead, per_byte)
    return Network(link, link, source="as given", sum=Link(*total) if total else None)
