"""Judge the all-reduce of this chapter's exercise by the result on every rank, and by its cost in seconds and bytes.

Each rank is its own process, so that ranks can share data only by messages.
"""

import random

import numpy as np

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.collectives.exercise import TARGETS
from lessons.grading.grader import SolutionError
from theory import collective_costs

POINTS = {
    "every rank has the sum": 3,
    "all ranks have the same bits": 1,
    "it works for any number of ranks, and vectors of any length": 2,
    "a long vector takes no longer than around a ring": 4,
    "a short vector takes hardly longer than with doubling": 4,
    "no rank sends more of a long vector than it must": 2,
}
SHORT_RANKS = 32  # enough that every method except doubling is too slow


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    right, alike, general, quick, prompt, frugal = POINTS
    dice = random.Random(seed)
    many = dice.choice([5, 6, 7])
    long, short = dice.randint(250_000, 300_000), dice.randint(30, 100)
    with solution.ranks(many) as ranks:
        total = Sum(many, long, seed)
        ring, took = total.textbook("ring")
        done = total.run(ranks, beside=ring)
        yield right, not total.wrong, total.wrong or f"{many} ranks, {long:,} numbers"
        yield alike, not total.wrong and total.alike, _bits(total)
        part, sent = total.took / took, total.busiest(done)
        told = f"{part:.2f} times what the ring takes; at most {TARGETS['long']} is allowed"
        yield quick, not total.wrong and part <= TARGETS["long"], told
        told = f"the busiest rank sends {sent:.2f} times the minimum; at most {TARGETS['traffic']} is allowed"
        yield frugal, not total.wrong and sent <= TARGETS["traffic"], told
    with solution.ranks(SHORT_RANKS) as ranks:
        total = Sum(SHORT_RANKS, short, seed + 1)
        total.run(ranks)
        part = total.took / total.textbook("recursive_doubling")[1]
        told = f"{part:.2f} times what doubling takes among {SHORT_RANKS} ranks; at most {TARGETS['short']} is allowed"
        yield prompt, not total.wrong and part <= TARGETS["short"], total.wrong or told
    tried = [(1, 10), (2, 1), (dice.choice([3, 5]), 2), (8, dice.randint(20, 40)), (dice.choice([11, 13]), 100)]
    with solution.ranks(max(tried)[0]) as ranks:
        for size, numbers in [*tried, (6, dice.randint(50_000, 60_000))]:
            total = Sum(size, numbers, seed + size)
            total.run(ranks[:size])
            if total.wrong or not total.alike:
                yield general, False, f"{size} ranks, {numbers} numbers: {total.wrong or _bits(total)}"
                return
        yield general, True, "; ".join(f"{size} ranks, {numbers} numbers" for size, numbers in tried)


def _bits(total):
    return "the same on all" if total.alike else "ranks differ in the last bits: each adds in its own order"


