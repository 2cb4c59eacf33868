"""A schedule is data: for each rank the ordered list of what it does, without times.

    F   forward of a micro-batch            R   its forward once more, from the stored input (re-materialisation)
    B   backward: both halves of it         U   update with the gradients of one mini-batch
    I   backward, gradient of the inputs    W   backward, gradient of the weights

An op is written stage, kind, number: "2F0" is the forward of micro-batch 0 on stage 2. What an op must wait for is
the same in every schedule, and `needs` says it: so the same lists are executed, timed, drawn and tested.

Source: the op graph of Qi et al., ICLR 2024 (I is their B); the notation is that of torch.distributed.pipelining.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count, pairwise
from typing import NamedTuple

KINDS = "FRBIWU"


class Op(NamedTuple):
    """One thing to do. `chunk` numbers micro-batches through the whole run; of an update, mini-batches."""

    kind: str
    stage: int
    chunk: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.chunk}"


def parse(text: str) -> list[Op]:
    """Read "2F0 2F1 2B0". ValueError for a word that is no op."""
    ops = []
    for word in text.split():
        match = re.fullmatch(rf"(\d+)([{KINDS}])(\d+)", word)
        if not match:
            raise ValueError(f"{word!r} is no op; write stage, one of {', '.join(KINDS)}, and a number, as in 2F0.")
        ops.append(Op(match[2], int(match[1]), int(match[3])))
    return ops


def spell(ops: Iterable[Op]) -> str:
    """The text that `parse` reads."""
    return " ".join(map(str, ops))


def repeat(ops: Sequence[Op], chunks: int) -> Iterator[Op]:
    """The schedule of one mini-batch of `chunks` micro-batches, mini-batch after mini-batch, without end."""
    for batch in count():
        for kind, stage, chunk in ops:
            yield Op(kind, stage, batch + chunk if kind == "U" else batch * chunks + chunk)


def needs(op: Op, last: int) -> tuple[tuple[str, int, int], ...]:
    """The ops that must be done before `op`, in a pipeline whose last stage is `last`; plain tuples, which equal ops.

    Where the stage after splits its backward, its I stands for the B named here. An update waits for nothing but its
    place in the list.
    """
    kind, stage, chunk = op
    if kind == "F":
        return (("F", stage - 1, chunk),) if stage else ()
    if kind == "B" or kind == "I":
        forward = "F", stage, chunk
        return (forward, ("B", stage + 1, chunk)) if stage < last else (forward,)
    if kind == "W":
        return (("I", stage, chunk),)
    return (("F", stage, chunk),) if kind == "R" else ()


def check(lists: Sequence[Sequence[Op]]) -> None:
    """Raise ValueError unless every stage does every micro-batch once, forward and backward, forward first.

    That the lists of all ranks fit together, so that nobody waits for ever, is found out by timing them.
    """
    place = {}
    for rank, ops in enumerate(lists):
        for position, op in enumerate(ops):
            if op in place:
                raise ValueError(f"{op} is done twice: on rank {place[op][0]} and on rank {rank}.")
            place[op] = rank, position
    stages = {op.stage for op in place}
    chunks = {op.chunk for op in place if op.kind == "F"}
    for stage in sorted(stages):
        for chunk in sorted(chunks):
            split = Op("I", stage, chunk) in place or Op("W", stage, chunk) in place
            halves = ("I", "W") if split else ("B",)
            order = [Op("F", stage, chunk), *(Op(kind, stage, chunk) for kind in halves)]
            missing = [op for op in order if op not in place]
            if missing:
                raise ValueError(f"{missing[0]} is missing: every stage does every micro-batch once.")
            for earlier, later in pairwise(order):
                if place[earlier] > place[later] and place[earlier][0] == place[later][0]:
                    raise ValueError(f"{later} comes before {earlier} on rank {place[later][0]}.")
