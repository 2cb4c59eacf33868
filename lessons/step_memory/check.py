"""Judge the plans of this chapter's exercise: count what each holds, and run a step of each on the simulated cluster.

The layers of a run are sizes and times. A solution returns only plans, so only what they hold and how long they take is
judged, next to the best plan that fits.
"""

import random
from dataclasses import dataclass
from functools import cached_property

from experiments.execution.run import run
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from kernels import METER
from lessons.grading.grader import SolutionError
from lessons.step_memory.exercise import TARGETS
from theory.recomputation import AGAIN, KEEP, ChainLayer, Plan, best_plan, peak_bytes
from tracing import COMPUTE

POINTS = {
    "every layer is in one segment": 1,
    "nothing is repeated if everything fits": 2,
    "its plans fit into the limit": 3,
    "it fits where few plans do": 3,
    "near the best plan of layers that are alike": 3,
    "near the best plan where some layers keep much and take little time": 4,
    "near the best plan of 90 layers": 2,
}
OVER = 1.07  # times the limit: the overflow of a plan that forgets an input, whose time is judged all the same
UNFIT = f"judged only when plans hold at most {OVER:g} times the limit"
UNUSED = "judged only when something is recomputed where not all activations fit"
FLOPS = 1e12  # of the device
US = 1e-6


@dataclass(frozen=True)
class ChainCase:
    """A chain of layers and a limit; `kind` is the keyword of the mark that the case counts for."""

    kind: str
    layers: tuple[ChainLayer, ...]  # MB and microseconds
    limit: int  # MB

    def arguments(self) -> tuple[list[dict], int]:
        return [{"input": a, "kept": b, "forward": int(t)} for a, b, t in self.layers], self.limit

    def values(self) -> dict:
        """Return the settings of the experiment that runs a plan."""
        return {
            "algorithm": "sgd", "workload": "quadratic", "dimension": 1, "points": 32, "batch": 1, "workers": 1,
            "steps": 1, "evaluations": 1, "learning_rate": 0.1, "device": f"{FLOPS:g}:1e15:0",
        }  # fmt: skip

    def worker(self, plan: Plan):
        """Return a program for a rank that runs a step with this plan."""

        def worker(comm, task, s):
            def passes(label: str, some: range, times: int) -> None:
                with comm.event_log.doing(COMPUTE, label):
                    METER.get().charge(label, FLOPS * times * US * sum(self.layers[n].forward for n in some), 0)

            w = task.start()
            for _ in task.steps():
                task.gradient(w)
                passes("forward", range(len(self.layers)), 1)
                end = len(self.layers)
                for how, count in reversed(plan):
                    some = range(end - count, end)
                    if how == AGAIN:
                        passes(f"again {some[0]}", some, 1)
                    passes(f"backward {some[0]}", some, 2)
                    end -= count
                task.report(w)
            return w

        return worker

    def run(self, plan: Plan) -> Run:
        return run(Experiment.of(self.values()), worker_override=self.worker(plan))

    def seconds(self, plan: Plan) -> float:
        return self.run(plan).summary["seconds"]

    def peak(self, plan: Plan) -> float:
        """Return the peak memory of a plan, as a multiple of the limit."""
        return peak_bytes(self.layers, plan) / self.limit

    @cached_property
    def best(self) -> Plan:
        """The plan with the shortest step among those that fit the limit."""
        found = best_plan(self.layers, self.limit)
        assert found is not None, "draw_cases leaves room for one"
        return found


def least_peak(layers: tuple[ChainLayer, ...]) -> int:
    """Return the smallest limit, in MB, under which a plan fits."""
    low, high = 0, sum(layer.kept for layer in layers)  # the first is too small, the second is not
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if best_plan(layers, middle) else (middle, high)
    return high


