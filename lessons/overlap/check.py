"""Judge the plans of this chapter's exercise by running each on the simulated cluster, next to reference plans.

The layers of a run are vectors of random sizes, and the backward pass of each takes a random time. A solution returns
only plans, so only their behaviour on the cluster is judged.
"""

import random
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from experiments.execution.run import run
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from kernels import METER
from lessons.grading.grader import SolutionError
from lessons.overlap.exercise import TARGETS
from theory.collective_costs import share
from theory.overlap import Cost, StepCosts
from tracing import COMPUTE

POINTS = {
    "every layer is in one bucket": 1,
    "never slower than one message for everything, or than one per layer": 3,
    "near the best plan where messages are slow": 3,
    "near the best plan where messages are fast": 3,
    "near the best plan where one layer has most of the bytes": 4,
    "near the best plan of 150 layers": 2,
}
FLOPS = 1e12  # of the device: summing gradients takes practically no time
STEPS = 2
US, GB = 1e-6, 1e9
Plan = list[list[int]]


@dataclass(frozen=True)
class BucketCase:
    """A model and a network; `kind` is the mark that the case counts for."""

    kind: str
    sizes: tuple[int, ...]  # numbers of 4 bytes
    backward: tuple[float, ...]  # s
    workers: int
    latency: float
    bandwidth: float

    def arguments(self) -> tuple[list[dict], dict]:
        layers = [{"bytes": 4 * n, "backward": b} for n, b in zip(self.sizes, self.backward, strict=True)]
        return layers, {"workers": self.workers, "latency": self.latency, "bandwidth": self.bandwidth}

    def values(self) -> dict:
        """Return the settings of the experiment that runs a plan."""
        return {
            "algorithm": "sync_sgd", "workload": "quadratic", "dimension": 1, "points": 32, "batch": 1,
            "workers": self.workers, "latency": self.latency, "bandwidth": self.bandwidth, "steps": STEPS,
            "device": f"{FLOPS:g}:1e15:0", "evaluations": 1, "learning_rate": 0.1, "collective": "stream",
        }  # fmt: skip

    def worker(self, buckets: Plan):
        """Return a program for ranks. It overlaps the backward pass of each step with these all-reduces."""

        def worker(comm, task, s):
            w = task.start()
            for _ in task.steps(together=True):
                task.gradient(w)
                meter, left, in_flight = METER.get(), [*buckets], []
                with comm.event_log.doing(COMPUTE, "forward"):
                    meter.charge("forward", FLOPS * sum(self.backward) / 2, 0)
                for layer in reversed(range(len(self.sizes))):
                    with comm.event_log.doing(COMPUTE, f"B{layer}"):
                        meter.charge("backward", FLOPS * self.backward[layer], 0)
                    while left and min(left[0]) >= layer:
                        g = np.ones(sum(self.sizes[one] for one in left.pop(0)), np.float32)
                        in_flight.append(comm.all_reduce(g, op="mean", async_op=True))
                for handle in in_flight:
                    handle.wait()
                if comm.rank == 0:
                    task.report(w)
            return w

        return worker

    def run(self, buckets: Plan) -> Run:
        return run(Experiment.of(self.values()), worker_override=self.worker(buckets))

    def seconds(self, buckets: Plan) -> float:
        """Return the duration of a step with this plan, in s."""
        return self.run(buckets).summary["seconds"] / STEPS

    @property
    def naive(self) -> tuple[Plan, Plan]:
        """Two plans: one message at the end, and one message per layer."""
        layers = [*reversed(range(len(self.sizes)))]
        return [layers], [[layer] for layer in layers]

    @cached_property
    def best(self) -> Plan:
        """The plan with the shortest step."""
        start = 2 * (self.workers - 1) - 1  # the next all-reduce may begin while the last message is on its way
        line = Cost(start * self.latency, share(self.workers) * 4 / self.bandwidth)
        return fastest(StepCosts([0.0] * len(self.sizes), self.backward, self.sizes, line))


def fastest(p: StepCosts) -> Plan:
    """Return the buckets with which the network is free again soonest. Buckets are found for the last layer, then for
    the last two, and so on.
    """
    free, buckets = {p.layers: 0.0}, {p.layers: []}
    for first in reversed(range(p.layers)):
        ends = {stop: max(p.ready[first], free[stop]) + p.line(p.size(range(first, stop))) for stop in free}
        stop = min(ends, key=ends.get)
        free[first], buckets[first] = ends[stop], [*buckets[stop], [*range(first, stop)]]
    return buckets[0]


