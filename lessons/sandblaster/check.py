"""Judge the coordinator of this chapter's exercise: the terms of each step's sum, and the cost.

The grader's workers label each gradient with its step and portion; the coordinator gets it without the label. So the
grader knows what has arrived by the end of each step, and which w must result.
"""

import random
from functools import partial

import numpy as np

from algorithms.parts.work_queue import WorkQueue
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.grading.grader import SolutionError
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed
from lessons.sandblaster.exercise import TARGETS

COORDINATOR = 0
POINTS = {
    "every step sums every portion exactly once": 4,
    "a slow worker holds nobody up": 4,
    "a lost worker does not stop it": 3,
    "few portions are computed twice": 2,
    "w is sent to a worker at most once per step": 2,
}
NETWORK = "1e-6:1e11:0"  # latency in s and bytes/s: messages take no time compared with a portion
STEPS = 6
CLOSE = 0.01  # of the smallest portion's share of a step: an older gradient differs by more
OTHERWISE = "judged only when every step has every portion"
SLOW = "judged only when a slow worker holds nobody up"


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    right, quick, steadfast, frugal, once = POINTS
    dice = random.Random(seed)
    workers = dice.randint(8, 10)
    portions = dice.randint(9, 11) * workers - dice.randint(1, workers - 1)
    slow, lost = dice.sample(range(1, workers + 1), 2)
    values = {
        "algorithm": "backup", "workers": workers, "backups": 0, "hidden": str(dice.randint(40, 60)), "steps": STEPS,
        "precision": "float64", "network": NETWORK, "jitter": "cloud", "slow": f"{slow}:{dice.randint(40, 60)}",
        "learning_rate": dice.uniform(0.4, 0.6), "evaluations": 1, "seed": experiment_seed(dice),
    }  # fmt: skip
    few = workers // 2 + dice.randint(0, 1)
    textbook = Handing(workers, portions)
    done = run(Experiment.of(values), worker_override=textbook.program(partial(_textbook, portions=portions)))
    with solution.attempt() as attempt:
        probe = Handing(workers, portions)
        attempt.run(probe.program(attempt.role("coordinator")), beside=done, **values)
        twice = Handing(
            workers, few
        )  # nearly every portion is computed twice, and some gradients arrive twice in a step
        attempt.run(twice.program(attempt.role("coordinator")), **{**values, "slow": ""})
        absent = probe.missing(STEPS) or _among_few(twice.missing(STEPS), few, workers)
        wrong = absent or probe.wrong or _among_few(twice.wrong, few, workers)
        yield (
            right,
            not wrong,
            wrong or f"{STEPS} steps of {portions} portions and {STEPS} of {few}, each portion once",
        )
        fast, told = _compared(probe, textbook)
        yield quick, not absent and fast, OTHERWISE if absent else told
        work = probe.computed / (STEPS * portions)
        told = f"{work:.2f} times as many portions were computed as there are; at most {TARGETS['work']} is allowed"
        if not fast:  # a solution that makes no copies at all would pass
            told = SLOW
        yield frugal, not absent and fast and work <= TARGETS["work"], OTHERWISE if absent else told
        most = max(probe.fetched.values(), default=0)
        told = f"w was sent to a worker up to {most} times in a step; {TARGETS['traffic']} is allowed"
        yield once, not absent and most <= TARGETS["traffic"], OTHERWISE if absent else told
    with solution.attempt() as attempt:
        after = dice.uniform(0.3, 0.5) * textbook.seconds
        values = {**values, "slow": "", "crash": f"{lost}:{after},{slow}:{1.2 * after}"}
        textbook, survivor = Handing(workers, portions), Handing(workers, portions)
        run(Experiment.of(values), worker_override=textbook.program(partial(_textbook, portions=portions)))
        attempt.run(survivor.program(attempt.role("coordinator")), **values)
        fast, told = _compared(survivor, textbook)
        stopped = survivor.missing(STEPS) or ("" if wrong else survivor.wrong)  # a wrong sum has already lost its mark
        earned = not absent and not stopped and fast
        yield steadfast, earned, OTHERWISE if absent else stopped or f"two workers lost; {told}"


def _among_few(said, few, workers):
    """Return what went wrong in the run with fewer portions than workers; "" if nothing did."""
    return said and f"with {few} portions for {workers} workers: {said}"


def _compared(probe, textbook):
    """Return whether a coordinator is about as fast as the textbook's, and a message."""
    times = probe.seconds / textbook.seconds
    told = f"its steps take {times:.2f} times what the textbook's take; at most {TARGETS['time']} is allowed"
    return times <= TARGETS["time"], told


def _textbook(comm, task, s, portions):
    """Act as rank 0 with the work queue of `algorithms/parts`; return the final parameters."""
    w, free, turns = task.start(), set(range(1, comm.size)), {}
    step = 0
    for step in task.steps():
        queue, total = WorkQueue(portions, every=1), np.zeros_like(w)
        while not queue.is_done:
            for rank in sorted(free):
                if (portion := queue.assign(rank)) is not None:
                    comm.send(portion if turns.get(rank) == step else (w, portion), rank)
                    turns[rank] = step
                    free.discard(rank)
            rank, g = comm.recv_any()
            if g is None:
                free.discard(rank)
                turns.pop(rank, None)
                queue.forget_worker(rank)
                continue
            free.add(rank)
            if turns[rank] == step and queue.complete(rank) is not None:
                total += g
                queue.push_due(rank)
                queue.confirm(rank)
        w = w - s["learning_rate"] * total
        task.report(w)
    for rank in range(1, comm.size):
        comm.send(None, rank)
    return w


