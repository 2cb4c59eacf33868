"""Judge the server of this chapter's exercise: what it does with each gradient, and when it answers each worker.

There are two runs. In the second a slow worker crashes; memory is counted in both.
"""

import random

import numpy as np

from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed
from lessons.staleness.exercise import TARGETS
from lessons.staleness.experiments import BOWL, HEAVY, slow, time_of

SERVER = 0
SIZES = 100_000, 160_000  # parameters: so many that everything else in a process is small
FAST = "1e-5:1e12:0"  # latency in s and bytes/s: vectors take no time, like short ones elsewhere
POINTS = {
    "every gradient is applied as it arrives": 2,
    "no worker is answered before the bound allows it": 3,
    "no worker waits longer than the bound requires": 3,
    "it sends no more than it must": 1,
    "it holds few vectors at once": 2,
    "a crashed worker does not stop it": 2,
}
MEMORY = "{{:.1f}} vectors at once, for {} workers; at most {} are allowed"
UNCOUNTED = "judged only when each gradient makes an update, and answers are right"
OTHERWISE = "judged only when gradients and answers are right"


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    counts, bounded, quick, frugal, lean, steadfast = POINTS
    dice = random.Random(seed)
    workers, bound, steps = dice.randint(10, 14), dice.randint(2, 4), 24
    values = {
        **BOWL, "algorithm": "ssp", "workers": workers, "bound": bound, "dimension": dice.randint(*SIZES),
        "noise": 1.0, "points": 32, "steps": steps, "slow": slow(workers), "jitter": "exponential", "network": FAST,
        "precision": "float32", "learning_rate": 0.1, "seed": experiment_seed(dice),
    }  # fmt: skip
    held = Held()
    textbook = run_now(**values)
    best = textbook.summary
    with solution.attempt() as attempt:
        probe = BoundProbe()
        with held.measure(attempt):
            done = attempt.run(attempt.server_program(probe, trainer), beside=textbook, **values)
        wrong = probe.miscounted or probe.misstepped
        told = f"{probe.counted} of {workers * steps} gradients, each in an update of its own"
        yield counts, not wrong and probe.counted == workers * steps, wrong or told
        yield bounded, not probe.misled, probe.misled or f"{probe.answers} answers, with a bound of {bound}"
        uncounted, right = probe.miscounted or probe.misled, not (wrong or probe.misled)
        for mark, quantity, target, kept in (
            (quick, "seconds", "time", probe.kept),
            (frugal, "bytes", "traffic", ""),
        ):
            part = done.summary[quantity] / best[quantity]
            yield (
                mark,
                not uncounted and not kept and part <= TARGETS[target],
                UNCOUNTED if uncounted
                else kept or f"{part:.2f} times what the textbook's server takes; at most {TARGETS[target]} is allowed",
            )  # fmt: skip
    lost = dice.randint(1, workers)  # ten times slower than the others, which wait for it when it crashes
    limping = {
        **values, "jitter": "none", "crash": f"{lost}:{800 / HEAVY * time_of(run_now, 1, values['dimension'])}",
        "slow": ",".join(f"{rank}:{1000 if rank == lost else 100}" for rank in range(1, workers + 1)),
    }  # fmt: skip
    with solution.attempt() as attempt:
        probe = BoundProbe()
        with held.measure(attempt):
            attempt.run(attempt.server_program(probe, trainer), **limping)
        through = sum(sent == steps for sent in probe.sent.values())
        wrong = probe.miscounted or probe.misled
        yield (
            steadfast,
            not wrong and through == workers - 1,
            wrong or f"{through} of the {workers - 1} others finished",
        )
    few, told = held.check_limit(4 * values["dimension"], TARGETS["memory"], MEMORY.format(workers, TARGETS["memory"]))
    yield lean, right and few, told if right else OTHERWISE


