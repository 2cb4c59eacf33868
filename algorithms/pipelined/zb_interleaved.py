"""Interleaved zero bubble splits the backward on thin stages: the bubble of ZB-H1, divided by the stages of a rank.

Rank r of S holds the stages r, S+r, 2S+r, ..., `pieces` of them, as in interleaved 1F1B, and micro-batches go in the
same groups. I is the gradient of a stage's inputs, which the stage before needs; W, that of its weights, comes r ops
behind I:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 f0 f1 .. i0 w0 F2 i1 w1 F3 I0 W0 f2 I1 W1 f3 i2 w2 i3 w3 I2 W2 I3 W3
    rank 1   .. F0 F1 f0 i0 f1 i1 w0 F2 I0 w1 F3 I1 W0 f2 i2 W1 f3 i3 w2 I2 w3 I3 W2 W3        (small: second stages)

A rank goes only one forward further ahead than the next one, where interleaved 1F1B goes two: I is half as long. Idle:
(S-1)(f+i-w) / pieces, if M >= S, w <= f and w <= i, where f, i and w are the times of all stages of a rank.

Price: 2 batch a for each of pieces S - 1 boundaries. With groups of G micro-batches, S where S divides M, rank r holds
S-r + (pieces-1) G thin ones, and what W needs of r more. With one stage per rank it is ZB-H1. Staleness: none.
Source: Qi et al., ICLR 2024, arXiv:2401.10241; the order is that of torch.distributed.
"""

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import AS_DAPPLE
from algorithms.pipelined.interleaved import Settings, passes


def schedule(rank: int, ranks: int, chunks: int, pieces: int = 2) -> list[Op]:
    """Return the ops of one mini-batch on `pieces` stages per rank; W number n comes after I number n + rank."""
    group, forward, inputs = passes(rank, ranks, chunks, pieces, "I")
    weights = [op._replace(kind="W") for op in inputs]
    ahead = min(len(forward), ranks - 1 - rank + (pieces - 1) * group)
    ops = forward[:ahead]
    for n, op in enumerate(inputs):
        ops += [*forward[ahead + n : ahead + n + 1], op, *weights[max(0, n - rank) : max(0, n + 1 - rank)]]
    ops += weights[max(0, len(weights) - rank) :]
    return ops + [Op("U", piece * ranks + rank, 0) for piece in range(pieces)]


def plan(workers, s):
    return Flush.of(schedule, workers, s.chunks, pieces=s.pieces)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={"zb_interleaved": schedule},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1, "pieces": 1}),
        Equivalence(
            "with one stage per rank it is ZB-H1",
            to="zb_h1",
            workers=3,
            settings={"chunks": 4, "pieces": 1},
            to_settings={"chunks": 4},
        ),
        AS_DAPPLE,
    ),
    example_workers=4,
)
