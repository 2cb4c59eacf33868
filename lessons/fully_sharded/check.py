"""Judge the worker of this chapter's exercise: what its passes read, when they run, and how much it holds and sends.

The layers stay in the grader's process. Each pass should read what the textbook's worker reads there, to the last bit.
The clock is the simulated cluster's, and memory is what the operating system reports. How far ahead a rank gathers is
inferred from the numbers that it has sent.
"""

from __future__ import annotations

import random
from itertools import accumulate
from types import SimpleNamespace
from typing import ClassVar

import numpy as np

from algorithms.synchronous.hsdp import gather_ahead
from cluster.comm import nbytes
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from kernels import METER
from kernels.arrays import shares
from lessons.fully_sharded.exercise import TARGETS
from lessons.grading.contract import ARRAY, BATCH, Takes
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.restricted import Restricted
from tracing import COMPUTE

POINTS = {
    "every pass reads the whole layer, and training is the same to the bit": 4,
    "gathers hide behind the forward pass": 4,
    "gathers hide behind the backward pass": 4,
    "no layer is gathered too early": 3,
    "a layer is freed after its pass": 3,
    "ranks send no more than they must": 2,
    "it works if asked to prefetch no layers, or more than there are, and on one rank": 2,
}
UNTRAINED = "judged only when training is the same as the textbook's"
EXPOSED = "judged only when gathers hide behind at least one of the passes"
FLOPS = 1e12  # of the device
TOKENS = 60  # of a mini-batch: a forward pass takes 2 FLOPs for each of them and each number of a layer
STEPS = 2


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    right, forward, backward, early, forgotten, frugal, general = POINTS
    dice = random.Random(seed)
    ranks, ahead = 4, dice.choice([1, 2])
    layers = [ranks * dice.randint(23_000, 27_000) for _ in range(dice.randint(14, 16))]
    ours = ShardedModel(ranks, layers, ahead, seed)
    best = ours.play([textbook] * ranks)
    theirs = ShardedModel(ranks, layers, ahead, seed, model=ours)
    held = Held()
    with solution.ranks(ranks) as attempts, held.measure(*attempts):
        done = theirs.play([one.role("worker") for one in attempts], attempts[0], beside=best)
    wrong = theirs.missing()
    yield right, not wrong, wrong or f"{ranks} ranks, {len(layers)} layers, {STEPS} steps"
    hidden = []
    for mark, phase in ((forward, "forward"), (backward, "backward")):
        times = theirs.seconds[phase] / ours.seconds[phase]
        hidden.append(not wrong and times <= TARGETS[phase])
        told = f"the {phase} passes take {times:.2f} times the textbook's time; at most {TARGETS[phase]} is allowed"
        yield mark, hidden[-1], UNTRAINED if wrong else told
    otherwise = UNTRAINED if wrong else "" if any(hidden) else EXPOSED
    told = f"gathers are up to {theirs.ahead} layers ahead of the computation; at most {ahead} are allowed"
    yield early, not otherwise and theirs.ahead <= ahead, otherwise or told
    needed = 4 * (2 * sum(layers) // ranks + (ahead + 2) * max(layers))  # bytes
    few, told = held.check_limit(
        needed,
        TARGETS["memory"],
        f"a rank holds {{:.2f}} times the memory it needs; at most {TARGETS['memory']} is allowed",
    )
    yield forgotten, not otherwise and few, otherwise or told
    times = done.summary["bytes"] / best.summary["bytes"]
    told = f"it sends {times:.2f} times the bytes of the textbook's worker; at most {TARGETS['traffic']} is allowed"
    yield frugal, not otherwise and times <= TARGETS["traffic"], otherwise or told
    told = "" if otherwise else _other_sizes(solution, dice)
    yield general, not otherwise and not told, otherwise or told or "prefetch 0; prefetch 9 with 5 layers; 1 rank"


def textbook(comm, task, s):
    """Train as HSDP does with one group, and return this rank's pieces of all layers, (d / ranks,)."""
    w = task.start()  # (d / N,)
    g = np.empty_like(w)
    layers = range(len(s.layers))
    ends = [0, *accumulate(len(range(n)[shares(n, comm.size)[comm.rank]]) for n in s.layers)]
    places = [slice(ends[layer], ends[layer + 1]) for layer in layers]
    pieces = SimpleNamespace(mine=w, piece=lambda layer: places[layer])
    for _ in task.steps(together=True):
        for layer, (whole, _) in zip(layers, gather_ahead(comm, layers, pieces, s.prefetch), strict=True):
            task.forward(layer, whole)
        backwards = layers[::-1]
        for layer, (whole, _) in zip(backwards, gather_ahead(comm, backwards, pieces, s.prefetch), strict=True):
            g[places[layer]] = comm.reduce_scatter(task.backward(layer, whole), op="mean")
        w -= s.learning_rate * g
        task.report(w)
    return w


def _other_sizes(solution, dice: random.Random) -> str:
    """Try small runs at the limits of `s.prefetch` and of the number of ranks.

    Return a message about the first run that fails, or "" if none does.
    """
    odd = [dice.randint(5, 40) for _ in range(5)]
    tried = [(2, [2 * n for n in odd], 0), (3, odd, 9), (1, odd, 1)]
    with solution.ranks(3) as attempts:
        for ranks, layers, ahead in tried:
            seed = dice.randrange(10**6)
            ours = ShardedModel(ranks, layers, ahead, seed)
            ours.play([textbook] * ranks)
            theirs = ShardedModel(ranks, layers, ahead, seed, model=ours)
            theirs.play([one.role("worker") for one in attempts[:ranks]], attempts[0])
            said = theirs.missing()
            if not said and not ahead and theirs.ahead:
                said = f"it gathered {theirs.ahead} layers ahead"
            if said:
                return f"{ranks} rank{'s' * (ranks > 1)}, prefetch {ahead}: {said}"
        return ""
    return "it failed there"  # an error of the solution ends its attempts, and is reported


class ShardedModel:
    """A model whose layers are sharded over `ranks` ranks.

    It records what each rank reports and how long its passes take. If `model` is given, its numbers are compared with
    those of `model`.
    """

    def __init__(self, ranks: int, layers: list[int], ahead: int, seed: int, model: ShardedModel | None = None):
        self.ranks, self.layers, self.prefetch, self.seed, self.model = ranks, layers, ahead, seed, model
        dice = np.random.default_rng(seed)
        self.start = [dice.normal(size=n).astype(np.float32) for n in layers]
        self.reported: list[dict[int, np.ndarray]] = [{} for _ in range(STEPS)]  # by step and rank
        self.wrong, self.ahead = "", 0
        self.seconds = {"forward": 0.0, "backward": 0.0}  # of all steps, on rank 0

    def play(self, plays, attempt=None, beside=None):
        """Run the training with `plays[r]` as rank r, and return the Run. It runs in the sandbox of `attempt`, if
        given.
        """
        given = {"layers": self.layers, "prefetch": self.prefetch, "learning_rate": 0.125}
        busy = 2 * TOKENS * sum(self.layers) / FLOPS  # s of a forward pass
        bandwidth = max(self.ranks - 1, 1) / self.ranks * 4 * sum(self.layers) / (0.7 * busy)
        values = {
            "algorithm": "sync_sgd", "workload": "quadratic", "dimension": 1, "points": 32, "batch": 1, "steps": STEPS,
            "evaluations": 1, "learning_rate": 0.1, "workers": self.ranks, "device": f"{FLOPS:g}:1e15:0",
            "latency": 1e-9, "bandwidth": bandwidth,
        }  # fmt: skip

        def worker(comm, task, s):
            side = ShardSide(self, comm, task)
            settings = given if attempt else Restricted("s", **given)
            plays[comm.rank](side.comm(), side, settings)

        if attempt:
            return attempt.run(worker, beside=beside, **values)
        return run(Experiment.of(values), worker_override=worker)

    def missing(self) -> str:
        """Return a message about what is missing or wrong in the training, or "" if nothing is."""
        if self.wrong:
            return self.wrong
        for step, reported in enumerate(self.reported):
            for rank in range(self.ranks):
                if rank not in reported:
                    return f"rank {rank} did not report step {step}"
                if self.model and not np.array_equal(reported[rank], self.model.reported[step][rank]):
                    return f"in step {step} rank {rank} reported other numbers than the textbook's worker"
        return ""

    def pieces(self, step: int, rank: int) -> np.ndarray:
        """Return the pieces of all layers that a rank holds before this step, (d / ranks,)."""
        if step:
            return self.reported[step - 1][rank]
        return np.concatenate([w[shares(len(w), self.ranks)[rank]] for w in self.start])

    def whole(self, step: int, layer: int) -> np.ndarray:
        """Return all weights of a layer as they are before this step, (n,)."""
        found = []
        for rank in range(self.ranks):
            sizes = [len(w[shares(len(w), self.ranks)[rank]]) for w in self.start]
            first = sum(sizes[:layer])
            found.append(self.pieces(step, rank)[first : first + sizes[layer]])
        return np.concatenate(found)

    def gradient(self, step: int, layer: int, rank: int, whole: np.ndarray) -> np.ndarray:
        """Return a made-up gradient of a layer, (n,).

        It depends only on the weights, the seed, the step, the layer and the rank.
        """
        dice = np.random.default_rng((self.seed, step, layer, rank))
        return (0.25 * whole + dice.standard_normal(len(whole), dtype=np.float32)).astype(np.float32)


class ShardSide:
    """The task of one rank, as the solution sees it."""

    takes: ClassVar[dict[str, Takes]] = dict.fromkeys(
        ("forward", "backward"), (("the number of a layer", BATCH[1]), ("all numbers of the layer, an array", ARRAY[1]))
    )

    def __init__(self, model: ShardedModel, comm, task):
        self._model, self._comm, self._task = model, comm, task
        self.per_epoch = task.per_epoch
        layers = [*range(len(model.layers))]
        self._order = [("forward", layer) for layer in layers] + [("backward", layer) for layer in reversed(layers)]
        own = [len(w[shares(len(w), model.ranks)[comm.rank]]) for w in model.start]
        self._reach = [*accumulate((model.ranks - 1) * own[layer] for _, layer in self._order)]  # numbers sent by then
        self._step = self._passed = self._sent = 0

    def comm(self):
        """Return the comm that the worker gets."""
        names = "isend", "irecv", "send", "recv", "all_gather", "reduce_scatter"
        parts = {name: getattr(self._comm, name) for name in names}
        parts |= {"isend": self._isend, "send": self._send, "all_gather": self._all_gather}
        return Restricted("comm", rank=self._comm.rank, size=self._comm.size, **parts)

    def start(self):
        """Return this rank's pieces of all layers, (d / ranks,)."""
        return self._model.pieces(0, self._comm.rank).copy()

    def steps(self, together=False):
        """Yield the number of each step, and record the time at which the step begins."""
        for step in self._task.steps(together):
            self._began = self._comm.event_log.clock()
            yield step

    def forward(self, layer, whole):
        """Check the input of a layer's forward pass, and advance the clock by the time of the pass."""
        self._pass("forward", layer, whole, 1)

    def backward(self, layer, whole):
        """Check the input of a layer's backward pass, advance the clock by the time of the pass, and return the layer's
        gradient, (n,).
        """
        self._pass("backward", layer, whole, 2)
        return self._model.gradient(self._step, layer, self._comm.rank, np.asarray(whole, np.float32))

    def report(self, w):
        """End the step and record `w`, this rank's new pieces of all layers, (d / ranks,)."""
        if self._passed < len(self._order):
            raise SolutionError(f"rank {self._comm.rank} called task.report before the {self._next()}.")
        self._time("backward")
        wanted = self._model.pieces(0, self._comm.rank)
        if not isinstance(w, np.ndarray) or w.shape != wanted.shape:
            raise SolutionError(f"task.report takes this rank's pieces, a vector of {len(wanted)} numbers.")
        self._model.reported[self._step][self._comm.rank] = w.astype(np.float32)
        self._step, self._passed, self._sent = self._step + 1, 0, 0
        if self._comm.rank == 0:
            self._task.report(self._task.start())

    def _pass(self, phase: str, layer: int, whole, times: int):
        if self._passed == len(self._order) or self._order[self._passed] != (phase, layer):
            raise SolutionError(
                f"rank {self._comm.rank} called task.{phase} of layer {layer} where the {self._next()} was due."
            )
        if phase == "backward" and layer == len(self._model.layers) - 1:
            self._time("forward")
        if whole.shape != (self._model.layers[layer],):
            raise SolutionError(
                f"task.{phase} of layer {layer} takes all of its {self._model.layers[layer]} numbers, but was given an "
                f"array of shape {whole.shape}."
            )
        known = self._model.model
        if known and not self._model.wrong and not np.array_equal(whole, known.whole(self._step, layer)):
            self._model.wrong = (
                f"in step {self._step} rank {self._comm.rank} called task.{phase} of layer {layer} with numbers that "
                "are not the layer's weights"
            )
        with self._comm.event_log.doing(COMPUTE, f"{phase[0].upper()}{layer}"):
            METER.get().charge("matmul", 2 * TOKENS * times * self._model.layers[layer], 0)
        self._passed += 1

    def _next(self) -> str:
        if self._passed == len(self._order):
            return "report of the step"
        phase, layer = self._order[self._passed]
        return f"{phase} pass of layer {layer}"

    def _time(self, phase: str):
        """Add the time since the last call to the seconds of this phase. Only rank 0 is timed."""
        now = self._comm.event_log.clock()
        if self._comm.rank == 0:
            self._model.seconds[phase] += now - self._began
        self._began = now

    def _isend(self, x, dst, *tag):
        self._sends(x, 1)
        return self._comm.isend(x, dst, *tag)

    def _send(self, x, dst, *tag):
        self._sends(x, 1)
        self._comm.send(x, dst, *tag)

    def _all_gather(self, x):
        self._sends(x, self._comm.size - 1)
        return self._comm.all_gather(x)

    def _sends(self, x, times: int):
        """Count the numbers of a message among those sent in this step.

        Also record how many layers ahead of the next pass the numbers sent so far reach.
        """
        self._sent += times * nbytes(x) / 4
        reached = next((n for n, numbers in enumerate(self._reach) if self._sent <= numbers), len(self._reach))
        self._model.ahead = max(self._model.ahead, reached - self._passed)
