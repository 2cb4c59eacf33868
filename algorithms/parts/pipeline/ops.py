"""The ops of a schedule. A schedule is data: for each rank the ordered list of its ops, without times.

    F   forward of a micro-batch            R   its forward repeated, from the stored input (re-materialisation)
    B   backward, both halves of it         U   update with the gradients of one mini-batch
    I   backward, gradient of the inputs    W   backward, gradient of the weights

An op is written stage, kind, number: "2F0" is the forward of micro-batch 0 on stage 2. What an op waits for is the same
in every schedule (`needs`), so the same lists are executed, timed, drawn and tested.

An op stands in the list of the rank that does it. So a rank may hold several stages, and several ranks the same stage,
each for micro-batches of its own; a U in all of their lists is one op, which they do together. "3F6+0B2" is a forward
overlapped with a backward: two ops of one rank that start together and end together.

Source: the op graph of Qi et al., ICLR 2024 (I is their B); the notation is that of torch.distributed.pipelining.
"""

import gc
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

KINDS = "FRBIWU"


class Op(NamedTuple):
    """An operation of one stage. `chunk` is the number of its micro-batch or, for an update, of its mini-batch.

    Numbers start at 0 and, in a run, continue from one mini-batch to the next.
    """

    kind: str
    stage: int
    chunk: int

    def __str__(self) -> str:
        return f"{self.stage}{self.kind}{self.chunk}"


class Overlapped(Op):
    """An op that overlaps with the next one in its list. It equals the `Op` with the same fields."""

    __slots__ = ()

    def __str__(self) -> str:
        return f"{super().__str__()}+"


class ScheduleError(ValueError):
    """Raised for a mistake in a schedule. `word` is the invalid op, or the word that is not an op, and `rank` the rank
    whose list has it.

    `word` is "" and `rank` -1 if the mistake is in no single list, such as a missing op.
    """

    def __init__(self, message: str, word: object = "", rank: int = -1):
        super().__init__(message)
        self.word, self.rank = str(word).removesuffix("+"), rank


def parse(text: str) -> list[Op]:
    """Return the ops in a text such as "2F0 2F1+0B0". Raise ScheduleError for a word that is not an op."""
    ops = []
    for word in text.replace("+", "+ ").split():
        match = re.fullmatch(rf"(\d+)([{KINDS}])(\d+)(\+?)", word)
        if not match:
            kinds = ", ".join(KINDS)
            raise ScheduleError(f"{word!r} is not an op; write stage, one of {kinds}, and a number, as in 2F0.", word)
        stage, kind, chunk, joined = match.groups()
        ops.append((Overlapped if joined else Op)(kind, int(stage), int(chunk)))
    return ops


def spell(ops: Iterable[Op]) -> str:
    """Return `ops` as text that `parse` can read."""
    return " ".join(map(str, ops)).replace("+ ", "+")


def rematerialise(ops: Iterable[Op], late: bool = False, stored: Collection[int] = ()) -> Iterator[Op]:
    """Yield the ops with a repeated forward before each backward: early, or (`late`) once its gradient has arrived.

    For micro-batches that are `stored` as a whole no forward is repeated.
    """
    for op in ops:
        if op.kind in "BI" and op.chunk not in stored:
            yield (Overlapped if late else Op)("R", op.stage, op.chunk)
        yield op


def lists(schedule: Callable[..., Iterable[Op]], ranks: int, chunks: int, **options) -> list[list[Op]]:
    """Return a list of the ops of every rank: schedule(rank, ranks, chunks, **options)."""
    collects = gc.isenabled()
    gc.disable()  # ops are many and never cyclic: collecting them takes as long as making them
    try:
        return [list(schedule(rank, ranks, chunks, **options)) for rank in range(ranks)]
    finally:
        if collects:
            gc.enable()


def needs(op: Op, last: int) -> tuple[tuple[str, int, int], ...]:
    """Return the ops that `op` waits for in a pipeline whose last stage is `last`, as plain tuples, which equal ops.

    Where the next stage splits its backward, its I takes the place of the B named here. An update waits only for its
    place in the list, and for the other ranks that hold its stage.
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
    """Raise ScheduleError unless each micro-batch goes forward and backward exactly once on each stage.

    This does not detect deadlocks between ranks; timing the lists does.
    """
    place: dict[Op, tuple[int, int]] = {}
    updates: dict[Op, set[int]] = defaultdict(set)  # the ranks that do each
    for rank, ops in enumerate(lists):
        for position, op in enumerate(ops):
            if op in place and (op.kind != "U" or rank in updates[op]):
                first, _ = place[op]
                where = f" on rank {rank}" if first == rank else f": on rank {first} and on rank {rank}"
                raise ScheduleError(f"{op} is done twice{where}.", op, rank)
            place[op] = rank, position
            if op.kind == "U":
                updates[op].add(rank)
        if ops and isinstance(ops[-1], Overlapped):
            raise ScheduleError(
                f"{ops[-1]} at the end of rank {rank} has no op after its +; remove the +.", ops[-1], rank
            )
    chunks = sorted({op.chunk for op in place if op.kind == "F"})
    holders: dict[int, set[int]] = {stage: set() for stage in range(1 + max((op.stage for op in place), default=-1))}
    for stage in holders:
        for chunk in chunks:
            order = _order(stage, chunk, place)
            for earlier, later in pairwise(order):
                (holder, before), (rank, after) = place[earlier], place[later]
                if holder != rank:
                    where = f"{earlier} leaves what it needs on rank {holder}"
                    raise ScheduleError(f"{later} is on rank {rank}, but {where}.", later, rank)
                if before > after:
                    raise ScheduleError(f"{later} comes before {earlier} on rank {rank}.", later, rank)
            holders[stage].add(place[order[0]][0])
    for update, ranks in updates.items():
        if wrong := sorted(ranks ^ holders[update.stage]):
            has = "does not update it" if wrong[0] in holders[update.stage] else "does not hold it"
            raise ScheduleError(
                f"{update} belongs on all ranks that hold stage {update.stage} and no others; rank {wrong[0]} {has}.",
                update,
                wrong[0] if wrong[0] in ranks else max(ranks),
            )


def _order(stage: int, chunk: int, place) -> list[Op]:
    """Return the ops of `stage` for micro-batch `chunk`, in the only valid order. Raise ScheduleError if one is missing
    from `place`, or if a backward is there both whole and split.
    """
    split = [op for op in (Op("I", stage, chunk), Op("W", stage, chunk)) if op in place]
    whole = Op("B", stage, chunk)
    if split and whole in place:
        raise ScheduleError(
            f"{whole} already includes both halves of a backward; remove {split[0]}.", whole, place[whole][0]
        )
    halves = [Op("I", stage, chunk), Op("W", stage, chunk)] if split else [whole]
    recomputed = [op for op in (Op("R", stage, chunk),) if op in place]
    order = [Op("F", stage, chunk), *recomputed, *halves]
    if missing := [op for op in order if op not in place]:
        raise ScheduleError(f"{missing[0]} is missing: every stage must process every micro-batch once.")
    return order
