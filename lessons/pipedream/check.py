"""Judge the stage of this chapter's exercise: the weights its passes read, and the cost.

There are two runs, of many mini-batches and of few; memory is counted in both, and layers are so wide that weights are
most of it.
"""

import random

import numpy as np

import kernels
from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.neighbours import NeighbourComm
from lessons.grading.seeds import experiment_seed
from lessons.pipedream.exercise import TARGETS

POINTS = {
    "every mini-batch goes all the way and back, and leads to an update": 3,
    "the pipeline is never empty": 4,
    "no gradient is staler than necessary": 2,
    "each backward pass reads the weights that its forward pass read": 5,
    "it sends no more than it must": 1,
    "it holds no more versions than it must": 2,
    "it also works with fewer mini-batches than stages": 1,
}
WIDTHS = 220, 300  # neurons of a layer: 48,000 to 90,000 numbers each


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    right, full, fresh, stashed, frugal, lean, short = POINTS
    dice = random.Random(seed)
    stages, batches = dice.choice([4, 5, 6]), dice.randint(18, 24)
    values = {
        "algorithm": "pipedream", "workers": stages, "depth": 2 * stages - 2, "width": dice.randint(*WIDTHS),
        "batch": 8, "network": "ideal", "learning_rate": 0.05, "steps": batches, "evaluations": 1,
        "seed": experiment_seed(dice),
    }  # fmt: skip
    textbook = run_now(**values)
    best, held = textbook.summary, Held()
    with solution.attempt() as attempt:
        with held.measure(attempt):
            seen, done = _pipeline(attempt, textbook, **values)
        yield right, not seen.missing, seen.missing or f"{batches} mini-batches, {stages} stages"
        time, sent = (done.summary[what] / best[what] for what in ("seconds", "bytes"))
        quick = not seen.missing and time <= TARGETS["time"]
        yield full, quick, f"{time:.2f} times what the textbook's pipeline takes; at most {TARGETS['time']} is allowed"

        later = max(delay - (stages - 1 - stage) for stage, delay in enumerate(seen.delays))
        timely = quick and later <= TARGETS["staleness"]

        def if_timely(told):  # a stage that does all forwards first has only one version of the weights to read
            return told if timely else f"judged only when the pipeline is full{' and no gradient is too stale' * quick}"

        told = f"updates between a forward pass and its own update, {_listed(seen.delays)}"
        yield fresh, timely, told if quick else "judged only when the pipeline is full"
        same = timely and not any(seen.gaps)
        yield stashed, same, if_timely(f"updates between the weights of the two passes, {_listed(seen.gaps)}")
        told = f"{sent:.2f} times the bytes of the textbook's pipeline; at most {TARGETS['traffic']:g} is allowed"
        yield frugal, not seen.missing and sent <= TARGETS["traffic"], seen.missing or told
    needed = 4 * sum((stages - stage + 1) * size for stage, size in enumerate(seen.sizes))  # bytes
    with solution.attempt() as attempt:
        few = dice.randint(1, stages - 2)
        with held.measure(attempt):
            brief, _ = _pipeline(attempt, None, **{**values, "steps": few})
        yield short, not brief.missing, brief.missing or f"{few} mini-batches through {stages} stages"
    asked = f"at most {TARGETS['memory']} is allowed"
    little, told = held.check_limit(needed, TARGETS["memory"], f"{{:.2f}} times the memory that is needed; {asked}")
    yield lean, same and little, told if same else f"judged only when {stashed}"


def _listed(counts):
    return f"on stage 0, 1, ...: {', '.join(map(str, counts))}"


def _pipeline(attempt, beside, **values):
    """Return (probe, Run) of a pipeline whose stages are the solution's."""
    play, seen = attempt.role("stage"), PipelineProbe(values["workers"], values["steps"])
    done = attempt.run(
        lambda comm, task, s: play(
            NeighbourComm(comm, "stage", seen.arrived[comm.rank]), ObservedLayers(comm, task, s, seen), s
        ),
        beside=beside,
        **values,
    )
    return seen, done


class PipelineProbe:
    """Observations of all stages of a pipeline."""

    def __init__(self, stages: int, batches: int):
        self.batches = batches
        self.crossed: dict[tuple[str, int, int], np.ndarray] = {}  # ("F" or "B", from stage, mini-batch) -> what
        self.arrived: list[list[np.ndarray]] = [[] for _ in range(stages)]  # messages that no pass has taken
        self.delays, self.gaps, self.updates, self.sizes = ([0] * stages for _ in range(4))

    @property
    def missing(self) -> str:
        """A message about the first stage that lacks updates; "" if none does."""
        for stage, count in enumerate(self.updates):
            if count < self.batches:
                return f"stage {stage} made {count} updates for {self.batches} mini-batches"
        return ""


