"""Judge the thread of this chapter's exercise by observing its reads and writes, and counting lost additions.

Threads see each other's work only in the shared vector: messages carry nothing, and the rows are drawn when grading
begins, because a thread that knew them could work out what the others do.
"""

import random
from functools import partial

import numpy as np

from lessons.grading.contract import describe_value
from lessons.grading.grader import SolutionError
from lessons.grading.seeds import experiment_seed, unguessable
from lessons.seeds import Seeded
from lessons.shared_memory.exercise import TARGETS, thread
from workloads import sparse

POINTS = {
    "each gradient is added to w": 3,
    "few additions are lost": 4,
    "few coordinates are written": 3,
    "the objective matches that of one thread": 4,
    "no time is lost in waiting": 2,
}
THREADS = 4
USEFUL = 0.04  # excess over one thread's objective beyond which nothing else counts
CORE = "40e9:15e9:0"  # a laptop's, where reading a few numbers has no fixed cost


def check(solution, seed):
    """Judge a solution: yield (mark, whether it is earned, what was observed)."""
    every, kept, frugal, learned, free = POINTS
    dice = random.Random(seed)
    rows = {"rows": 512, "features": dice.randint(180, 220), "nonzeros": 8, "skew": 1.0, "l2": 1e-3, "judged": "gap"}
    values = {
        **rows, "algorithm": "hogwild", "workload": "sparse", "batch": 1, "epochs": 2, "steps": None,
        "precision": "float64", "learning_rate": dice.choice([0.25, 0.3, 0.35]), "network": "ideal", "device": CORE,
        "jitter": "exponential", "evaluations": 1, "seed": experiment_seed(dice),
    }  # fmt: skip
    data = sparse.build(sparse.Settings(**rows), np.float64, unguessable(dice))
    one, seen = Watched(data), Watched(data)
    alone = Seeded()(worker_override=partial(run_watched_thread, thread, one), **values, workers=1)
    with solution.ranks(THREADS) as ranks:
        plays = [rank.role("thread") for rank in ranks]
        done = ranks[0].run(
            lambda comm, task, s: run_watched_thread(plays[comm.rank], seen, comm, task, s), workers=THREADS, **values
        )
    wrong = seen.wrong(values["learning_rate"], one.gradients[0] // THREADS)
    yield every, not wrong, wrong or f"{sum(seen.gradients.values())} gradients of {THREADS} threads"
    above = data.objective(done.parameters) - data.objective(alone.parameters)
    counts = not wrong and above <= USEFUL
    lost = 100 * seen.lost / max(1, seen.written)
    told = f"{lost:.1f} % of the writes overwrote another thread's; at most {TARGETS['lost']} % is allowed"
    yield kept, counts and lost <= TARGETS["lost"], told
    share = seen.written / max(1, seen.touched)
    told = f"{share:.2f} weights written per nonzero coordinate of a sample; at most {TARGETS['written']} is allowed"
    yield frugal, counts and share <= TARGETS["written"], told
    told = f"the objective differs from one thread's by {above:+.3f}; at most +{TARGETS['objective']} is allowed"
    if above > USEFUL:
        told += f"; above {USEFUL}, the other marks do not count"
    yield learned, not wrong and above <= TARGETS["objective"], told
    time = done.summary["seconds"] / alone.summary["seconds"]
    told = f"{time:.2f} times what one thread takes; at most {TARGETS['time']} is allowed"
    yield free, counts and time <= TARGETS["time"], told


def run_watched_thread(play, seen, comm, task, s):
    """Run an observed thread, and report the memory when all threads are done."""
    memory, task.workload = WatchedMemory(comm, seen), seen.data
    play(memory, WatchedSamples(comm, task, seen), s)
    comm.barrier()
    if memory.vector is None:
        raise SolutionError(f"thread {comm.rank} has never called comm.shared(task.start()).")
    if comm.rank == 0:
        task.report(memory.vector.inner.vector)


class Watched:
    """What all threads together have read, written and overwritten."""

    def __init__(self, data):
        self.data = data  # the workload that is trained
        self.versions = None  # (d,), writes of each coordinate
        self.written, self.lost, self.touched = 0, 0, 0
        self.steps, self.gradients = {}, {}
        self.added, self.asked = {}, {}  # by thread, (d,): what it added, and the sum of its gradients

    def wrong(self, rate: float, samples: int) -> str:
        """Return a message about a thread that did not add its gradients, one per sample; "" if all did."""
        for rank, taken in sorted(self.gradients.items()):
            if taken < samples:
                return f"thread {rank} computed the gradients of {taken} of its {samples} samples"
            wanted = -rate * self.asked[rank]
            if not np.allclose(self.added[rank], wanted, atol=1e-6):
                v = int(np.abs(self.added[rank] - wanted).argmax())
                return f"thread {rank} added {self.added[rank][v]:.4g} to coordinate {v}, expected {wanted[v]:.4g}"
        return ""


class WatchedMemory:
    """A thread's comm: the shared vector, and methods for waiting."""

    def __init__(self, comm, seen: Watched):
        self._comm, self._seen, self.vector = comm, seen, None
        self.rank, self.size = comm.rank, comm.size
        self.recv, self.barrier = comm.recv, comm.barrier

    def send(self, x, dst, tag=0):
        if x is not None:  # messages are free here: with contents, they would replace the shared memory
            raise SolutionError(
                f"thread {self.rank} sent {describe_value(x)}; messages are empty here, as in comm.send(None, {dst}): "
                "threads share everything through w."
            )
        self._comm.send(None, dst, tag)

    def shared(self, like, guard="none"):
        if self.vector is not None:
            raise SolutionError(f"thread {self.rank} has asked for the shared vector twice; call comm.shared once.")
        if guard != "none":
            raise SolutionError(
                f"the shared memory of this exercise does not offer guard={guard!r}; leave that argument out."
            )
        self.vector = WatchedVector(self._comm.shared(like), self._seen, self.rank)
        return self.vector


class WatchedVector:
    """The shared vector as one thread sees it. It records the thread's writes, and what they overwrite, in `seen`."""

    def __init__(self, inner, seen: Watched, rank: int):
        self.inner, self._seen = inner, seen
        d = len(inner.vector)
        self._known, self._versions = np.full(d, np.nan), np.zeros(d, np.int64)
        self.blank = np.zeros(d)  # of the same shape, in place of `vector`
        seen.added[rank] = self._added = np.zeros(d)
        if seen.versions is None:
            seen.versions = np.zeros(d, np.int64)

    def read(self, where=None):
        place = places(where)
        self.inner.vector  # noqa: B018 the others act first, up to this moment
        self._versions[place] = self._seen.versions[place]
        self._known[place] = self.inner.vector[place]
        return self.inner.read(where)

    def write(self, values, where=None):
        place = places(where)
        if np.isnan(self._known[place]).any():
            raise SolutionError("a thread wrote a coordinate that it has never read.")
        self.inner.add(np.zeros_like(values), where)  # takes the time of a write
        memory, seen = self.inner.vector, self._seen
        seen.written += len(values)
        seen.lost += int((seen.versions[place] != self._versions[place]).sum())
        seen.versions[place] += 1
        self._versions[place] = seen.versions[place]
        self._added[place] += values - self._known[place]
        self._known[place] = memory[place] = values


class WatchedSamples:
    """A thread's task, which counts steps and gradients."""

    per_epoch = 1

    def __init__(self, comm, task, seen: Watched):
        self._rank, self._task, self._seen = comm.rank, task, seen
        self.start = task.start
        seen.steps[self._rank] = seen.gradients[self._rank] = 0
        seen.asked[self._rank] = np.zeros(len(task.start()))

    def steps(self, together=False):
        for step in self._task.steps():
            self._seen.steps[self._rank] += 1
            yield step

    def gradient(self, w):
        seen = self._seen
        if seen.gradients[self._rank] >= seen.steps[self._rank]:
            raise SolutionError(f"thread {self._rank} computed two gradients in step {seen.steps[self._rank] - 1}.")
        loss, g = self._task.gradient(w)
        seen.gradients[self._rank] += 1
        seen.asked[self._rank] += g
        seen.touched += int(np.count_nonzero(g))
        return loss, g


def places(where):
    """Return an index of a vector for the coordinates `where`, or for all coordinates if it is None. Raise
    SolutionError if a coordinate occurs twice.
    """
    if where is None:
        return slice(None)
    if not isinstance(where, slice) and len(np.unique(where)) < len(where):
        raise SolutionError("a coordinate was given twice.")
    return where
