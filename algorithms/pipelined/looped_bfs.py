"""Looped breadth-first sends all micro-batches through a rank's first stage before any goes through its second.

Rank r of S holds the stages r, S+r, 2S+r, ..., `pieces` of them, as in interleaved 1F1B. That goes depth first: a group
of micro-batches is through the whole model before the next one starts. Here all are on one stage at a time:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 F2 F3 f0 f1 f2 f3 .. .. b3 b2 b1 b0 B3 B2 B1 B0
    rank 1   .. F0 F1 F2 F3 f0 f1 f2 f3 b3 b2 b1 b0 B3 B2 B1 B0        (small letters: second stages)

A stage completes all its backwards before the next one begins. So if replicas sum their gradients, or each stage's
weights are gathered from shards, these are sent once per stage and mini-batch, while the rank computes another stage.

Price: the bubble is that of interleaved 1F1B, (S-1)(f+b) / pieces, for any M >= S, where f and b are the times of all
stages of a rank; with fewer micro-batches each round waits for the one before, (pieces-1)(S-M)(f+b) / pieces more.
Every rank holds the activations of all M micro-batches, as in GPipe; with one stage per rank it is GPipe. 2 batch a for
each of pieces S - 1 boundaries. Staleness: none.
Source: Lamy-Poirier, MLSys 2023, arXiv:2211.05953; the order is that of torch.distributed (LoopedBFS).
"""

from algorithms.algorithm import Equivalence
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.pipelined.interleaved import Settings


def schedule(rank: int, ranks: int, chunks: int, pieces: int = 2) -> list[Op]:
    """Return the ops of one mini-batch on `pieces` stages per rank."""
    if pieces < 1:
        raise ValueError(f"{pieces} stages per rank leave nothing to do; use at least 1.")
    stages = range(rank, pieces * ranks, ranks)
    forward = [Op("F", stage, chunk) for stage in stages for chunk in range(chunks)]
    backward = [op._replace(kind="B") for op in reversed(forward)]
    return [*forward, *backward, *(Op("U", stage, 0) for stage in stages)]


def plan(workers, s):
    return Flush.of(schedule, workers, s.chunks, pieces=s.pieces)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={"looped_bfs": schedule},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1, "pieces": 1}),
        Equivalence(
            "with one stage per rank it is GPipe",
            to="gpipe",
            workers=3,
            settings={"chunks": 4, "pieces": 1},
            to_settings={"chunks": 4},
        ),
        Equivalence(
            "it adds gradients in reverse order, as GPipe does",
            to="gpipe",
            workers=2,
            to_workers=4,
            settings={"chunks": 4},
            to_settings={"chunks": 4},
        ),
    ),
    example_workers=4,
)
