"""A rank's world: what it has once, whatever communicators are made of it, and what it says about them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from cluster.real.background import Threads
from cluster.real.links import Links
from cluster.real.notebook import Notebook


@dataclass
class World:
    """What a rank has once, whatever communicators are made of it."""

    rank: int
    size: int
    links: Links
    event_log: Notebook
    timeout: float  # s
    device: str
    native: bool  # large sums by torch.distributed
    collective: str  # the all-reduce that was chosen, "fast" if none was
    store: Any  # of torch.distributed, None without
    computers: list[str]  # where each rank is
    waiting: tuple | None = None  # (since, slot, doing, src, tag) while the rank waits
    beside: int = 0  # sums under way beside the rank
    threads: Threads = field(default_factory=Threads)


def complaint(rank: int, waiting: tuple) -> str:
    """Who waits for whom since when, as a sentence."""
    since, slot, doing, src, tag = waiting
    whom = "the others" if slot is None else "any rank" if src is None else f"rank {src}"
    what = f"in {doing} for {whom}" if doing else f"for a message from {whom} (tag {tag})"
    return f"rank {rank} waits {what} since {since:.6g} s"


def unread(rank: int, left: list[tuple]) -> list[str]:
    """Messages nobody took, as sentences."""
    counts = Counter((src, tag) for src, (_, tag) in left)
    return [
        f"rank {rank} never read {n} message{'s' if n > 1 else ''} from rank {src}, tag {tag}"
        for (src, tag), n in sorted(counts.items())
    ]
