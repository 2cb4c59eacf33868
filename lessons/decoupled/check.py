"""Judge the module of this chapter's exercise: what each module learns from, who waits, and how much is stored and
sent.

A module that learns nothing need not wait for anything. So the cost counts only if the model has learned, and if every
module's backward pass starts from the gradient of a loss: its classifier's, or the one that the module above computed.
"""

import random

import numpy as np

from lessons.decoupled.exercise import TARGETS
from lessons.figure import run_now
from lessons.grading.grader import SolutionError
from lessons.grading.neighbours import NeighbourComm
from lessons.grading.seeds import experiment_seed

POINTS = {
    "each module makes its update for every mini-batch": 2,
    "each module learns from every mini-batch, and so does its classifier": 3,
    "the model tells the spirals apart": 3,
    "no module waits for anything from above": 4,
    "a module keeps the activations of one mini-batch": 2,
    "nothing is sent unnecessarily": 2,
}
HEAD = 1, 64  # hidden layers of a classifier, neurons in each
CLOSE = {"rtol": 1e-3, "atol": 1e-6}  # of an error, and of a classifier's weights
OTHERWISE = "judged only when every module learns, and the model tells the spirals apart"


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    right, learned, apart, quick, lean, frugal = POINTS
    dice = random.Random(seed)
    modules, batches = 4, dice.randint(345, 370)
    values = {
        "algorithm": "greedy", "workers": modules, "workload": "spirals", "model": "residual", "depth": 6,
        "width": dice.randint(32, 36), "activation": "tanh", "batch": 128, "network": "ideal", "learning_rate": 0.3,
        "steps": batches, "evaluations": 1, "seed": experiment_seed(dice),
    }  # fmt: skip
    locked, textbook = run_now(**{**values, "algorithm": "layer_wise"}), run_now(**values)
    with solution.ranks(modules) as ranks:
        plays, seen = [one.role("module") for one in ranks], Probe(modules, batches)
        done = ranks[0].run(
            lambda comm, task, s: plays[comm.rank](
                NeighbourComm(comm, "module", []), ObservedModule(comm, task, s.learning_rate, seen), s
            ),
            beside=textbook,
            **values,
        )
    missing, blind, fixed = seen.missing, seen.blind, seen.fixed
    yield right, not missing, missing or f"{batches} mini-batches, {modules} modules"
    learns = not missing and not blind
    told = f"{batches} errors on each module" if learns else missing or blind
    yield learned, learns and not fixed, fixed if learns and fixed else told
    share = 100 * float(done.evaluations["accuracy"][-1])
    told = f"{share:.0f} % of held-out points in the right spiral; at least {TARGETS['accuracy']} % is required"
    tells = share >= TARGETS["accuracy"]
    yield apart, not missing and tells, missing or told
    counts = learns and tells
    time, sent = (done.summary[what] / locked.summary[what] for what in ("seconds", "bytes"))
    told = f"{time:.2f} times what back-propagation takes; at most {TARGETS['time']} is allowed"
    yield quick, counts and time <= TARGETS["time"], told if counts else OTHERWISE
    kept = f"activations of up to {seen.most} mini-batches kept at once; {TARGETS['activations']} is allowed"
    yield lean, counts and seen.most <= TARGETS["activations"], kept if counts else OTHERWISE
    told = f"{sent:.2f} times the bytes of back-propagation; at most {TARGETS['traffic']} is allowed"
    yield frugal, counts and sent <= TARGETS["traffic"], told if counts else OTHERWISE


class Probe:
    """An observer of all modules. Each of its messages is about the first mistake of its kind, or "" if there is none.

    `blind` is about a backward pass that starts from an error that is not the gradient of a loss. `fixed` is about a
    use of a classifier whose weights are not those of its last update.
    """

    def __init__(self, modules: int, batches: int):
        self.batches, self.updates, self.most = batches, [0] * modules, 0
        self.sent: dict[tuple[int, int], np.ndarray] = {}  # (module, mini-batch) -> the features it computed
        self.back: dict[tuple[int, int], np.ndarray] = {}  # (module, mini-batch) -> its error for the module below
        self.blind = self.fixed = ""

    @property
    def missing(self) -> str:
        """A message about the first module with too few updates, or "" if there is none."""
        for module, count in enumerate(self.updates):
            if count < self.batches:
                return f"module {module} made {count} updates for {self.batches} mini-batches"
        return ""


