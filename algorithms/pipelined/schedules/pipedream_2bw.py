"""PipeDream-2BW: 1F1B without end, an update every M micro-batches, and never more than two versions of the weights.

Micro-batch z belongs to mini-batch t = z // M and reads version max(t-1, 0), forward and backward, on every stage: so
all stages have the same delay, one update, and the version before the newest is all that must be kept. Here M = 3, and
an update follows B2 and B5:

    rank 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2 F5 B3 .. B4 .. B5
    rank 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4 B3 F5 B4 .. B5 ..
    rank 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5 .. ..

Source: Narayanan et al., ICML 2021, arXiv:2006.09503; version rule as in the authors' code.
"""

from collections.abc import Iterator
from math import inf

from algorithms.parts.pipeline.ops import Op
from algorithms.pipelined.schedules.one_f_one_b import alternate


def schedule(rank: int, ranks: int, chunks: int, per_update: int | None = None) -> Iterator[Op]:
    """`chunks` micro-batches in mini-batches of `per_update`, by default as many as there are ranks."""
    per_update = per_update or ranks
    if chunks % per_update:
        raise ValueError(
            f"updates of {per_update} micro-batches do not divide {chunks}; use a multiple of {per_update}."
        )
    return stream(rank, ranks, per_update, chunks)


def stream(rank: int, ranks: int, per_update: int, chunks: float = inf) -> Iterator[Op]:
    """The same without end."""
    if per_update < ranks - 1:
        raise ValueError(
            f"{per_update} micro-batches per update need a third version on {ranks} ranks; use {ranks - 1} or more."
        )
    return alternate(rank, ranks - 1 - rank, per_update, chunks)


def version(chunk: int, per_update: int, ranks: int) -> int:
    """The version of the weights that micro-batch `chunk` reads. One rank alone needs no delay, and has none."""
    batch = chunk // per_update
    return max(batch - 1, 0) if ranks > 1 else batch
