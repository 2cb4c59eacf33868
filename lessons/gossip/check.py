"""Judge the worker of this chapter's exercise by the x and p that its messages imply.

Every rank is its own process, between a probe of its messages and one of its task. The probes keep account of x and p;
what the rank reports is compared with that account, and the account is what is judged.
"""

import random

import numpy as np

from lessons.figure import run_now
from lessons.gossip.exercise import TARGETS
from lessons.grading.grader import SolutionError
from lessons.grading.restricted import Restricted
from lessons.grading.seeds import experiment_seed, unguessable

POINTS = {
    "nothing of a model is lost, and nothing is added": 3,
    "nobody waits for a slow worker": 4,
    "all soon agree on the mean, whichever worker is slow": 4,
    "a worker sends one message in a step": 2,
    "a crashed worker does not stop the others": 3,
}
NETWORK = "2e-5:1e9:0"  # latency in s and bytes/s; sending a message takes its sender no time
STEPS = 60  # of a fast worker on images
ROUNDS = 30  # steps of a fast worker within which all have to agree
MOST = 3  # messages that a worker may leave unread at the end, times the workers: some are in flight
OTHERWISE = "judged only when every worker sends half of x and p in each step, and adds everything it receives"
CLOSE = 1e-3  # share of a parameter, or of 1: the error of single precision
LEAST = 0.25  # mean share of its x that a worker sends in a message; a half is required


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    right, quick, agreed, frugal, steadfast = POINTS
    dice = random.Random(seed)
    workers = dice.choice([7, 8, 9])
    slow, times = dice.randrange(workers), dice.randint(3, 5)
    fast = [rank for rank in range(workers) if rank != slow]
    images = {
        "algorithm": "push_sum", "workers": workers, "batch": 32, "hidden": "32", "learning_rate": 0.1,
        "network": NETWORK, "slow": f"{slow}:{times}", "evaluations": 1, "seed": experiment_seed(dice),
    }  # fmt: skip
    alone = run_now(**{**images, "algorithm": "sgd", "workers": 1, "slow": ""}, steps=10).summary["seconds"] / 10
    with solution.ranks(workers) as ranks:
        account = Account(workers)
        textbook = run_now(**images, seconds=STEPS * alone)
        _run(ranks, account, beside=textbook, seconds=STEPS * alone, **images)
        wrong = account.missing()
        yield right, not wrong, wrong or f"{sum(account.steps)} steps of {workers} workers"
        time = STEPS / max(1, account.least(fast))
        told = f"a step takes {time:.2f} times as long as that of a worker alone; at most {TARGETS['time']} is allowed"
        yield quick, not wrong and time <= TARGETS["time"], OTHERWISE if wrong else told
        sent = max(account.sent[rank] / max(1, account.steps[rank]) for rank in range(workers))
        told = f"a worker sends up to {sent:.2f} messages in a step; at most {TARGETS['traffic']} are allowed"
        yield frugal, not wrong and sent <= TARGETS["traffic"], OTHERWISE if wrong else told
        account = Account(workers, np.random.default_rng(unguessable(dice)))
        _run(ranks, account, seconds=ROUNDS * alone, **images)
        wrong, apart = wrong or account.missing(), account.apart()
        told = f"{apart:.2g} of the initial distance from the mean is left; at most {TARGETS['apart']} is allowed"
        yield agreed, not wrong and apart <= TARGETS["apart"], OTHERWISE if wrong else told
    with solution.ranks(workers) as ranks:
        account, lost = Account(workers), dice.choice(fast)
        _run(ranks, account, seconds=STEPS * alone, crash=f"{lost}:{STEPS / 3 * alone}", **images)
        others = [rank for rank in fast if rank != lost]
        steps, left = account.least(others), account.weight(lost) / (workers - 1)
        enough = steps >= STEPS / TARGETS["time"] and left >= TARGETS["weight"]
        told = f"rank {lost} crashes; every other fast worker takes at least {steps} of {STEPS} possible steps"
        told = f"{told}; {left:.2f} of the survivors' weight is left; at least {TARGETS['weight']} is required"
        yield steadfast, not wrong and enough, OTHERWISE if wrong else told


