"""Judge the worker of this chapter's exercise by what its model has learned and what that cost.

The worker sees every problem in a `Disguise`, so that knowing the data or the optimum in advance does not help. Sizes
are random, and memory is counted in all runs.
"""

import random
from math import inf, isfinite, log10

import numpy as np

from algorithms.averaging import model_averaging
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.averaging.disguise import Disguise
from lessons.averaging.exercise import TARGETS
from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.seeds import experiment_seed, unguessable

POINTS = {
    "together they learn as much as one worker that sees all the data": 4,
    "down a valley they get farther than plain averaging": 3,
    "one worker alone is plain SGD": 1,
    "they send no more bytes than plain averaging": 1,
    "they take no longer than plain averaging": 1,
    "each holds few vectors at once": 2,
}
HIDDEN = 500, 800  # neurons that read digits: 37,500 to 60,000 parameters, in float32
VALLEY = 20_000, 30_000  # parameters, in float64
CONDITION = 300  # largest curvature over smallest
ALIKE = 1.1  # losses within this factor count as equal
OTHERWISE = "judged only when they learn as much as plain averaging does"
LAGGING = "judged only when they learn as much as one worker, or get farther down a valley than plain averaging"


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    together, valley, plain, frugal, quick, lean = POINTS
    dice = random.Random(seed)
    workers = dice.randint(5, 6)
    averaging = {"algorithm": "model_averaging", "period": dice.randint(3, 4)}
    digits = {
        "batch": 16, "epochs": 8, "hidden": str(dice.randint(*HIDDEN)), "learning_rate": 0.12, "network": "1GbE",
        "evaluations": 2, "seed": experiment_seed(dice),
    }  # fmt: skip
    one = run_now(algorithm="sgd", workers=1, **digits).summary
    textbook = run_now(workers=workers, **averaging, **digits)
    averages, held = textbook.summary, Held()
    narrow = {
        **averaging, "workload": "quadratic", "condition": CONDITION, "dimension": dice.randint(*VALLEY),
        "points": 2 * workers, "batch": 1, "kinds": workers, "stretch": 1, "apart": 1.0, "steps": 200, "period": 3,
        "learning_rate": 1.5, "precision": "float64", "evaluations": 1, "workers": workers,
    }  # fmt: skip
    made_up = False  # this takes vectors: plain averages need hardly any
    with solution.ranks(workers) as ranks, held.measure(*ranks):
        disguise = Disguise(unguessable(dice))
        done = _run(ranks, disguise, averages["steps"], beside=textbook, **averaging, **digits).summary
        silent = done["bytes"] < (workers - 1) * len(disguise.origin)  # a byte for each number of the others' models
        learned = not silent and done["held_out_loss"] <= ALIKE * averages["held_out_loss"]
        for mark, target, part, of in (
            (together, "loss", done["held_out_loss"] / one["held_out_loss"], "the loss of one worker"),
            (frugal, "traffic", done["bytes"] / averages["bytes"], "the bytes of plain averaging"),
            (quick, "time", done["seconds"] / averages["seconds"], "the time of plain averaging"),
        ):
            told = f"{part:.2f} times {of}; at most {TARGETS[target]} is allowed"
            if silent and mark == together:
                told = f"they sent {done['bytes']:,} bytes: too few to pass on what {workers} workers have learned"
            judged = learned or (mark == together and not silent)
            earned = judged and part <= TARGETS[target]
            made_up |= earned and mark == together
            yield mark, earned, told if judged or mark == together else OTHERWISE
        disguise = Disguise(unguessable(dice), anywhere=True)
        plainly = run(Experiment.of(narrow), worker_override=disguise.around(model_averaging.worker))
        gain = _progress(_run(ranks, disguise, 200, **narrow), disguise) / _progress(plainly, disguise)
        told = (
            f"{gain:.2f} times the progress of plain averaging, in powers of ten of the loss"
            if gain > 0
            else "it diverged"
        )
        made_up |= gain >= TARGETS["progress"]
        yield valley, gain >= TARGETS["progress"], f"{told}; at least {TARGETS['progress']} is required"
        # in float32, rounding moves a neuron across the kink of its ReLU in one grading of forty, and weights by 1e-4
        few = {**digits, "epochs": None, "steps": 30, "precision": "float64", "hidden": str(int(digits["hidden"]) // 2)}
        disguise = Disguise(unguessable(dice))
        alone, sgd = _run(ranks[:1], disguise, 30, **averaging, **few), run_now(algorithm="sgd", workers=1, **few)
        apart = float(np.abs(alone.parameters - sgd.parameters).max())
        yield plain, apart < 1e-4, f"after 30 steps alone, parameters are up to {apart:.2g} away from those of SGD"
    longest = max(8 * narrow["dimension"], textbook.parameters.nbytes, sgd.parameters.nbytes)
    told = f"{{:.1f}} vectors at once; at most {TARGETS['memory']} are allowed"
    few, told = held.check_limit(longest, TARGETS["memory"], told)
    yield lean, made_up and few, told if made_up else LAGGING


def _run(ranks, disguise, gradients, **values):
    """Run the experiment with `ranks[r]` as rank r, and return the Run. Each rank may compute at most `gradients`
    gradients. Raise SolutionError if no model was reported.
    """
    roles = [attempt.role("worker") for attempt in ranks]

    def worker(comm, task, s):
        roles[comm.rank](ArrayComm(comm), LimitedTask(task, comm.rank, gradients), s)

    done = ranks[0].run(disguise.around(worker), **{**values, "workers": len(ranks)})
    if done.parameters is None:
        raise SolutionError(done.error or "no rank has reported a model; rank 0 must call task.report(w).")
    return done


def _progress(done, disguise):
    """Return the number of powers of ten by which the loss fell in the valley, or minus infinity if training
    diverged.
    """
    curvature = np.geomspace(1, 1 / CONDITION, len(disguise.origin))  # the optimum is 0 in our coordinates
    before, after = (float(curvature @ np.square(w)) for w in (disguise.origin, done.parameters))
    return log10(before / after) if isfinite(after) and after > 0 else -inf


class ArrayComm:
    """A comm that can send arrays only, because the bytes of other values would not be counted."""

    def __init__(self, comm):
        self.comm = comm
        self.recv, self.recv_any, self.poll, self.barrier = comm.recv, comm.recv_any, comm.poll, comm.barrier

    rank = property(lambda self: self.comm.rank)
    size = property(lambda self: self.comm.size)

    def send(self, x, dst, tag=0):
        if dst == self.rank:  # the stored vector would not be counted
            raise SolutionError(f"rank {self.rank} sent a message to itself; messages are for other ranks.")
        self.comm.send(_array(x), dst, tag)

    def broadcast(self, x, src=0):
        return self.comm.broadcast(_array(x) if self.rank == src else None, src)

    def all_reduce(self, x, op="sum"):
        return self.comm.all_reduce(_array(x), op)


class LimitedTask:
    """A task that provides only a limited number of gradients."""

    def __init__(self, task, rank, gradients):
        self.task, self.rank, self.left = task, rank, gradients
        self.per_epoch, self.start, self.steps = task.per_epoch, task.start, task.steps
        self.measure, self.at, self.spent = task.measure, task.at, task.spent
        self.shape = task.start().shape

    def gradient(self, w):
        if not self.left:
            raise SolutionError(f"rank {self.rank} asked for more gradients than it has steps.")
        self.left -= 1
        return self.task.gradient(self._parameters(w))

    def report(self, w):
        self.task.report(self._parameters(w))

    def _parameters(self, w):
        if _array(w).shape != self.shape:
            raise SolutionError(f"rank {self.rank} has parameters of shape {w.shape}; expected {self.shape}.")
        return w


def _array(x):
    if not isinstance(x, np.ndarray):
        raise SolutionError(f"the solution passed a {type(x).__name__}; expected an array.")
    return x
