"""Judge the schedule of this chapter's exercise: check its lists, time them, measure memory, and train with them."""

import random
import re

from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.ops import check as check_lists
from algorithms.parts.pipeline.plan import Flush
from lessons.figure import run_now
from lessons.grading.attempt import TEXTBOOK, YOURS
from lessons.grading.grader import SolutionError
from lessons.grading.seeds import experiment_seed
from lessons.pipelines.exercise import TARGETS
from theory.pipeline_memory import in_flight_until_weights
from theory.schedule_timing import simulate
from theory.schedules import lists as lists_of

POINTS = {
    "a model trained with it learns what it learns on one machine": 3,
    "stages are idle no longer than GPipe's": 3,
    "no stage holds more micro-batches than there are stages": 4,
    "with backward passes split in two, stages are idle for a third of GPipe's idle time": 4,
    "it also works with fewer micro-batches than stages": 1,
}
COSTS = {"F": 1, "B": 2, "I": 1, "W": 1}
OP = re.compile(r"[FBIW][0-9]{1,6}")
BITS = 1e-9  # rounding


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    right, full, lean, split, short = POINTS
    dice = random.Random(seed)
    sizes = [(stages, dice.randint(2 * stages, 4 * stages)) for stages in dice.sample(range(4, 9), 3)]
    with solution.attempt() as attempt:
        plans = {size: _lists(attempt, *size) for size in sizes}
        (stages, chunks), lists = next(iter(plans.items()))
        solution.timelines = {YOURS: _own(lists), TEXTBOOK: _own(lists_of("zb_h1", stages, chunks))}
        apart, sent = _trained(attempt, lists, chunks, experiment_seed(dice))
        told = f"{chunks} micro-batches, {stages} stages: losses {apart:.1g} apart, {sent:.2f} times the bytes of GPipe"
        yield right, apart < BITS and sent <= TARGETS["traffic"], told

        bubble = max(_idle(lists) / (3 * (stages - 1)) for (stages, _), lists in plans.items())
        quick = bubble <= TARGETS["time"] + BITS
        yield full, quick, f"{bubble:.2f} times the bubble of GPipe; at most {TARGETS['time']:g} is allowed"

        held = max(max(in_flight_until_weights(lists)) / stages for (stages, _), lists in plans.items())
        few = quick and held <= TARGETS["memory"]
        told = f"{held:.2f} times as many micro-batches as there are stages; at most {TARGETS['memory']:g} is allowed"
        yield lean, few, told if quick else "not judged until stages are idle no longer than GPipe's"

        told = f"{bubble:.2f} times the bubble of GPipe; at most {TARGETS['split']:.2f} is allowed"
        halves = few and bubble <= TARGETS["split"] + BITS
        yield split, halves, told if few else "not judged until no stage holds more micro-batches than there are stages"

        stages = dice.randint(5, 8)
        chunks = dice.randint(1, stages - 2)
        _lists(attempt, stages, chunks)
        yield short, True, f"{chunks} micro-batches through {stages} stages"


def _lists(attempt, stages: int, chunks: int) -> list[list[Op]]:
    """Return the solution's ops for each stage, in order, with an update at the end.

    Raise SolutionError if they are not a schedule: an op is missing, out of order, or waits forever.
    """
    lists = []
    for stage in range(stages):
        names = attempt.call("schedule", stage, stages, chunks)
        what = f"schedule({stage}, {stages}, {chunks})"
        if not isinstance(names, list) or len(names) > 3 * chunks:
            raise SolutionError(f"{what} must return a list of at most {3 * chunks} ops.")
        for name in names:
            if not (isinstance(name, str) and OP.fullmatch(name)):
                raise SolutionError(f"{what} has {str(name)[:40]!r}; ops are F, B, I or W and a number, as in F0.")
        ops = [Op(name[0], stage, int(name[1:])) for name in names]
        if {op.chunk for op in ops if op.kind == "F"} != set(range(chunks)):
            raise SolutionError(
                f"{what} must have a forward op for every micro-batch, F0 to F{chunks - 1}, and no others."
            )
        lists.append([*ops, Op("U", stage, 0)])
    try:
        check_lists(lists)
        simulate(lists, COSTS)
    except ValueError as error:
        raise SolutionError(f"{chunks} micro-batches on {stages} stages (2F0 is the F0 of stage 2): {error}") from None
    return lists


def _own(lists) -> dict[str, str]:
    """Return a schedule as a timeline for the report. It has a row per rank, with ops in the notation of the
    exercise.
    """
    return {"schedule": "\n".join(" ".join(f"{op.stage}{op.kind}{op.chunk}" for op in ops) for ops in lists)}


def _idle(lists) -> float:
    """Return the idle time of a stage, averaged over stages."""
    return sum(simulate(lists, COSTS).idle) / len(lists)


def _trained(attempt, lists, chunks: int, seed: int) -> tuple[float, float]:
    """Train with these lists. Return (difference of the loss from one machine's, bytes relative to GPipe's)."""
    plan = Flush(lists, chunks)

    def worker(comm, task, s):
        return Executor(comm, task, plan, s).run()

    values = {
        "algorithm": "gpipe", "workers": len(lists), "chunks": chunks, "depth": len(lists), "width": 16,
        "batch": 2 * chunks, "steps": 4, "learning_rate": 0.05, "evaluations": 1, "network": "ideal",
        "precision": "float64", "seed": seed,
    }  # fmt: skip
    done, gpipe = attempt.run(worker, **values).summary, run_now(**values).summary
    alone = run_now(**values | {"workers": 1, "chunks": 1}).summary
    return abs(done["held_out_loss"] - alone["held_out_loss"]), done["bytes"] / gpipe["bytes"]