class ObservedModule:
    """The task of one module, as the solution sees it. The grader keeps track of the module's weights."""

    per_epoch = 1

    def __init__(self, comm, task, rate: float, seen: Probe):
        self._module, self._rate, self._seen, self._task = task.module(comm.rank, comm.size), rate, seen, task
        self._w = self._module.start()  # (d_k,)
        self._head = None if self._module.last else self._module.classifier(*HEAD)
        self._flying = {}  # mini-batch -> what backward needs, y, dy on the last module, labels
        self._a = self._after = None if self._head is None else self._head.start()  # before and after `_classified`
        self._classified = None  # the last mini-batch that was
        self._errors: dict[int, np.ndarray] = {}  # mini-batch -> the gradient of the classifier's loss at y
        self._g = self._target = None
        self._next = 0

    def steps(self, together=False):
        return iter(range(self._seen.batches))

    def start(self):
        return self._w.copy()

    def head(self):
        if self._head is None:
            raise SolutionError(
                f"module {self._index} is the last one and has no classifier: it learns from the model's loss; call "
                "head only on the modules before it."
            )
        return self._head.start()

    def forward(self, w, x, batch):
        if batch != self._next or batch >= self._seen.batches:
            raise SolutionError(f"module {self._index} called forward for mini-batch {batch}; expected {self._next}.")
        self._next += 1
        ours, target = self._module.chunk(batch)
        x = ours if self._module.first else self._features(x, batch)
        self._own(w, f"forward for mini-batch {batch}")
        y, saved = self._module.forward(self._w, x, f"F{batch}")
        dy = self._module.loss(y, target, batch)[1] if self._module.last else None
        self._flying[batch] = saved, y, dy, target
        self._seen.most = max(self._seen.most, len(self._flying))
        self._seen.sent[self._index, batch] = y
        return None if self._module.last else y

    def classify(self, a, y, batch):
        if self._head is None:
            raise SolutionError(
                f"module {self._index} is the last one and has no classifier: it learns from the model's loss; call "
                "classify only on the modules before it."
            )
        _, ours, _, target = self._kept(batch, "classified")
        if not np.array_equal(y, ours):
            raise SolutionError(f"module {self._index} classified something other than its y of mini-batch {batch}.")
        a = np.asarray(a, self._w.dtype)
        if batch != self._classified:
            self._classified, self._a = batch, self._after
        if a.shape != self._a.shape:
            raise SolutionError(f"the classifier of module {self._index} has {len(self._a)} weights; see task.head().")
        if not self._seen.fixed and not np.allclose(a, self._a, **CLOSE):
            self._seen.fixed = (
                f"the classifier of module {self._index} was given weights for mini-batch {batch} that are not "
                "the previous mini-batch's a - learning_rate * ga"
            )
        _, self._errors[batch], ga = self._head.gradient(a, ours, target)
        self._after = a - self._rate * ga
        return self._errors[batch], ga

    def backward(self, w, dy, batch):
        saved, y, ours, _ = self._kept(batch, "called backward for")
        self._own(w, f"backward for mini-batch {batch}")
        del self._flying[batch]
        dy = ours if self._module.last else np.asarray(dy, y.dtype)
        if dy.shape != y.shape:
            raise SolutionError(f"module {self._index} got an error of shape {dy.shape} for features of {y.shape}.")
        if not self._seen.blind and not self._of_a_loss(dy, batch):
            self._seen.blind = (
                f"module {self._index} called backward for mini-batch {batch} with an error that is the gradient "
                "of neither its classifier's loss nor the model's"
            )
        dx, self._g = self._module.backward(self._w, saved, dy, f"B{batch}")
        self._seen.back[self._index, batch] = dx
        return (None if self._module.first else dx), self._g

    def report(self, w):
        if self._g is None:
            raise SolutionError(f"module {self._index} reported an update without a gradient.")
        wanted, w, self._g = self._w - self._rate * self._g, np.asarray(w, self._w.dtype), None
        if w.shape != wanted.shape or not np.allclose(w, wanted, rtol=1e-4, atol=1e-6):
            raise SolutionError(f"an update of module {self._index} is not w - learning_rate * g.")
        self._w = w
        self._seen.updates[self._index] += 1
        self._task.report(w, self._module.where)

    @property
    def _index(self) -> int:
        return self._module.index

    def _of_a_loss(self, dy, batch) -> bool:
        """Return whether `dy` is the gradient of a loss for this mini-batch, computed by the classifier or by the
        module above.

        It is always true on the last module. The classifier's error is forgotten.
        """
        known = self._errors.pop(batch, None), self._seen.back.get((self._index + 1, batch))
        return self._module.last or any(one is not None and np.allclose(dy, one, **CLOSE) for one in known)

    def _kept(self, batch, what):
        if batch not in self._flying:
            raise SolutionError(f"module {self._index} {what} mini-batch {batch}, which is not in flight there.")
        return self._flying[batch]

    def _features(self, x, batch):
        """Return `x` if the previous module computed it from this mini-batch, or raise SolutionError otherwise."""
        sent = self._seen.sent.get((self._index - 1, batch))
        if sent is None or not np.array_equal(x, sent):
            raise SolutionError(
                f"module {self._index} called forward for mini-batch {batch} with an input that is not the features "
                f"of module {self._index - 1}."
            )
        return sent

    def _own(self, w, where):
        if not np.array_equal(w, self._w):
            raise SolutionError(f"{where} on module {self._index} was given weights that were not reported.")