def trainer(comm, task):
    """Act as a worker: in each step send a gradient and wait for the answer. At the end, send None and return the last
    answer.
    """
    w = task.start()
    for _ in task.steps():
        _, g = task.gradient(w)
        comm.send(g, SERVER)
        w = comm.recv(SERVER)
    comm.send(None, SERVER)
    return w


class BoundProbe:
    """A proxy between a server and its cluster that checks updates and answers.

    `miscounted` names an update that did not apply exactly one gradient, and `misstepped` names an update with a wrong
    step. `misled` names a wrong answer, and `kept` names a worker that was kept waiting. Each is "" if there is none.
    """

    def __init__(self):
        self.miscounted, self.misstepped, self.misled, self.kept = "", "", "", ""
        self.counted, self.answers = 0, 0

    def wrap(self, comm, task, s):
        """Return (comm, task, s) for the server, observed by this probe."""
        self.comm, self.task, self.bound = comm, task, s.bound
        self.rate = s.learning_rate / (comm.size - 1)
        self.w = task.start()
        self.new = []  # gradients received since w was reported
        self.sent = dict.fromkeys(range(1, comm.size), 0)  # worker -> its gradients
        self.left, self.waiting = set(self.sent), set()
        seen = {"rank": comm.rank, "size": comm.size, "send": self.send, "recv_any": self.recv_any}
        return (
            Restricted("comm", **seen),
            Restricted("task", per_epoch=task.per_epoch, start=task.start, report=self.report),
            s,
        )

    def recv_any(self, tag=0):
        patient = next((rank for rank in self.waiting if self.ahead(rank) <= self.bound), None)
        if patient and not self.kept:
            self.kept = (
                f"rank {patient}, {self.ahead(patient)} gradients ahead of the slowest, was not answered before the "
                f"server received the next message; the bound is {self.bound}"
            )
        rank, g = self.comm.recv_any(tag)
        if g is None:
            self.left.discard(rank)
            self.waiting.discard(rank)
        else:
            self.new.append(g)
            self.sent[rank] += 1
            self.waiting.add(rank)
        return rank, g

    def send(self, x, dst, tag=0):
        if dst not in self.sent or np.shape(x) != self.w.shape:
            raise SolutionError(
                f"the server sent something of shape {np.shape(x)} to rank {dst}; send only w, of shape "
                f"{self.w.shape}, and only to workers."
            )
        if not self.misled and dst in self.left:
            if dst not in self.waiting:
                self.misled = f"rank {dst} was answered without having sent a gradient"
            elif self.ahead(dst) > self.bound:
                self.misled = (
                    f"rank {dst}, {self.ahead(dst)} gradients ahead of the slowest, was answered; "
                    f"the bound is {self.bound}"
                )
            elif not _close(x, self.now()):
                self.misled = f"rank {dst} was not answered with the newest parameters"
        self.waiting.discard(dst)
        self.answers += 1
        self.comm.send(np.asarray(x, self.w.dtype), dst, tag)

    def report(self, w):
        w = np.asarray(w, self.w.dtype)
        if w.shape != self.w.shape:
            raise SolutionError(f"the server reported something of shape {w.shape}; expected w.")
        if len(self.new) != 1:
            self.miscounted = self.miscounted or (f"update {self.counted} used {len(self.new)} gradients; expected 1")
        elif not self.misstepped and not _close(w, self.now()):
            self.misstepped = f"update {self.counted} is not w - learning_rate / workers * gradient"
        self.counted += len(self.new)
        self.w, self.new = w, []
        self.task.report(w)

    def ahead(self, rank):
        """Return how many more gradients a worker has sent than the slowest one."""
        return self.sent[rank] - min(self.sent[other] for other in self.left)

    def now(self):
        """Return the correct parameters after every gradient so far."""
        return self.w - self.rate * np.sum(self.new, axis=0) if self.new else self.w


def _close(a, b) -> bool:
    return np.allclose(a, b, rtol=1e-4, atol=1e-5)