class Handing:
    """A proxy between a coordinator and its workers, which also acts as the workers.

    `absent` names the first step that was reported without all of its portions. `wrong` names the first step that had
    all portions, but was not taken with their sum. Each is "" if there is none. `computed` counts portions, `fetched`
    counts how often w was sent to a worker in a step, and `seconds` is when the last step was taken.
    """

    def __init__(self, workers: int, portions: int):
        self.workers, self.portions = workers, portions
        self.step = self.computed = 0
        self.absent, self.wrong, self.seconds = "", "", np.inf
        self.fetched: dict[tuple[int, int], int] = {}
        self.at = [-1] * (workers + 1)  # step whose w each worker has
        self.arrived: dict[int, np.ndarray] = {}  # gradients of this step, by portion

    def program(self, coordinate):
        """Return a program for all ranks: `coordinate(comm, task, s)` on rank 0, the grader's workers elsewhere."""

        def worker(comm, task, s):
            if comm.rank != COORDINATOR:
                return self.work(comm, task)
            self.comm, self.task, self.w, self.rate = comm, task, task.start(), s.learning_rate
            seen = {"rank": comm.rank, "size": comm.size, "send": self.send, "recv_any": self.recv_any}
            offered = {"learning_rate": s.learning_rate, "portions": self.portions}
            coordinate(
                Restricted("comm", **seen),
                Restricted("task", per_epoch=task.per_epoch, start=task.start, steps=task.steps, report=self.report),
                offered,
            )
            return self.w

        return worker

    def missing(self, steps: int) -> str:
        """Return a message about the first step that lacks portions, or about missing steps; "" if nothing is
        missing.
        """
        return self.absent or ("" if self.step == steps else f"{self.step} of {steps} steps were reported")

    def work(self, comm, task):
        """Act as a worker, which computes the requested portions until there are none; return the final parameters."""
        w = None
        indices = np.array_split(np.arange(task.workload.samples), self.portions)
        while (order := comm.recv(COORDINATOR)) is not None:
            step, portion, *new = order
            w = new[0] if new else w
            self.computed += 1
            _, g = task.portion(w, indices[portion])
            comm.send((step, portion, g * (len(indices[portion]) / task.workload.samples)), COORDINATOR)
        return self.w

    def send(self, message, dst, tag=0):
        if not 1 <= dst <= self.workers:
            raise SolutionError(f"the coordinator sent a message to rank {dst}; workers are ranks 1 to {self.workers}.")
        if message is None:
            self.comm.send(None, dst, tag)
            return
        new, portion = message if isinstance(message, tuple) and len(message) == 2 else (None, message)
        if not (isinstance(portion, int) and 0 <= portion < self.portions):
            raise SolutionError(
                f"the coordinator sent {_shown(message)} to a worker; expected (w, portion), portion or None, where "
                f"portion is an integer from 0 to {self.portions - 1}."
            )
        if new is None:
            if self.at[dst] < 0:
                raise SolutionError(f"worker {dst} was given portion {portion}, but was never sent w.")
            self.comm.send((self.at[dst], portion), dst, tag)
            return
        if not (self.absent or self.wrong) and (
            np.shape(new) != self.w.shape or not np.allclose(new, self.w, rtol=1e-6, atol=1e-9)
        ):
            raise SolutionError(f"in step {self.step} worker {dst} was sent a w other than the one last reported.")
        self.at[dst] = self.step
        self.fetched[self.step, dst] = self.fetched.get((self.step, dst), 0) + 1
        self.comm.send((self.step, portion, self.w), dst, tag)

    def recv_any(self, tag=0):
        rank, message = self.comm.recv_any(tag)
        if message is None:
            return rank, None
        step, portion, g = message
        if step == self.step:
            self.arrived.setdefault(portion, g)
        return rank, g

    def report(self, w):
        wanted = self.w - self.rate * sum(self.arrived.values(), np.zeros_like(self.w))
        if len(self.arrived) < self.portions:
            self.absent = self.absent or (
                f"step {self.step} was reported with gradients of {len(self.arrived)} of {self.portions} portions "
                "computed at its w"
            )
        elif not (self.absent or self.wrong):
            least = self.rate * min(float(np.linalg.norm(g)) for g in self.arrived.values())
            if np.shape(w) != wanted.shape or not float(np.linalg.norm(w - wanted)) <= CLOSE * least:
                self.wrong = (
                    f"step {self.step} is not w - learning_rate * the sum of the gradients of its portions, each once"
                )
        self.w, self.arrived = wanted, {}
        self.step += 1
        self.seconds = self.comm.event_log.clock()
        self.task.report(wanted)


def _shown(message):
    return f"a tuple of {len(message)}" if isinstance(message, tuple) else type(message).__name__
