"""Unfinished: what can be drawn of a schedule of one's own in which something is wrong, and where it goes wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.parts.pipeline.ops import KINDS, Op, needs, parse
from experiments.study.schedules import Plan, Study, timed

_WORD = re.compile(rf"\d+[{KINDS}]\d+")


@dataclass(frozen=True)
class Unfinished:
    """`study` has the ops that can be done, None if there are none; `line` and `word` are where it goes wrong.

    Lines count from 0; `word` is "" and `line` -1 if the reason names no op that stands there.
    """

    study: Study | None
    line: int
    word: str


def unfinished(plan: Plan, reason: str) -> Unfinished:
    """Return what can be drawn of `plan`, which was refused for this reason: each rank up to what it cannot do."""
    lines = plan.own.strip().splitlines()
    line, word = blamed(lines, reason)
    stages = _stages(plan.own)
    lists = possible([_readable(text) for text in lines], stages)
    try:
        return Unfinished(timed(plan, lists, stages) if any(lists) else None, line, word)
    except (ValueError, KeyError, IndexError):
        return Unfinished(None, line, word)  # only the text can be shown


def blamed(lines: Sequence[str], reason: str) -> tuple[int, str]:
    """Return (line, word) of the op that a reason is about: its first op, on the rank that it names for it."""
    quoted = re.findall(r"'([^' ]+)'", reason)  # a word that is not an op, perhaps only its beginning
    named = [int(rank) for rank in re.findall(r"rank (\d+)", reason)]
    for word in (*quoted, *_WORD.findall(reason)):
        there = {n: found for n, text in enumerate(lines) if (found := _found(word, text, word in quoted))}
        if there:
            line = next((n for n in reversed(named) if n in there), max(there))
            return line, there[line]
    return -1, ""


def _found(word: str, text: str, begins: bool) -> str:
    """Return the word of a line that is `word`, or `begins` with it; "" if there is none."""
    words = re.split(r"[\s+]+", text)
    return next((one for one in words if one == word or (begins and one.startswith(word))), "")


def _stages(text: str) -> int:
    """Return how many stages a text is about, with those of ops that cannot be done: each takes its share of the time.

    A stage whose number is beyond the number of ops is a slip of the hand.
    """
    named = [int(stage) for stage in re.findall(rf"(\d{{1,6}})[{KINDS}]\d", text)]
    return 1 + max((stage for stage in named if stage < len(named)), default=0)


def possible(lists: Sequence[Sequence[Op]], stages: int) -> list[list[Op]]:
    """Return each rank's ops up to the first that can never be done, or that was done already."""
    reached, done = [0] * len(lists), set()
    going = True
    while going:
        going = False
        for rank, ops in enumerate(lists):
            while reached[rank] < len(ops) and _ready(ops[reached[rank]], done, stages - 1):
                done.add(tuple(ops[reached[rank]]))
                reached[rank] += 1
                going = True
    return [[Op(*op) for op in ops[:n]] for ops, n in zip(lists, reached, strict=True)]


def _ready(op: Op, done: set[tuple], last: int) -> bool:
    """Whether all that `op` waits for is done; a backward in halves stands for a whole one."""
    if op.kind == "U":
        return True
    met = all(need in done or (need[0] == "B" and ("I", *need[1:]) in done) for need in needs(op, last))
    return met and tuple(op) not in done


def _readable(text: str) -> list[Op]:
    """Return the ops of a line up to the first word that is none."""
    ops = []
    for word in re.split(r"[\s+]+", text):
        try:
            ops += parse(word)
        except ValueError:
            break
    return ops
