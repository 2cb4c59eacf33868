"""Unfinished: what can be drawn of a schedule of one's own in which something is wrong, and where it goes wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.parts.pipeline.ops import KINDS, Op, ScheduleError, needs, parse
from experiments.study.schedules import Plan, Study, read_own, timed


@dataclass(frozen=True)
class Unfinished:
    """`study` has the ops that can be done, None if there are none; `line` and `word` are where it goes wrong.

    Lines count from 0; `word` is "" and `line` -1 if no word that stands there is wrong.
    """

    study: Study | None
    line: int
    word: str


def unfinished(plan: Plan) -> Unfinished:
    """Return what can be drawn of a schedule of one's own in which something is wrong: each rank up to its mistake."""
    line, word = _mistake(plan)
    stages = _stages(plan.own)
    lists = possible([_readable(text) for text in plan.own.strip().splitlines()], stages)
    try:
        return Unfinished(timed(plan, lists, stages) if any(lists) else None, line, word)
    except (ValueError, KeyError, IndexError):
        return Unfinished(None, line, word)  # only the text can be shown


def _mistake(plan: Plan) -> tuple[int, str]:
    """Return (line, word) of what is wrong first, which the study has found, perhaps in another process."""
    try:
        timed(plan, read_own(plan.own))
    except ScheduleError as error:
        return error.rank, error.word
    except (ValueError, KeyError, IndexError):
        pass
    return -1, ""


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
