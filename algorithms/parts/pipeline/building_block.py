"""V-shaped schedules that repeat a block, the passes of one micro-batch; the block's lifespan determines the memory.

Rank r of S holds the stages r and 2S-1-r. A block gives the slots, all equally long, in which it does F of the first, F
of the second, I of the second and I of the first for micro-batch 0; for micro-batch m that is 6 m slots later, since a
rank has six passes for each. W go into the free slots. A rank holds a sixth as many micro-batches as there are slots
from F to W, summed over its two stages.

    repeat    the block for every micro-batch
    squeeze   slot by slot, until the first micro-batch is back: each op moves forward to the first free slot in which
              its inputs are ready, an F only as far as no rank holds more than before
    drain     after its last F a rank does W only where no I has arrived

Source: Qi, Wan, Amar & Lin, NeurIPS 2024, arXiv:2405.15362; they squeeze in several passes, to the same times.
"""

from collections.abc import Callable
from functools import lru_cache
from itertools import accumulate

from algorithms.parts.pipeline.ops import Op, needs

Block = Callable[[int, int], tuple[int, int, int, int]]


@lru_cache(maxsize=64)  # every rank requests the same lists
def lists(block: Block, ranks: int, chunks: int) -> list[list[Op]]:
    """Return the ops of all ranks for a mini-batch, without updates; `block(rank, ranks)` gives a rank's four slots."""
    slots = [repeat(block(rank, ranks), (rank, 2 * ranks - 1 - rank), chunks) for rank in range(ranks)]
    squeeze(slots, 2 * ranks - 1)
    return drain([sorted(mine, key=mine.get) for mine in slots], 2 * ranks - 1)


def repeat(block, stages, chunks):
    """Return {op: slot} for one rank. The W ops follow in the order of the I ops, each in the first free slot."""
    down, up = stages
    passes = [("F", down), ("F", up), ("I", up), ("I", down)]
    slots = {
        Op(kind, stage, chunk): at + 6 * chunk
        for (kind, stage), at in zip(passes, block, strict=True)
        for chunk in range(chunks)
    }
    taken, free = set(slots.values()), 0
    for op in sorted((op for op in slots if op.kind == "I"), key=slots.get):
        free = max(free, slots[op]) + 1
        while free in taken:
            free += 1
        slots[op._replace(kind="W")] = free
    return slots


def squeeze(slots, last):
    """Move ops of all ranks into earlier free slots, in place; `last` is the last stage."""
    taken, held, ready = [], [], {}
    for mine in slots:
        taken.append(set(mine.values()))
        change = [0] * (max(taken[-1]) + 2)
        for op, at in mine.items():
            change[at] += (op.kind == "F") - (op.kind == "W")
        held.append(list(accumulate(change)))  # micro-batches of a stage, after each slot
    most = max(map(max, held))
    for slot, rank, op in sorted((at, rank, op) for rank, mine in enumerate(slots) for op, at in mine.items()):
        if op == Op("I", 0, 0):
            return  # from here on there is a pass for every slot
        first = max([ready.get(need, 0) for need in dependencies(op, last)] + [ready.get(previous(op), 0)])
        if op.kind == "F":
            first = next((at + 1 for at in range(slot - 1, first - 1, -1) if held[rank][at] >= most), first)
        at = next((at for at in range(first, slot) if at not in taken[rank]), slot)
        for between in range(at, slot):
            held[rank][between] += (op.kind == "F") - (op.kind == "W")
        taken[rank] ^= {at} ^ {slot}
        slots[rank][op], ready[op] = at, at + 1


def drain(orders, last):
    """Return the ops of all ranks; after its last F, a rank does W only when no I is ready."""
    lists, ends, now = [[] for _ in orders], {}, 0
    steady = [max(n for n, op in enumerate(ops) if op.kind == "F") + 1 for ops in orders]
    tails = [sorted(ops[n:], key=lambda op: op.kind == "W") for ops, n in zip(orders, steady, strict=True)]
    while any(tails):
        starting = []
        for rank, mine in enumerate(lists):
            left = orders[rank][len(mine) : len(mine) + 1] if len(mine) < steady[rank] else tails[rank]
            ready = (op for op in left if all(ends.get(need, now + 1) <= now for need in dependencies(op, last)))
            starting += [(rank, op) for op in [next(ready, None)] if op]
        now += 1
        for rank, op in starting:
            if len(lists[rank]) >= steady[rank]:
                tails[rank].remove(op)
            lists[rank].append(op)
            ends[op] = now
    return lists


def dependencies(op, last):
    """Return the ops that `op` waits for, if every backward is split."""
    return [Op("I" if kind == "B" else kind, stage, chunk) for kind, stage, chunk in needs(op, last)]


def previous(op):
    """Return the same op for the previous micro-batch."""
    return op._replace(chunk=op.chunk - 1)
