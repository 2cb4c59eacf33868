"""PipeDream keeps the pipeline full: each stage alternates one forward and one backward, on stashed weights.

Stage s goes forward S-1-s times; then F and B take turns without end (1F1B), with an update after every B. By the
time a mini-batch comes back, the weights that its F read have been updated S-1-s times: so each stage stashes that
version, and B reads it again. With w_s(b) the weights of stage s after b updates:

    w_s(b+1) = w_s(b) - lr dL/dw_s ( w_0(b-S+1), w_1(b-S+2), ..., w_{S-1}(b) )

    stage 0   F0 F1 F2 .. .. B0 F3 B1 F4 B2
    stage 1   .. F0 F1 .. B0 F2 B1 F3 B2 F4
    stage 2   .. .. F0 B0 F1 B1 F2 B2 F3 B3        . idle only while the pipeline fills

`weights` chooses the versions. stash: as above. vertical: every stage reads version b-S+1, one consistent model.
none: B reads the newest weights, which is the gradient of nothing, but stores one copy.

A slow stage may be given several ranks, `replicas`: mini-batch b goes to replica b mod r of a stage, and after each
turn the replicas average their gradients and update together. They make fewer updates of more mini-batches each, so
with `scale_rate`, as in the authors' code, the rate of a stage with r_s replicas is lr r_s / r_0.

Price: where a numbers per sample cross from one stage to the next, 2 batch a per step, there and back. Stage s holds
S-s versions of its weights (vertical: S) and the activations of S-s mini-batches. Replicas move 2(r-1) numbers for
every parameter in r mini-batches.
Staleness: S-1-s updates on stage s (vertical: S-1 everywhere), decided by the schedule and not by the network.
Source: Harlap et al., arXiv:1806.03377; Narayanan et al., SOSP 2019; msr-fiddle/pipedream.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf
from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.one_f_one_b import one_f_one_b
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.settings import StreamSettings
from algorithms.parts.pipeline.stage_state import LatestWeights, PinnedVersion, StashedWeights
from algorithms.parts.pipeline.stream_executor import stream
from knobs import Counts, Refusal, join_numbers, multiples


class Settings(StreamSettings):
    weights: Literal["stash", "vertical", "none"] = knob(
        "stash", "weight version the passes read: stash, vertical or none", postpones=True
    )
    replicas: Counts = knob("", "ranks per stage; empty is one each", example="2,1")
    scale_rate: bool = knob(
        False, "scale a stage's learning rate with its number of replicas, relative to the first stage"
    )


def schedule(rank: int, ranks: int, chunks: float) -> Iterator[Op]:
    """Return the ops of a stream of `chunks` mini-batches, with an update after every backward."""
    return one_f_one_b(rank, ahead=ranks - 1 - rank, per_update=1, chunks=chunks)


def replicated_schedule(rank: int, replicas: Sequence[int], chunks: float) -> Iterator[Op]:
    """Yield the ops of a rank, where several ranks may share a stage and take turns.

    Each replica runs as far ahead as it takes to keep the later ranks busy.
    """
    if chunks < inf and (uneven := [count for count in replicas if chunks % count]):
        raise Refusal(
            f"{chunks} mini-batches cannot be dealt to {uneven[0]} replicas; use a multiple of {uneven[0]}.",
            multiples(uneven[0], int(chunks)),
        )
    stage, before = 0, 0  # ranks of the stages before
    while rank >= before + replicas[stage]:
        before += replicas[stage]
        stage += 1
    turns, mine = replicas[stage], rank - before
    each = chunks // turns if chunks < inf else inf
    for op in one_f_one_b(stage, ahead=(sum(replicas) - 1 - before) // turns, per_update=1, chunks=each):
        yield op if op.kind == "U" else op._replace(chunk=op.chunk * turns + mine)


def plan(workers, s):
    replicas = s.replicas or [1] * workers
    return Stream(replicas, partial(replicated_schedule, replicas=replicas, chunks=inf))


def check(workers, batch, workload, s):
    wanted = sum(s.replicas) or workers
    if wanted != workers:
        raise ValueError(
            f"replicas {join_numbers(s.replicas)} need {wanted} ranks, but there are {workers} workers; "
            f"make them add up to {workers}."
        )
    if s.replicas and s.weights == "vertical":
        raise ValueError("vertical sync is not defined for stages of several ranks; use stash or none.")
    settings.check(batch, workload, plan(workers, s), s.cuts)


def policy(s, stage, w):
    v, rate = kernels.state_like(w), s.learning_rate
    if s.scale_rate and s.replicas:
        replicas = s.replicas
        rate *= replicas[stage.index] / replicas[0]

    def update(w, g):
        kernels.momentum(w, v, g, rate, s.momentum)

    if s.weights == "vertical":  # when a mini-batch arrives, stage s is s updates ahead of stage 0
        return PinnedVersion(update, lambda batch: max(0, batch - (stage.count - 1)), versions=stage.index + 1)
    return StashedWeights(update) if s.weights == "stash" else LatestWeights(update)


ALGORITHM = stream(
    schedule,
    Settings,
    policy,
    plan=plan,
    check=check,
    schedules={"pipedream": schedule},
    equivalences=(
        Equivalence("one stage gives SGD", to="sgd"),
        Equivalence(
            "one stage gives SGD with vertical sync, too: there is no other version to read",
            to="sgd",
            settings={"weights": "vertical"},
        ),
        Equivalence(
            "with vertical sync every stage is as late as the first: a delay of S-1, bit for bit",
            to="delayed",
            workers=4,
            to_workers=1,
            settings={"weights": "vertical"},
            to_settings={"delay": 3, "layerwise": False},
        ),
    ),
)
