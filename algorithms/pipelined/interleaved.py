"""Interleaved 1F1B gives each rank several thin stages, so that the pipeline fills and drains several times faster.

Rank r of S holds the stages r, S+r, 2S+r, ...: the model winds around the ranks `pieces` times. Micro-batches go in
groups of S: a group passes the first stage of a rank, then its second, and so on. The gradient is that of the
mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 f0 f1 F2 b0 F3 b1 f2 B0 f3 B1 .. b2 .. b3 B2 B3
    rank 1   .. F0 F1 f0 b0 f1 b1 F2 B0 F3 B1 f2 b2 f3 b3 B2 B3 ..        (small letters: second stages)

Where S does not divide M, groups are larger: M is cut into M // S equal ones. If M < S there is a single, smaller one.

Price: the bubble shrinks to (S-1)(f+b) / pieces, where f and b are the times of all stages of a rank; if M < S, a group
also waits before each of its next stages, (pieces-1)(S-M)(f+b) / pieces in all. Activations cross pieces S - 1
boundaries instead of S - 1, from the last rank back to the first too: 2 batch a for each. With groups of G, S where S
divides M, rank r holds 2(S-1-r) + (pieces-1) G + 1 thin micro-batches, and never more than M pieces.
Staleness: none.
Source: Narayanan et al., SC 2021, arXiv:2104.04473; the order is that of Megatron-LM, other groups those of
torch.distributed.
"""

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import AS_DAPPLE, FlushSettings
from knobs import Refusal


class Settings(FlushSettings):
    pieces: int = knob(2, "stages on each rank", ge=1, le=64)


def schedule(rank: int, ranks: int, chunks: int, pieces: int = 2) -> list[Op]:
    """Return the ops of one mini-batch on `pieces` stages per rank."""
    group, forward, backward = passes(rank, ranks, chunks, pieces, "B")
    ahead = min(len(forward), 2 * (ranks - 1 - rank) + (pieces - 1) * group)
    ops = forward[:ahead]
    for pair in zip(forward[ahead:], backward, strict=False):
        ops += pair
    ops += backward[len(forward) - ahead :]
    return ops + [Op("U", piece * ranks + rank, 0) for piece in range(pieces)]


def passes(rank, ranks, chunks, pieces, kind):
    """Return (micro-batches per group, a rank's forwards in order, its backwards of this kind in order)."""
    groups = max(1, chunks // ranks)
    if chunks % groups:
        fewer, more = chunks - chunks % groups, min(chunks + -chunks % groups, (groups + 1) * ranks)
        raise Refusal(
            f"{chunks} micro-batches cannot go through {ranks} ranks in {groups} equal groups; use {fewer} or {more}.",
            [fewer, more],
        )
    if pieces < 1:
        raise ValueError(f"{pieces} stages per rank leave nothing to do; use at least 1.")
    group = chunks // groups
    turns = [
        (piece, chunk)
        for first in range(0, chunks, group)
        for piece in range(pieces)
        for chunk in range(first, first + group)
    ]
    forward = [Op("F", piece * ranks + rank, chunk) for piece, chunk in turns]
    return group, forward, [Op(kind, (pieces - 1 - piece) * ranks + rank, chunk) for piece, chunk in turns]


def plan(workers, s):
    return Flush.of(schedule, workers, s.chunks, pieces=s.pieces)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={"interleaved": schedule},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1, "pieces": 1}),
        AS_DAPPLE,
        Equivalence(
            "with groups larger than the number of ranks it adds gradients as DAPPLE does, too",
            to="dapple",
            workers=2,
            to_workers=4,
            settings={"chunks": 3},
            to_settings={"chunks": 3},
            batch=3,
        ),
    ),
    example_workers=4,
)
