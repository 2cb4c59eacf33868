"""The part of an invalid schedule that can be drawn, and the place of its first mistake."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.parts.pipeline.ops import KINDS, Op, ScheduleError, needs, parse
from experiments.study.schedules import Plan, Study, read_own, time_schedule


@dataclass(frozen=True)
class Unfinished:
    """An invalid schedule. `study` has the ops that can run, or is None if there are none. `line` and `word` locate the
    mistake.

    Lines are numbered from 0; `word` is "" and `line` -1 if the mistake is not a particular word.
    """

    study: Study | None
    line: int
    word: str


def partial_schedule(plan: Plan) -> Unfinished:
    """Return the drawable part of an invalid schedule: each rank up to its first mistake."""
    line, word = _mistake(plan)
    stages = _stages(plan.own)
    lists = possible([_readable(text) for text in plan.own.strip().splitlines()], stages)
    try:
        return Unfinished(time_schedule(plan, lists, stages) if any(lists) else None, line, word)
    except (ValueError, KeyError, IndexError):
        return Unfinished(None, line, word)  # only the text can be shown


def _mistake(plan: Plan) -> tuple[int, str]:
    """Return (line, word) of the first mistake, found again here since the study may have run in another process."""
    try:
        time_schedule(plan, read_own(plan.own))
    except ScheduleError as error:
        return error.rank, error.word
    except (ValueError, KeyError, IndexError):
        pass
    return -1, ""


def _stages(text: str) -> int:
    """Return the number of stages in a schedule's text, including those whose ops cannot run, since costs are divided
    by it.

    A stage number larger than the number of ops counts as a typing mistake.
    """
    named = [int(stage) for stage in re.findall(rf"(\d{{1,6}})[{KINDS}]\d", text)]
    return 1 + max((stage for stage in named if stage < len(named)), default=0)


def possible(lists: Sequence[Sequence[Op]], stages: int) -> list[list[Op]]:
    """Return each rank's ops up to the first op that can never run or has already run."""
    reached = [0] * len(lists)
    done: set[tuple] = set()
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
    """Return True if everything that `op` waits for is done, and `op` itself is not. An I in `done` counts as the whole
    backward.
    """
    if op.kind == "U":
        return True
    met = all(need in done or (need[0] == "B" and ("I", *need[1:]) in done) for need in needs(op, last))
    return met and tuple(op) not in done


def _readable(text: str) -> list[Op]:
    """Return the ops of a line up to the first word that is not an op."""
    ops = []
    for word in re.split(r"[\s+]+", text):
        try:
            ops += parse(word)
        except ValueError:
            break
    return ops