def draw_cases(dice: random.Random) -> list[ChainCase]:
    """Return cases of fixed kinds, each with random layers and a random limit."""

    def alike(count: int, entered: int, kept: int, forward: int) -> tuple[ChainLayer, ...]:
        return (ChainLayer(entered, kept, forward),) * count

    def attention(blocks: int, scores: int) -> tuple[ChainLayer, ...]:
        """Return attention blocks of three layers. The middle layer, the scores, keeps more than the products around it
        and takes less time.
        """
        chain = []
        for _ in range(blocks):
            chain += [
                ChainLayer(2, dice.randint(6, 9), dice.randint(90, 120)),
                ChainLayer(2, scores + dice.randint(0, 6), dice.randint(15, 30)),
                ChainLayer(2, dice.randint(8, 12), dice.randint(180, 240)),
            ]
        return tuple(chain)

    def share(layers, part: float) -> int:
        """Return a memory limit in MB. It is the lowest possible one for a `part` of 0, and all activations for a
        `part` of 1.
        """
        least, whole = least_peak(layers), sum(layer.kept for layer in layers)
        return round(least + part * (whole - least))

    first = alike(dice.randint(16, 20), 6, dice.randint(10, 14), dice.randint(80, 120))
    second = alike(dice.randint(20, 24), 1, dice.randint(5, 8), dice.randint(80, 120))
    third, fourth = attention(6, 24), attention(5, 30)
    forward = dice.randint(40, 160)  # the same in all 90 layers, so that what differs is only how much each keeps
    many = tuple(ChainLayer(1, dice.randint(2, 7), forward) for _ in range(90))
    return [
        ChainCase("alike", first, share(first, dice.uniform(0.35, 0.5))),
        ChainCase("alike", second, share(second, dice.uniform(0.15, 0.25))),
        ChainCase("some", third, share(third, dice.uniform(0.15, 0.25))),
        ChainCase("some", fourth, share(fourth, dice.uniform(0.4, 0.5))),
        ChainCase("90", many, share(many, dice.uniform(0.2, 0.3))),
        ChainCase("tight", first, least_peak(first)),
        ChainCase("tight", fourth, least_peak(fourth)),
        ChainCase("everything", second, sum(layer.kept for layer in second)),
    ]


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    whole, nothing, fits, tight, *near = POINTS
    drawn = draw_cases(random.Random(seed))
    cases, few = [case for case in drawn if case.kind != "tight"], [case for case in drawn if case.kind == "tight"]
    with solution.attempt() as attempt:
        plans = [parse_plan(attempt.call("plan", *case.arguments()), len(case.layers)) for case in cases]
        one = cases[2]  # for the timelines of the report
        attempt.run(one.worker(plans[2]), beside=one.run(one.best), **one.values())
    yield whole, True, f"{', '.join(str(len(one)) for one in plans)} segments, in {len(cases)} models"
    *elsewhere, again = [sum(count for how, count in one if how == AGAIN) for one in plans]
    told = f"{again} of {len(cases[-1].layers)} layers are recomputed where all activations fit"
    yield nothing, any(elsewhere) and not again, told if any(elsewhere) else UNUSED
    told = "plans hold up to {:.3f} times the limit; at most {:g} is allowed".format
    peaks = [case.peak(one) for case, one in zip(cases, plans, strict=True)]
    yield fits, max(peaks) <= TARGETS["memory"], told(max(peaks), TARGETS["memory"])
    peaks = []
    with solution.attempt() as attempt:
        for case in few:
            peaks.append(case.peak(parse_plan(attempt.call("plan", *case.arguments()), len(case.layers))))
    done = len(peaks) == len(few)  # an error of the solution ends its attempt, and is reported
    lean = done and max(peaks) <= TARGETS["memory"]
    yield tight, lean, told(max(peaks), TARGETS["memory"]) if done else "the solution failed on such a model"
    for mark, kind in zip(near, ("alike", "some", "90"), strict=True):
        chosen = [(case, one) for case, one in zip(cases, plans, strict=True) if case.kind == kind]
        parts = [case.seconds(one) / case.seconds(case.best) for case, one in chosen]
        held = all(case.peak(one) <= OVER for case, one in chosen)
        words = f"{', '.join(f'{part:.4f}' for part in parts)} times the step time of the best plan that fits"
        words += f"; at most {TARGETS['time']} is allowed"
        yield mark, held and max(parts) <= TARGETS["time"], words if held else UNFIT


def parse_plan(found, layers: int) -> Plan:
    """Return a plan as a list of (how, count). Raise SolutionError if it is invalid."""
    if not isinstance(found, list | tuple) or not all(isinstance(one, list | tuple) and len(one) == 2 for one in found):
        raise SolutionError(f"plan returned {str(found)[:60]!r}; expected a list of pairs (how, count).")
    for how, count in found:
        if how not in (KEEP, AGAIN):
            raise SolutionError(f"plan has a segment {str(how)[:20]!r}; use 'keep' or 'again'.")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise SolutionError(f"plan has a segment of {str(count)[:20]} layers; use a whole number, 1 or more.")
    if (total := sum(count for _, count in found)) != layers:
        raise SolutionError(f"the segments of the plan have {total} layers in all; expected {layers}.")
    return [(how, count) for how, count in found]
