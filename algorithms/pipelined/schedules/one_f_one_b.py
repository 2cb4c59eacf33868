"""1F1B: each stage goes forward a few micro-batches ahead, then forward and backward take turns.

    rank 0   F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3
    rank 1   .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 ..
    rank 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. ..        . idle: as much as GPipe, (S-1)(f+b)

The bubble is GPipe's, but stage s holds S-s micro-batches and not all M. With latency c it idles also in the steady
state, 2c (S-1)/S per micro-batch: too few are on their way. DAPPLE's policy PB sends 2(S-s)-1 ahead, which hides it.

Source: PipeDream-Flush of Narayanan et al., ICML 2021; policies PA and PB of Fan et al. (DAPPLE), PPoPP 2021.
"""

from collections.abc import Iterator, Sequence
from itertools import count
from math import inf
from typing import Literal

from algorithms.parts.pipeline.ops import Op


def schedule(rank: int, ranks: int, chunks: int, policy: Literal["PA", "PB"] = "PA", cap: float = inf) -> Iterator[Op]:
    """One mini-batch; no rank ever holds more than `cap` micro-batches."""
    if policy not in ("PA", "PB"):
        raise ValueError(
            f"there is no policy {policy!r}; use PA (few micro-batches on their way) or PB (twice as many)."
        )
    if cap < 1:
        raise ValueError(f"a cap of {cap} micro-batches lets nothing through; use at least 1.")
    held = ranks - rank if policy == "PA" else 2 * (ranks - rank) - 1
    return alternate(rank, int(min(held, cap)) - 1, chunks, chunks)


def without_flush(rank: int, ranks: int, chunks: int) -> Iterator[Op]:
    """PipeDream: a stream of `chunks` mini-batches, and an update after every backward."""
    return alternate(rank, ranks - 1 - rank, 1, chunks)


def replicated(rank: int, replicas: Sequence[int], chunks: float) -> Iterator[Op]:
    """The same with stages of several ranks, neighbours, who take turns: mini-batch b goes to replica b mod r.

    Each replica is as far ahead as it takes to keep the later ranks busy; after each turn a stage updates together.
    """
    if chunks < inf and (uneven := [count for count in replicas if chunks % count]):
        raise ValueError(
            f"{chunks} mini-batches cannot be dealt to {uneven[0]} replicas; use a multiple of {uneven[0]}."
        )
    stage, before = 0, 0  # ranks of the stages before
    while rank >= before + replicas[stage]:
        before += replicas[stage]
        stage += 1
    turns, mine = replicas[stage], rank - before
    each = chunks // turns if chunks < inf else inf
    for op in alternate(stage, (sum(replicas) - 1 - before) // turns, 1, each):
        yield op if op.kind == "U" else op._replace(chunk=op.chunk * turns + mine)


def alternate(stage: int, ahead: int, per_update: int, chunks: float = inf) -> Iterator[Op]:
    """F `ahead` times, then F and B in turn, with an update after every `per_update` backwards; by default endless."""
    for chunk in range(min(ahead, chunks)):
        yield Op("F", stage, chunk)
    for chunk in count():
        if chunk == chunks:
            return
        if chunk + ahead < chunks:
            yield Op("F", stage, chunk + ahead)
        yield Op("B", stage, chunk)
        if (chunk + 1) % per_update == 0:
            yield Op("U", stage, chunk // per_update)