def draw_cases(dice: random.Random) -> list[BucketCase]:
    """Return cases with random sizes and times. Which cases are decided by latency, by bandwidth or by one large layer
    is fixed.
    """

    def some(layers: int, mean: float, spread: float = 0.2) -> list[float]:
        return [mean * dice.uniform(1 - spread, 1 + spread) for _ in range(layers)]

    def numbers(layers: int, mean: float, spread: float = 0.2) -> list[int]:
        return [int(n) for n in some(layers, mean, spread)]

    def case(kind: str, sizes: list[int], backward: list[float], latency: float, ratio: float) -> BucketCase:
        """Return a case in which sending all bytes takes `ratio` times as long as the backward pass."""
        workers = dice.choice((6, 8))
        bandwidth = share(workers) * 4 * sum(sizes) / (ratio * sum(backward))
        return BucketCase(kind, tuple(sizes), tuple(backward), workers, latency / (workers - 1), bandwidth)

    def equal(kind: str, latency: float, ratio: float) -> BucketCase:
        layers = dice.randint(18, 28)
        return case(kind, numbers(layers, 9000), some(layers, 60 * US), latency, ratio)

    layers = dice.randint(8, 11)
    last = case(  # dense layers at the end, after convolutions that take most of the time
        "one", [*numbers(layers, 2500), *numbers(2, 90_000)], [*some(layers, 150 * US), *some(2, 40 * US)],
        dice.uniform(40, 60) * US, dice.uniform(0.8, 1.0),
    )  # fmt: skip
    first = case(  # a large embedding, whose gradient is ready last
        "one", [*numbers(1, 120_000), *numbers(layers + 8, 9000)], [*some(1, 20 * US), *some(layers + 8, 80 * US)],
        dice.uniform(40, 60) * US, dice.uniform(1.0, 1.3),
    )  # fmt: skip
    between = case(
        "one", [*numbers(7, 4000), *numbers(1, 100_000), *numbers(7, 4000)], some(15, 100 * US),
        dice.uniform(30, 50) * US, dice.uniform(0.8, 1.0),
    )  # fmt: skip
    return [
        equal("slow", dice.uniform(60, 90) * US, dice.uniform(1.0, 1.2)),
        equal("slow", dice.uniform(60, 90) * US, dice.uniform(0.5, 0.7)),
        equal("fast", dice.uniform(0.1, 0.3) * US, dice.uniform(1.0, 1.2)),
        equal("fast", dice.uniform(0.1, 0.3) * US, dice.uniform(0.9, 1.0)),
        last,
        first,
        between,
        case(
            "150", numbers(150, 1500, 0.9), some(150, 12 * US, 0.9), dice.uniform(25, 40) * US, dice.uniform(0.9, 1.1)
        ),
    ]


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    whole, never, *near = POINTS
    cases = draw_cases(random.Random(seed))
    with solution.attempt() as attempt:
        plans = [parse_plan(attempt.call("plan", *case.arguments()), len(case.sizes)) for case in cases]
        one = cases[0]  # for the timelines of the report
        attempt.run(one.worker(plans[0]), beside=one.run(one.best), **one.values())
    yield whole, True, f"{', '.join(str(len(one)) for one in plans)} buckets, in {len(cases)} models"
    best, mine = ([case.seconds(one) for case, one in zip(cases, some, strict=True)]
                  for some in ([case.best for case in cases], plans))  # fmt: skip
    beside = [took / min(map(case.seconds, case.naive)) for case, took in zip(cases, mine, strict=True)]
    told = f"at worst {max(beside):.2f} times as long as the faster of one message for everything and one per layer"
    told += f"; at most {TARGETS['naive']:g} is allowed"
    order = next(filter(None, map(order_error, plans)), "")
    yield never, max(beside) <= TARGETS["naive"], f"{told}. {order}" if order else told
    for mark, kind in zip(near, ("slow", "fast", "one", "150"), strict=True):
        parts = [took / least for case, took, least in zip(cases, mine, best, strict=True) if case.kind == kind]
        told = f"{', '.join(f'{part:.3f}' for part in parts)} times the step time of the best plan"
        yield mark, max(parts) <= TARGETS["time"], f"{told}; at most {TARGETS['time']} is allowed"


def order_error(plan: Plan) -> str:
    """Return a message about the first bucket that is sent before one that is ready earlier; "" if there is none.

    Back-propagation ends with layer 0, so a bucket is ready with the lowest of its layers.
    """
    for bucket, later in pairwise(plan):
        if min(later) > min(bucket):
            return (
                f"A bucket with layer {min(bucket)} is sent before one with layer {min(later)}, whose gradients are "
                f"ready earlier: back-propagation ends with layer 0. So everything sent later waits; send the last "
                f"layers first"
            )
    return ""


def parse_plan(found, layers: int) -> Plan:
    """Return a plan as lists of whole numbers. Raise SolutionError if it is invalid."""
    if not isinstance(found, list | tuple) or not all(isinstance(one, list | tuple) and len(one) for one in found):
        raise SolutionError(f"plan returned {str(found)[:60]!r}; expected a list of buckets, each a list of layers.")
    numbers = [layer for bucket in found for layer in bucket]
    if not all(isinstance(layer, int) and not isinstance(layer, bool) for layer in numbers):
        raise SolutionError(f"plan returned {str(found)[:60]!r}; layers are whole numbers.")
    if sorted(numbers) != [*range(layers)]:
        twice = next((layer for layer in numbers if numbers.count(layer) > 1), None)
        wrong = [layer for layer in numbers if not 0 <= layer < layers]
        said = (
            f"there is no layer {wrong[0]}" if wrong else f"layer {twice} is sent twice" if twice is not None
            else f"layer {min({*range(layers)} - {*numbers})} is never sent"
        )  # fmt: skip
        raise SolutionError(f"a plan for {layers} layers: {said}.")
    return [[*bucket] for bucket in found]