def _run(ranks, account, beside=None, **values):
    """Run the experiment with `ranks[r]` as rank r, and return the Run. `account` observes all ranks."""
    plays = [one.role("worker") for one in ranks]

    def worker(comm, task, s):
        held = Holding(comm, task, s.learning_rate, account)
        plays[comm.rank](held.comm(), held.task(), s)

    return ranks[0].run(worker, beside=beside, **values)


class Account:
    """An account of what all workers hold, derived from their messages. With `dice`, workers start from different
    points and gradients are 0.
    """

    def __init__(self, workers: int, dice: np.random.Generator | None = None):
        self.dice, self.workers = dice, workers
        self.held: dict[int, Holding] = {}
        self.sent, self.steps = [0] * workers, [0] * workers
        # sum over a rank's messages of the share of x that it sent, or of p, whichever is smaller
        self.shares = [0.0] * workers
        self.unread = np.zeros((workers, workers), int)  # messages not yet received
        self.flying = [0.0] * workers  # weight in flight to each

    def missing(self) -> str:
        """Return a message about the first rank that does not do what a step requires, or "" if all do."""
        for rank in range(self.workers):
            if not self.steps[rank]:
                return f"rank {rank} has taken no step"
            if self.sent[rank] < self.steps[rank] - 1:
                return f"rank {rank} sent {self.sent[rank]} messages in {self.steps[rank]} steps"
            share = self.shares[rank] / max(1, self.sent[rank])
            if self.sent[rank] and share < LEAST:
                return f"rank {rank} sent {share:.2g} of its x and p per message, on average; a half is required"
            if (left := self.unread[:, rank].sum()) > MOST * self.workers:
                return f"rank {rank} has left {left} messages unread"
        return ""

    def least(self, ranks) -> int:
        """Return the number of steps of the slowest of these ranks, i.e. the smallest number."""
        return min(self.steps[rank] for rank in ranks)

    def apart(self) -> float:
        """Return how far the farthest worker is from the mean of all starts.

        The distance is divided by the root mean square distance of the starts from their mean.
        """
        starts = np.array([self.held[rank].began for rank in range(self.workers)])
        ends = np.array([self.held[rank].model for rank in range(self.workers)])
        mean = starts.mean(0)
        return float(np.sqrt(np.square(ends - mean).sum(1).max() / np.square(starts - mean).sum(1).mean()))

    def weight(self, lost: int) -> float:
        """Return the total weight of all ranks except the lost one. It includes the weight that is on its way to these
        ranks.
        """
        return sum(held.p + self.flying[rank] for rank, held in self.held.items() if rank != lost)