class Sum:
    """A test case for an all-reduce: a random vector on each of `ranks` ranks, (numbers,), and their sum.

    The vectors are summed by a solution or by a textbook collective.
    """

    def __init__(self, ranks: int, numbers: int, seed: int):
        self.ranks, self.nbytes = ranks, 4 * numbers
        dice = np.random.default_rng(seed)
        self.vectors = dice.normal(size=(ranks, numbers)).astype(np.float32)
        self.values = {
            "algorithm": "sync_sgd", "workload": "quadratic", "dimension": 2, "points": 64, "batch": 1, "steps": 1,
            "evaluations": 1, "network": "10GbE", "learning_rate": 0.1, "workers": ranks,
        }  # fmt: skip
        self.wrong, self.alike, self.took = "", True, 0.0

    def run(self, attempts, beside=None):
        """Have `attempts`, one per rank, sum the vectors, and return the Run.

        Afterwards `wrong` is a message about an error, or "" if there was none. `alike` says whether all results have
        the same bits, and `took` is the time in seconds.
        """
        plays, results, ended = [one.role("worker") for one in attempts], {}, {}
        heard = Heard(self.ranks)

        def worker(comm, task, s):
            results[comm.rank] = plays[comm.rank](heard.by(comm), OwnVector(self.vectors[comm.rank]), s)
            ended[comm.rank] = comm.event_log.clock()

        done = attempts[0].run(worker, beside=beside, **self.values)
        self.took = max(ended.values())
        self.wrong = self._difference(results) or heard.missing() or self._unsent(done)
        self.alike = all(results[rank].tobytes() == results[0].tobytes() for rank in range(self.ranks))
        return done

    def busiest(self, done) -> float:
        """Return the bytes that the busiest rank sent, as a multiple of the minimum."""
        return done.trace.traffic().sum(axis=1).max() / (collective_costs.share(self.ranks) * self.nbytes)

    def textbook(self, collective: str):
        """Sum the vectors with this collective, and return the Run and the seconds until the last rank was done."""
        ended = []

        def worker(comm, task, s):
            comm.all_reduce(self.vectors[comm.rank].copy())
            ended.append(comm.event_log.clock())

        return run(Experiment.of({**self.values, "collective": collective}), worker_override=worker), max(ended)

    def _difference(self, results) -> str:
        """Return a message about the first wrong number, or "" if all are right. Raise SolutionError if a result has
        the wrong shape.
        """
        expected = self.vectors.sum(axis=0, dtype=np.float64)
        for rank in range(self.ranks):
            found = results[rank]
            if not isinstance(found, np.ndarray) or found.shape != expected.shape:
                what = f"an array of shape {found.shape}" if isinstance(found, np.ndarray) else type(found).__name__
                raise SolutionError(f"rank {rank} returned {what}; expected an array of shape {expected.shape}.")
            off = np.flatnonzero(~(np.abs(found - expected) < 1e-4))
            if len(off):
                return f"number {off[0]} of rank {rank} is {found[off[0]]:.6g}, but the sum is {expected[off[0]]:.6g}"
        return ""

    def _unsent(self, done) -> str:
        """Return a message if fewer bytes were sent than a sum needs, and "" otherwise.

        In a sum over P ranks, each number travels at least 2 (P - 1) times.
        """
        sent, least = done.summary["bytes"], 2 * (self.ranks - 1) * self.nbytes
        return f"all ranks together sent {sent:,} bytes, but a sum needs {least:,}" if sent < least else ""


class Heard:
    """A record of whose data has reached each rank, directly or through others. It is derived from the messages."""

    def __init__(self, ranks: int):
        self.of = [{rank} for rank in range(ranks)]
        self.under_way: dict[tuple, list] = {}  # (src, dst, tag) -> what the senders had heard

    def by(self, comm):
        """Return a comm without collectives for the rank of `comm`, whose messages are recorded."""
        return SendsOnly(comm, self)

    def missing(self) -> str:
        """Return a message about a rank that never received another rank's data, or "" if there is none."""
        for rank, known in enumerate(self.of):
            if len(known) < len(self.of):
                other = min({*range(len(self.of))} - known)
                return f"rank {rank} returned before any message could have brought it data of rank {other}"
        return ""


class OwnVector:
    """A task that provides only a vector to sum."""

    per_epoch = 1

    def __init__(self, x):
        self._x = x

    def start(self):
        return self._x.copy()


class SendsOnly:
    """A comm without collectives. Its messages must be arrays."""

    def __init__(self, comm, heard):
        self.rank, self.size, self._comm, self._heard = comm.rank, comm.size, comm, heard

    def send(self, x, dst, tag=0):
        self._leaves(dst, tag)
        self._comm.send(_array(x), dst, tag)

    def isend(self, x, dst, tag=0):
        self._leaves(dst, tag)
        return self._comm.isend(_array(x), dst, tag)

    def recv(self, src, tag=0):
        x = self._comm.recv(src, tag)
        self._arrived(src, tag)
        return x

    def irecv(self, src, tag=0):
        return Arriving(self._comm.irecv(src, tag), lambda: self._arrived(src, tag))

    def _leaves(self, dst, tag):
        known = frozenset(self._heard.of[self.rank])
        self._heard.under_way.setdefault((self.rank, dst, tag), []).append(known)

    def _arrived(self, src, tag):
        self._heard.of[self.rank] |= self._heard.under_way[src, self.rank, tag].pop(0)


class Arriving:
    """A receive in progress. When its message has arrived, it informs the check."""

    def __init__(self, handle, arrived):
        self._handle, self._arrived = handle, arrived

    def wait(self):
        x = self._handle.wait()
        self._arrived()
        return x


def _array(x):
    if not isinstance(x, np.ndarray):
        raise SolutionError(f"the solution sent a {type(x).__name__}; messages are arrays.")
    return x