class ObservedLayers:
    """The task of one stage as the solution sees it, with the weight versions that the grader knows."""

    def __init__(self, comm, task, s, seen: PipelineProbe):
        self.task, self.rate, self.seen, self.index = task, s.learning_rate, seen, comm.rank
        self.stage = task.stage(comm.rank, comm.size)
        self.per_epoch, self.steps = task.per_epoch, lambda together=False: iter(range(seen.batches))
        self.versions = [self.stage.start()]  # (d_s,) each, oldest first; the last is the newest
        self.v = kernels.state_like(self.versions[0])
        self.flying = {}  # mini-batch -> version of its forward, what backward needs, dy on the last stage
        self.landed = None  # the gradient that waits for its update, and the version of its forward
        seen.sizes[self.index] = len(self.versions[0])

    def start(self):
        return self.versions[0].copy()

    def forward(self, w, x, batch):
        newest = len(self.versions) - 1
        if batch != newest + len(self.flying) + bool(self.landed) or batch >= self.seen.batches:
            raise SolutionError(f"stage {self.index} computed the forward pass of mini-batch {batch} before its turn.")
        ours, target = self.stage.chunk(batch) if self.stage.first or self.stage.last else (None, None)
        x = ours if self.stage.first else self._sent("F", self.index - 1, batch, x)
        version = self._version(w, f"the forward pass of mini-batch {batch}")
        y, saved = self.stage.forward(self.versions[version], x, f"F{batch}")
        dy = None
        if self.stage.last:
            y, (_, dy) = None, self.stage.loss(y, target, batch)
        self.flying[batch] = version, saved, dy
        self.seen.crossed["F", self.index, batch] = y
        return y

    def backward(self, w, dy, batch):
        if batch not in self.flying or batch != min(self.flying):
            raise SolutionError(f"stage {self.index} computed the backward pass of mini-batch {batch} before its turn.")
        if self.landed:
            raise SolutionError(
                f"stage {self.index} computed the backward pass of mini-batch {batch} before reporting its last update."
            )
        before, saved, ours = self.flying.pop(batch)
        dy = ours if self.stage.last else self._sent("B", self.index + 1, batch, dy)
        version = self._version(w, f"the backward pass of mini-batch {batch}")
        self.seen.gaps[self.index] = max(self.seen.gaps[self.index], abs(version - before))
        dx, g = self.stage.backward(self.versions[version], saved, dy, f"B{batch}")
        self.landed = g, before
        self.seen.crossed["B", self.index, batch] = dx
        return (None if self.stage.first else dx), g

    def report(self, w):
        if not self.landed:
            raise SolutionError(f"stage {self.index} reported an update without a gradient.")
        (g, version), self.landed = self.landed, None
        newest, seen = self.versions[-1], self.seen
        wanted, w = kernels.copy(newest), np.asarray(w, newest.dtype)
        kernels.momentum(wanted, self.v, g, self.rate, 0.0)  # as in the textbook's, so that it takes equally long
        if w.shape != wanted.shape or not np.allclose(w, wanted, rtol=1e-4, atol=1e-6):
            raise SolutionError(f"update {len(self.versions) - 1} of stage {self.index} is not w - learning_rate * g.")
        seen.delays[self.index] = max(seen.delays[self.index], len(self.versions) - 1 - version)
        self.versions.append(w)
        seen.updates[self.index] += 1
        self.task.report(w, self.stage.where)

    def _sent(self, kind, stage, batch, given):
        """Return `given`, and remove it from the messages that have arrived. Raise SolutionError if that stage did not
        compute it for this mini-batch, or if it has not arrived here.
        """
        sent = self.seen.crossed.get((kind, stage, batch))
        if sent is None or not np.array_equal(given, sent):
            passes = "forward" if kind == "F" else "backward"
            raise SolutionError(
                f"stage {self.index} computed the {passes} pass of mini-batch {batch} from something other than what "
                f"stage {stage} sent."
            )
        arrived = self.seen.arrived[self.index]
        brought = next((n for n, message in enumerate(arrived) if np.array_equal(message, sent)), None)
        if brought is None:  # all stages are one process, which may know more than messages have brought
            raise SolutionError(f"stage {self.index} used mini-batch {batch} before it had received it.")
        arrived.pop(brought)
        return given

    def _version(self, w, where) -> int:
        """Return the number of the version that `w` equals. Raise SolutionError if it equals none."""
        for version in reversed(range(len(self.versions))):
            if np.array_equal(w, self.versions[version]):
                return version
        raise SolutionError(f"{where} on stage {self.index} was given weights that are not a version of this stage's.")