class Holding:
    """What one worker holds, (x, p), computed from its messages and gradients. It observes the worker's calls."""

    def __init__(self, comm, task, rate: float, account: Account):
        self._comm, self._task, self._rate, self._account = comm, task, rate, account
        start = task.start()
        self._like = start
        self.began = start.astype(float) if account.dice is None else account.dice.normal(size=len(start))
        self.x, self.p, self._asked = self.began.copy(), 1.0, 0
        self._lost, self._news = set(), []  # lost ranks; those that the worker has not been told about
        account.held[comm.rank] = self

    @property
    def model(self) -> np.ndarray:
        """The worker's model, (d,)."""
        return self.x / self.p

    def comm(self):
        """Return a comm that observes the worker's calls."""
        c = self._comm
        return Restricted(
            "comm", rank=c.rank, size=c.size, poll=self._poll, send=self._send, recv=self._recv, recv_any=self._recv_any
        )

    def task(self):
        """Return a task that observes the worker's calls."""
        parts = {"start": self._start, "steps": self._steps, "gradient": self._gradient, "report": self._report}
        return Restricted("task", per_epoch=self._task.per_epoch, **parts)

    def _start(self):
        return self.began.astype(self._like.dtype)

    def _steps(self, together=False):
        return self._task.steps(together)

    def _gradient(self, w):
        rank, account = self._comm.rank, self._account
        if self._asked > account.steps[rank]:
            raise SolutionError(f"rank {rank} asked for a second gradient before it had reported the step.")
        self._compare(w, "took a gradient at")
        self._asked += 1
        loss, g = self._task.gradient(np.asarray(w, self._like.dtype) if account.dice is None else self._like)
        if account.dice is not None:
            loss, g = 0.0, np.zeros_like(g)
        self.x = self.x - self._rate * g
        return loss, g

    def _report(self, w):
        rank, account = self._comm.rank, self._account
        if self._asked != account.steps[rank] + 1:
            raise SolutionError(f"rank {rank} reported a step without a gradient.")
        self._compare(w, "reported")
        account.steps[rank] += 1
        self._task.report(self.model.astype(self._like.dtype))

    def _compare(self, w, did):
        rank, wanted = self._comm.rank, self.model
        if np.shape(w) != wanted.shape:
            raise SolutionError(f"rank {rank} {did} a model of shape {np.shape(w)}; expected {wanted.shape}.")
        off = float(np.abs(w - wanted).max())
        if not off <= CLOSE * max(1.0, float(np.abs(wanted).max())):
            raise SolutionError(
                f"in step {self._account.steps[rank]} rank {rank} {did} a model that is up to {off:.2g} away from the "
                "x / p that its messages and gradients leave it with."
            )

    def _send(self, message, dst, tag=0):
        rank = self._comm.rank
        x, p = self._read(message)
        if dst == rank:
            raise SolutionError(f"rank {rank} sent a message to itself.")
        if not 0 < p < self.p:
            raise SolutionError(f"rank {rank} sent a weight of {p:.3g}, but holds {self.p:.3g}; send a part of it.")
        self._account.shares[rank] += min(p / self.p, float(x @ self.x) / max(1e-300, float(self.x @ self.x)))
        self.x, self.p = self.x - x, self.p - p
        self._account.sent[rank] += 1
        self._account.flying[dst] += p
        self._account.unread[rank, dst] += 1
        self._comm.send((x, p), dst, tag)

    def _poll(self, tag=0):
        """Return the ranks that `poll` lists, without lost ones.

        A rank that is listed although it has sent no message counts as lost from then on. A cluster's `recv_any`
        reports a loss once no message is in flight, but some are always on their way to a slow worker.
        """
        listed = [rank for rank in self._comm.poll(tag) if rank not in self._lost]
        for rank in {*listed}:
            if listed.count(rank) > self._account.unread[rank, self._comm.rank]:
                self._lost.add(rank)
                self._news.append(rank)
        return listed

    def _recv(self, src, tag=0):
        return self._arrived(src, self._comm.recv(src, tag))

    def _recv_any(self, tag=0):
        if self._news:
            return self._news.pop(0), None
        rank, message = self._comm.recv_any(tag)
        while message is None and rank in self._lost:
            rank, message = self._comm.recv_any(tag)
        if message is None:
            self._lost.add(rank)
        return rank, message if message is None else self._arrived(rank, message)

    def _arrived(self, src, message):
        x, p = message
        self.x, self.p = self.x + x, self.p + p
        self._account.flying[self._comm.rank] -= p
        self._account.unread[src, self._comm.rank] -= 1
        return message

    def _read(self, message):
        """Return the content of a message, (x, p). Raise SolutionError if the message is invalid."""
        if isinstance(message, tuple) and len(message) == 2 and np.shape(message[0]) == self.x.shape:
            x, p = message
            if np.size(p) == 1 and isinstance(p, int | float | np.ndarray):
                return np.asarray(x, self._like.dtype), float(np.ravel(p)[0])
        told = f"tuple of {len(message)}" if isinstance(message, tuple) else type(message).__name__
        raise SolutionError(f"rank {self._comm.rank} sent a {told}; expected (x, p), a vector like w and a number.")
