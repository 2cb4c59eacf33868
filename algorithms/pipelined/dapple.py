"""1F1B (one forward, one backward) starts backward passes as early as possible and keeps GPipe's single update.

DAPPLE is 1F1B with a flush: all micro-batches of a step finish before the update.

Stage s goes forward S-s times; then backwards and forwards alternate (1F1B), so a stage never holds more than S-s
micro-batches, where GPipe holds all M. The gradient is that of the mini-batch:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    stage 0   F0 F1 F2 .. .. B0 F3 B1 .. B2 .. B3
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 .. B3 ..
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3 .. ..        . idle: as much as GPipe, (S-1)(f+b)

This is `policy` PA. With a latency c it idles in the steady state too, 2c (S-1)/S per micro-batch, because too few
micro-batches are in flight; PB sends 2(S-s)-1 ahead, which hides the latency. `copies` of the pipeline, on ranks of
their own, split the micro-batches among themselves; the ranks that hold the same stage sum their gradients before they
make the same update, which is data parallelism around a pipeline.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s stores
the activations of min(M, S-s) micro-batches; with `recompute` their inputs only. R copies move 2(R-1) d more, to sum
the gradients of d parameters. Staleness: none.
Source: Fan et al., PPoPP 2021, arXiv:2007.01045 (policies PA and PB); PipeDream-Flush of Narayanan et al., ICML 2021,
arXiv:2006.09503.
"""

from collections.abc import Iterator
from functools import partial
from math import inf
from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import FlushSettings


class Settings(FlushSettings):
    policy: Literal["PA", "PB"] = knob(
        "PA", "how many micro-batches are in flight: PA (few) or PB (enough to hide latency)"
    )
    copies: int = knob(1, "pipelines that split the mini-batch among themselves", ge=1, le=1024)
    recompute: Literal["none", "early", "late"] = knob(
        "none", "recompute activations before the backward pass: none, early or late"
    )


def schedule(rank: int, ranks: int, chunks: int, policy: Literal["PA", "PB"] = "PA", cap: float = inf) -> Iterator[Op]:
    """Return the ops of one mini-batch; no rank ever holds more than `cap` micro-batches."""
    if policy not in ("PA", "PB"):
        raise ValueError(f"there is no policy {policy!r}; use PA (few micro-batches in flight) or PB (twice as many).")
    if cap < 1:
        raise ValueError(f"a cap of {cap} micro-batches lets none through; use at least 1.")
    held = ranks - rank if policy == "PA" else 2 * (ranks - rank) - 1
    return one_f_one_b(rank, ahead=int(min(held, cap)) - 1, per_update=chunks, chunks=chunks)


def plan(workers, s):
    return Flush.of(schedule, workers, s.chunks, copies=s.copies, rematerialised=s.recompute, policy=s.policy)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={"1f1b": schedule, "dapple_pb": partial(schedule, policy="PB")},
    equivalences=(
        Equivalence("one stage and one micro-batch give SGD", to="sgd", settings={"chunks": 1}),
        Equivalence(
            "it is GPipe, except for the order in which gradients are added",
            to="gpipe",
            exactness="RND",
            workers=3,
            settings={"chunks": 4},
            to_settings={"chunks": 4},
        ),
        Equivalence(
            "two copies of the pipeline give SGD", to="sgd", exactness="RND", workers=4, settings={"copies": 2}
        ),
        Equivalence(
            "two copies of a single stage give SGD", to="sgd", exactness="RND", workers=2, settings={"copies": 2}
        ),
    ),
)
