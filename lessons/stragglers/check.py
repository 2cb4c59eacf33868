"""Judge the server of this chapter's exercise: each of its updates, and the cost."""

from __future__ import annotations

import random
from itertools import count

import numpy as np

from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.stragglers.exercise import TARGETS
from lessons.stragglers.experiments import BOWL, slow
from tracing import COMPUTE, WAIT

SERVER = 0
POINTS = {
    "every update is the mean of the first gradients of its step": 4,
    "it takes no longer than it must": 3,
    "it sends no more than it must": 1,
    "it holds few vectors at once": 2,
    "a crashed worker does not stop it": 2,
}
OTHERWISE = "judged only when every update is right"


def check(solution, seed):
    """Yield (mark, whether it is earned, what was observed)."""
    right, quick, frugal, lean, steadfast = POINTS
    dice = random.Random(seed)
    workers, backups = dice.randint(10, 14), dice.randint(2, 3)
    values = {
        **BOWL, "algorithm": "backup", "workers": workers, "backups": backups, "dimension": 40, "noise": 1.0,
        "steps": 40, "slow": slow(workers), "jitter": "exponential", "network": "10GbE", "evaluations": 2,
        "learning_rate": 0.1, "seed": dice.randrange(10**6),
    }  # fmt: skip
    textbook = run_now(**values)
    best = textbook.summary
    with solution.attempt() as attempt:
        probe = BackupProbe(workers - backups)
        done = attempt.run(attempt.server_program(probe, trainer), beside=textbook, **values)
        yield (
            right,
            not probe.wrong and len(probe.updates) == values["steps"],
            (
                probe.wrong
                or f"{len(probe.updates)} updates of {values['steps']}, each of {workers - backups} gradients"
            ),
        )
        done_right = not probe.wrong and len(probe.updates) == values["steps"]
        for mark, quantity, target in ((quick, "seconds", "time"), (frugal, "bytes", "traffic")):
            part = done.summary[quantity] / best[quantity]
            told = f"{part:.2f} times what the textbook's server takes; at most {TARGETS[target]} is allowed"
            yield mark, done_right and part <= TARGETS[target], told if done_right else OTHERWISE
    with solution.attempt() as attempt:
        large = {**values, "dimension": 250_000, "noise": 0.0, "points": 64, "steps": 6, "evaluations": 1}
        attempt.run(attempt.server_program(BackupProbe(workers - backups), trainer), **large)
        held = attempt.peak_memory()
        vectors = held / (4 * large["dimension"]) if held else None
        yield lean, done_right and (vectors is None or vectors <= TARGETS["memory"]), (
            OTHERWISE if not done_right
            else "not measured on this system" if vectors is None
            else f"{vectors:.1f} vectors at once, for {workers} workers; at most {TARGETS['memory']} are allowed"
        )  # fmt: skip
    with solution.attempt() as attempt:
        lost = {**values, "crash": crashes(done.trace, dice)}
        survivor = BackupProbe(workers - backups)
        attempt.run(attempt.server_program(survivor, trainer), **lost)
        yield (
            steadfast,
            not survivor.wrong and len(survivor.updates) == values["steps"],
            (survivor.wrong or f"{len(survivor.updates)} updates of {values['steps']}, with two workers lost"),
        )


def crashes(trace, dice):
    """Return the setting `crash` by which two workers crash at once: one idle and counted, the other computing.

    `trace` is of the same server without crashes: until the first, a run with them is the same.
    """
    rank, kind, start, end = (trace.spans[name] for name in ("rank", "kind", "start", "end"))
    worker, third = rank != SERVER, trace.seconds() / 3
    waits = np.flatnonzero(worker & (kind == WAIT) & (start > third) & (end < 2 * third))
    waits = waits[np.argsort(end[waits] - start[waits])]
    wait = dice.choice(waits[-8:])  # of the longest: the gradient has arrived, and the step is not at its end
    at = (start[wait] + end[wait]) / 2
    computing = rank[worker & (kind == COMPUTE) & (start < at) & (at < end)]
    others = computing if len(computing) else np.unique(rank[worker & (rank != rank[wait])])
    return f"{rank[wait]}:{at},{dice.choice(others)}:{at}"


def trainer(comm, task):
    """Play a worker: send a gradient, wait for the answer, until that is None."""
    w = task.start()
    for step in count():
        task.at(step)
        _, g = task.gradient(w)
        comm.send(g, SERVER)
        w = comm.recv(SERVER)
        if w is None:
            return None


class BackupProbe:
    """Proxy between a server and its cluster that checks each update, made of `n` gradients.

    `wrong` says what was wrong with the first that was; "" as long as none is.
    """

    def __init__(self, n: int):
        self.n, self.wrong, self.updates = n, "", []

    def between(self, comm, task, s):
        """Return (comm, task, s) for the server, observed by this probe."""
        self.comm, self.task, self.rate = comm, task, s.learning_rate
        self.w = task.start()
        self.fresh, self.stale = [], set()  # gradients at w so far; workers that hold older parameters
        return Intercepted(comm, send=self.send, recv_any=self.recv_any), Intercepted(task, report=self.report), s

    def recv_any(self, tag=0):
        rank, g = self.comm.recv_any(tag)
        if g is not None and rank not in self.stale:
            self.fresh.append(g)
        return rank, g

    def send(self, x, dst, tag=0):
        if not (1 <= dst < self.comm.size and (x is None or np.shape(x) == self.w.shape)):
            raise SolutionError(
                f"it sent something of shape {np.shape(x)} to rank {dst}; expected w or None, to a worker."
            )
        if x is not None and np.array_equal(x, self.w):
            self.stale.discard(dst)
        self.comm.send(x if x is None else np.asarray(x, self.w.dtype), dst, tag)

    def report(self, w):
        w = np.asarray(w, self.w.dtype)
        step, self.fresh, fresh = len(self.updates), [], self.fresh
        self.stale = set(range(1, self.comm.size))
        if not self.wrong and len(fresh) != self.n:
            self.wrong = f"update {step} came after {len(fresh)} gradients of its step; expected {self.n}"
        elif not self.wrong:
            wanted = self.w - self.rate * np.mean(fresh, axis=0)
            if w.shape != wanted.shape or not np.allclose(w, wanted, rtol=1e-4, atol=1e-5):
                self.wrong = (
                    f"update {step} is not w - learning_rate * mean of the first {self.n} gradients of its step"
                )
        self.w = w
        self.updates.append(step)
        self.task.report(w)


class Intercepted:
    """An object with some of its methods replaced."""

    def __init__(self, thing, **overrides):
        self._thing, self._overrides = thing, overrides

    def __getattr__(self, name):
        return self._overrides.get(name) or getattr(self._thing, name)
