"""The per-process state of a rank, what it waits for, and sentences about messages that it never received."""

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

from cluster.real.background import CachedThreadPool
from cluster.real.emulated_compute import EmulatedCompute
from cluster.real.emulated_network import EmulatedNetwork
from cluster.real.event_log_stream import StreamedEventLog
from cluster.real.links import Links
from cluster.waits import Wait


@dataclass
class RankState:
    """The per-process state that all communicators of a rank share."""

    rank: int
    size: int
    links: Links
    event_log: StreamedEventLog
    timeout: float  # s
    device: str
    native: bool  # whether large vectors are summed in shared memory or by torch.distributed
    collective: str  # name of the all-reduce to use, "fast" for the default
    store: Any  # of torch.distributed, None without it
    computers: list[str]  # the computer of each rank
    nodes: list[Hashable]  # the node of each rank: its computer, or a node of the emulated network
    network: EmulatedNetwork | None = None
    compute: EmulatedCompute | None = None
    waiting: tuple | None = None  # (since, slot, collective, src, tag) while the rank is blocked
    process_groups: list[Any] = field(default_factory=list)  # NCCL's, for subsets of the ranks
    background: set[Any] = field(default_factory=set)  # all-reduces in background threads for which nobody waits yet
    threads: CachedThreadPool = field(default_factory=CachedThreadPool)

    def resume(self) -> None:
        """Resume the emulated device at the current time, after this rank was blocked."""
        if self.compute:
            self.compute.resume(self.event_log.clock())

    @property
    def emulates(self) -> bool:
        """True if this rank emulates a network or a device."""
        return self.network is not None or self.compute is not None


@dataclass(frozen=True)
class RankStatus:
    """What a rank is doing, as reported to the parent.

    It is stuck if only a message from another rank can wake it. If all ranks are stuck, and as many frames were
    received as were sent, the run is deadlocked.
    """

    stuck: bool
    since: float  # when it began to wait; 0 while it is at work, inf once it has finished
    sent: int  # frames
    received: int
    wait: Wait | None = None

    @property
    def is_finished(self) -> bool:
        """True if the rank has returned its result."""
        return self.since == math.inf


def wait_of(rank: int, waiting: tuple) -> Wait:
    """Return what a rank waits for, `RankState.waiting`, as a Wait."""
    since, slot, collective, src, tag = waiting
    return Wait(rank, "the others" if slot is None else "any rank" if src is None else src, since, collective, tag)


def unread(rank: int, left: list[tuple]) -> list[str]:
    """Return one sentence per sender and tag about unread messages; `left` has (src, (group, tag)) of each."""
    counts = Counter((src, tag) for src, (_, tag) in left)
    return [
        f"rank {rank} never read {n} message{'s' if n > 1 else ''} from rank {src}, tag {tag}"
        for (src, tag), n in sorted(counts.items())
    ]
