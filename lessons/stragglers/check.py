"""Judge the server of this chapter's exercise: each of its updates, and the cost.

There are two runs, which are the same until two workers crash in the second. Memory is counted in both.
"""

import random
from itertools import count

import numpy as np

from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed
from lessons.stragglers.exercise import TARGETS
from lessons.stragglers.experiments import BOWL, slow
from tracing import COMPUTE, WAIT

SERVER = 0
SIZES = 100_000, 160_000  # parameters: so many that everything else in a process is small
FAST = "1e-5:1e12:0"  # latency in s and bytes/s: vectors take no time, like short ones elsewhere
POINTS = {
    "every update is the mean of the first gradients of its step": 4,
    "it takes no longer than it must": 3,
    "it sends no more than it must": 1,
    "it holds few vectors at once": 2,
    "a crashed worker does not stop it": 2,
}
MEMORY = "{{:.1f}} vectors at once, for {} workers; at most {} are allowed"
UNCOUNTED = "judged only when every update is made of the first gradients of its step"
OTHERWISE = "judged only when every update is right"


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    right, quick, frugal, lean, steadfast = POINTS
    dice = random.Random(seed)
    workers, backups = dice.randint(10, 14), dice.randint(2, 3)
    values = {
        **BOWL, "algorithm": "backup", "workers": workers, "backups": backups, "noise": 1.0, "points": 32,
        "dimension": dice.randint(*SIZES), "steps": 24, "slow": slow(workers), "jitter": "exponential",
        "network": FAST, "evaluations": 2, "learning_rate": 0.1, "seed": experiment_seed(dice),
    }  # fmt: skip
    held = Held()
    textbook = run_now(**values)
    best = textbook.summary
    with solution.attempt() as attempt:
        probe = BackupProbe(workers - backups)
        with held.measure(attempt):
            done = attempt.run(attempt.server_program(probe, trainer), beside=textbook, **values)
        miscounted = probe.missing(values["steps"])
        wrong = miscounted or probe.misstepped
        told = f"{len(probe.updates)} updates, each of {workers - backups} gradients"
        yield right, not wrong, wrong or told
        for mark, quantity, target in ((quick, "seconds", "time"), (frugal, "bytes", "traffic")):
            part = done.summary[quantity] / best[quantity]
            told = f"{part:.2f} times what the textbook's server takes; at most {TARGETS[target]} is allowed"
            yield mark, not miscounted and part <= TARGETS[target], UNCOUNTED if miscounted else told
    with solution.attempt() as attempt:
        lost = {**values, "crash": crashes(done.trace, dice)}
        survivor = BackupProbe(workers - backups)
        with held.measure(attempt):
            attempt.run(attempt.server_program(survivor, trainer), **lost)
        stopped = survivor.missing(values["steps"])
        yield steadfast, not stopped, stopped or f"{len(survivor.updates)} updates, with two workers lost"
    few, told = held.check_limit(4 * values["dimension"], TARGETS["memory"], MEMORY.format(workers, TARGETS["memory"]))
    yield lean, not wrong and few, OTHERWISE if wrong else told  # a server that sums nothing holds nothing


def crashes(trace, dice):
    """Return the setting `crash` for two workers that crash at once: one that is idle and whose gradient was counted,
    and one that is computing.

    `trace` is that of the same server without crashes. Up to the first crash, both runs are the same.
    """
    rank, kind, start, end = (trace.spans[name] for name in ("rank", "kind", "start", "end"))
    worker, third = rank != SERVER, trace.seconds() / 3
    waits = np.flatnonzero(worker & (kind == WAIT) & (start > third) & (end < 2 * third))
    waits = waits[np.argsort(end[waits] - start[waits])]
    wait = dice.choice(waits[-8:])  # in the middle of the longest: the gradient has arrived, but the step has not ended
    at = (start[wait] + end[wait]) / 2
    computing = rank[worker & (kind == COMPUTE) & (start < at) & (at < end)]
    others = computing if len(computing) else np.unique(rank[worker & (rank != rank[wait])])
    return f"{rank[wait]}:{at},{dice.choice(others)}:{at}"


def trainer(comm, task):
    """Act as a worker: send a gradient and wait for the answer, until the answer is None."""
    w = task.start()
    for step in count():
        task.at(step)
        _, g = task.gradient(w)
        comm.send(g, SERVER)
        w = comm.recv(SERVER)
        if w is None:
            return None


class BackupProbe:
    """A proxy between a server and its cluster that checks each update, which should use `n` gradients.

    `miscounted` names the first update made of other gradients, and `misstepped` the first that did not take their
    mean. Each is "" if there is none.
    """

    def __init__(self, n: int):
        self.n, self.miscounted, self.misstepped, self.updates = n, "", "", []

    def missing(self, steps: int) -> str:
        """Return a message about an update that is missing or made of the wrong gradients; "" if there is none."""
        made = len(self.updates)
        return self.miscounted or ("" if made == steps else f"{made} updates of {steps}")

    def wrap(self, comm, task, s):
        """Return (comm, task, s) for the server, observed by this probe."""
        self.comm, self.task, self.rate = comm, task, s.learning_rate
        self.w = task.start()
        self.fresh, self.stale = [], set()  # gradients at w so far; workers that hold older parameters
        seen = {"rank": comm.rank, "size": comm.size, "send": self.send, "recv_any": self.recv_any}
        return (
            Restricted("comm", **seen),
            Restricted("task", per_epoch=task.per_epoch, start=task.start, steps=task.steps, report=self.report),
            s,
        )

    def recv_any(self, tag=0):
        rank, g = self.comm.recv_any(tag)
        if g is not None and rank not in self.stale:
            self.fresh.append(g)
        return rank, g

    def send(self, x, dst, tag=0):
        if not (1 <= dst < self.comm.size and (x is None or np.shape(x) == self.w.shape)):
            raise SolutionError(
                f"the server sent something of shape {np.shape(x)} to rank {dst}; send only w or None, and only to "
                "workers."
            )
        if x is not None and np.array_equal(x, self.w):
            self.stale.discard(dst)
        self.comm.send(x if x is None else np.asarray(x, self.w.dtype), dst, tag)

    def report(self, w):
        w = np.asarray(w, self.w.dtype)
        step, self.fresh, fresh = len(self.updates), [], self.fresh
        self.stale = set(range(1, self.comm.size))
        if len(fresh) != self.n:
            self.miscounted = self.miscounted or (
                f"update {step} came after {len(fresh)} gradients of its step; expected {self.n}"
            )
        elif not self.misstepped:
            wanted = self.w - self.rate * np.mean(fresh, axis=0)
            if w.shape != wanted.shape or not np.allclose(w, wanted, rtol=1e-4, atol=1e-5):
                self.misstepped = (
                    f"update {step} is not w - learning_rate * mean of the first {self.n} gradients of its step"
                )
        self.w = w
        self.updates.append(step)
        self.task.report(w)
