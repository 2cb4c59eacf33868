"""Chimera runs two pipelines through the same ranks in opposite directions, each filling the bubbles of the other.

Rank r of S holds stage r for the micro-batches that go down and stage S-1-r for those that go up, half of them each.
Every stage is on two ranks (on 2f with f `pipes` each way), which sum their gradients before they make the same update:

    w <- w - lr (g_0 + g_1 + ... + g_{M-1}) / M

    rank 0   F0 F1 .. f2 b2 f3 b3 B0 .. B1
    rank 1   .. F0 f2 F1 f3 b2 B0 b3 B1 ..
    rank 2   .. F2 f0 F3 f1 b0 B2 b1 B3 ..
    rank 3   F2 F3 .. f0 b0 f1 b1 B2 .. B3        (capitals: stages 0 to S/2-1, small letters: the others)

Per unit of S micro-batches, the j-th of each direction goes forward on stage s in slot 2j+s and back in slot 2j+2S-1-s,
or earlier; units follow one another 2S slots apart. With f pipelines each way, one every S/f ranks, S/f - 2 slots are
idle, for 2f copies of the model.

Where a backward takes twice as long as a forward, units no longer fit together. With `doubling` a forward takes two
micro-batches, which come back one after the other, S slots apart: all slots are equally long again, a unit of 2S
micro-batches takes 3S of them, and S-2 are idle however many units follow. That holds twice as many activations, so a
rank may have to store only inputs. (Backward halving is the same with micro-batches half as large.)

Price: with one pipeline each way, S-2 idle slots instead of 2(S-1), in units of S micro-batches whose slots are equally
long; with fewer than S there are more. Two copies of the weights: 2 batch a per step over each boundary, and 2d to sum
the gradients of d parameters, 2(2f-1) d with f pipelines each way. With `recompute` only inputs are stored, and
forwards are repeated. Staleness: none.
Source: Li & Hoefler, SC 2021, arXiv:2107.06925 (direct concatenation of units; forward doubling, whose slots are ours).
"""

from typing import Literal

from algorithms.algorithm import Equivalence, knob
from algorithms.parts.pipeline.executor import pipeline
from algorithms.parts.pipeline.ops import Op, Overlapped
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.settings import FlushSettings
from algorithms.parts.rank_groups import one_of
from knobs import Refusal, multiples


class Settings(FlushSettings):
    pipes: int = knob(1, "pipelines in each direction", ge=1, le=256)
    doubling: bool = knob(False, "let one forward pass take two micro-batches, which come back one after the other")
    recompute: Literal["none", "early", "late"] = knob(
        "none", "recompute activations before the backward pass: none, early or late"
    )


def schedule(rank: int, ranks: int, chunks: int, pipes: int = 1, doubling: bool = False) -> list[Op]:
    """Return the ops of one mini-batch. Slots only define their order: forward and backward may take any time."""
    if ranks % 2:
        raise Refusal(
            f"{ranks} rank{'s' * (ranks > 1)} cannot be paired; Chimera needs an even number.", [ranks - 1, ranks + 1]
        )
    if pipes < 1 or (ranks // 2) % pipes:
        fitting = [n for n in range(1, ranks // 2 + 1) if (ranks // 2) % n == 0]
        raise Refusal(f"{pipes} pipelines each way do not divide {ranks} ranks; use {one_of(fitting)}.", fitting)
    forward = 1 + doubling  # micro-batches
    unit, fewest = forward * ranks, forward * 2 * pipes
    if chunks > unit and chunks % unit:
        pairs = " that take pairs" * doubling
        raise Refusal(
            f"{ranks} ranks{pairs} do not divide {chunks} micro-batches; use a multiple of {unit}, or fewer than that.",
            multiples(unit, chunks),
        )
    if chunks % forward:
        raise Refusal(
            f"{chunks} micro-batches cannot go forward in pairs; use an even number.", [chunks - 1, chunks + 1]
        )
    if chunks < fewest:
        raise Refusal(
            f"{chunks} micro-batches leave one of {2 * pipes} pipelines empty; use {fewest} or more.", [fewest]
        )
    slots, stages = {}, set()
    each, left = divmod(min(chunks, unit) // forward, 2 * pipes)  # forwards per pipeline in a unit
    for pipe in range(2 * pipes):
        begin = pipe // 2 * (ranks // pipes)
        stage = (begin + ranks - 1 - rank if pipe % 2 else rank - begin) % ranks
        stages.add(stage)
        for first in range(0, chunks, unit):
            for j in range(each + (pipe < left)):
                chunk, slot = first + forward * (pipe * each + min(pipe, left) + j), first + first // forward + 2 * j
                pair = [Overlapped("F", stage, chunk)] * doubling
                slots[slot + stage] = [*pair, Op("F", stage, chunk + doubling)]
                for n in range(forward):
                    slots[slot + (2 + n) * ranks - 1 - stage] = [Op("B", stage, chunk + n)]
    return [op for slot in sorted(slots) for op in slots[slot]] + [Op("U", stage, 0) for stage in sorted(stages)]


def plan(workers, s):
    how = {"pipes": s.pipes, "doubling": s.doubling}
    return Flush.of(schedule, workers, s.chunks, rematerialised=s.recompute, **how)


ALGORITHM = pipeline(
    schedule,
    Settings,
    plan=plan,
    schedules={"chimera": schedule},
    equivalences=(
        Equivalence("two directions give SGD", to="sgd", exactness="RND", workers=4),
        Equivalence(
            "one pipeline each way per pair of ranks gives SGD",
            to="sgd",
            exactness="RND",
            workers=4,
            settings={"pipes": 2},
        ),
        Equivalence(
            "two directions whose forward passes take two micro-batches give SGD",
            to="sgd",
            exactness="RND",
            workers=4,
            settings={"doubling": True, "recompute": "early"},
        ),
    ),
    example_workers=4,
)
