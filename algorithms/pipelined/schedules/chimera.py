"""Chimera: two pipelines run through the same ranks in opposite directions, and each fills the bubbles of the other.

Rank r of S holds stage r for the micro-batches that go down and stage S-1-r for those that go up, half of them each:

    rank 0   F0 F1 .. f2 b2 f3 b3 B0 .. B1
    rank 1   .. F0 f2 F1 f3 b2 B0 b3 B1 ..
    rank 2   .. F2 f0 F3 f1 b0 B2 b1 B3 ..
    rank 3   F2 F3 .. f0 b0 f1 b1 B2 .. B3

(capitals: stages 0 to S/2-1, small letters: the others). Per unit of S micro-batches, the j-th of each direction goes
forward on stage s in slot 2j+s and back in slot 2j+2S-1-s, or earlier; units follow one another 2S slots apart. S-2
slots are idle instead of 2(S-1). With `pipes` = f there are f pipelines each way, one every S/f ranks: S/f - 2 idle
slots for 2f copies of the model.

Where a backward takes twice as long as a forward, units no longer fit together. With `doubling` a forward takes two
micro-batches, which come back one after the other, S slots apart: all slots are equally long again, a unit of 2S
micro-batches takes 3S of them, and S-2 are idle, however many units follow. It holds twice as many activations, so
inputs only may have to be stored. (Backward halving is the same, of micro-batches half as large.)

The price: two copies of the weights. Every stage is on two ranks, which sum their gradients before the update.

Source: Li & Hoefler, SC 2021, arXiv:2107.06925 (direct concatenation of units; forward doubling, whose slots are ours).
"""

from algorithms.parts.pipeline.ops import Op, Overlapped


def schedule(rank: int, ranks: int, chunks: int, pipes: int = 1, doubling: bool = False) -> list[Op]:
    """One mini-batch; slots say the order only, so forward and backward may take any time."""
    if ranks % 2:
        raise ValueError(f"{ranks} rank{'s' * (ranks > 1)} cannot be paired; Chimera needs an even number.")
    if pipes < 1 or (ranks // 2) % pipes:
        fitting = [str(n) for n in range(1, ranks // 2 + 1) if (ranks // 2) % n == 0]
        raise ValueError(f"{pipes} pipelines each way do not divide {ranks} ranks; use {' or '.join(fitting)}.")
    forward = 1 + doubling  # micro-batches
    unit, fewest = forward * ranks, forward * 2 * pipes
    if chunks > unit and chunks % unit:
        pairs = " that take pairs" * doubling
        raise ValueError(
            f"{ranks} ranks{pairs} do not divide {chunks} micro-batches; use a multiple of {unit}, or fewer."
        )
    if chunks % forward:
        raise ValueError(f"{chunks} micro-batches do not go forward in pairs; use an even number.")
    if chunks < fewest:
        raise ValueError(f"{chunks} micro-batches leave one of {2 * pipes} pipelines empty; use {fewest} or more.")
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
