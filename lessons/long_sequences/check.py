"""Judge the ring attention of this chapter's exercise: what ranks return, compute, hold and send, and how long they
take.

The sequence and its scores stay in the grader's process. Each row of queries and keys is recognised by its bits, so the
grader knows which scores a rank has computed. The clock is the simulated cluster's, and memory is what the operating
system reports.
"""

from __future__ import annotations

import random
from math import inf
from typing import ClassVar

import numpy as np

from algorithms.parts.sequence import indices_of, pieces_of
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from kernels import METER
from lessons.grading.contract import ARRAY, Takes
from lessons.grading.grader import SolutionError
from lessons.grading.held import Held
from lessons.grading.restricted import Restricted
from lessons.long_sequences.exercise import TARGETS
from tracing import COMPUTE

POINTS = {
    "every position attends to the whole sequence": 4,
    "blocks are merged correctly, even where scores are in the thousands": 4,
    "no rank holds more than two blocks of keys and values": 3,
    "messages hide behind the computation of scores": 3,
    "all ranks compute for the same time": 4,
    "scores that the mask hides are not computed": 3,
    "ranks send no more than they must": 2,
    "it works on one rank, and with two positions on a rank": 2,
}
FLOPS = 1e12  # of the device
CLOSE = 2e-3  # largest error of a number of the output, whose size is about 1
RANKS = 5
WRONG = "judged only when every position attends to the whole sequence"
WHOLE = "judged only when scores are computed block by block"


def check(solution, seed):
    """Judge a solution on cases drawn with `seed`: yield (mark, whether it is earned, what was observed)."""
    right, merged, small, hidden, even, masked, frugal, general = POINTS
    dice = random.Random(seed)
    half, width = dice.randint(125, 140), dice.randint(720, 800)
    ours = SharedSequence(RANKS, 2 * RANKS * half, width, seed)
    best = ours.play([textbook] * RANKS)
    theirs = SharedSequence(RANKS, 2 * RANKS * half, width, seed)
    held = Held()
    with solution.ranks(RANKS) as attempts, held.measure(*attempts):
        done = theirs.play([one.role("worker") for one in attempts], attempts[0], beside=best)
    wrong = theirs.error()
    yield right, not wrong, wrong or f"{RANKS} ranks, {theirs.positions} positions"
    most = theirs.most_keys()
    otherwise = WRONG if wrong else WHOLE if most > 2 * half else ""
    told = (
        ""
        if wrong
        else f"scores of {most} keys were computed at once; a block has {2 * half}"
        if otherwise
        else _large(solution, dice)
    )
    yield merged, not wrong and not told, (WRONG if wrong else told) or "scores up to thousands, in blocks"
    block = 4 * 2 * half * width  # bytes of a rank's keys
    needed = (2 + 4) * block + 3 * 4 * half**2
    few, told = held.check_limit(
        needed,
        TARGETS["memory"],
        f"a rank holds {{:.2f}} times the memory it needs; at most {TARGETS['memory']} is allowed",
    )
    yield small, not otherwise and few, otherwise or told
    times = _times(theirs.seconds(), theirs.busiest())
    told = f"it takes {times:.2f} times as long as the busiest rank computes; at most {TARGETS['hidden']} is allowed"
    yield hidden, not otherwise and times <= TARGETS["hidden"], otherwise or told
    times = _times(theirs.busiest(), theirs.mean())
    told = f"the busiest rank computes {times:.2f} times as long as the mean; at most {TARGETS['balance']} is allowed"
    yield even, not otherwise and times <= TARGETS["balance"], otherwise or told
    times = _times(theirs.mean(), ours.mean())
    told = f"it computes {times:.2f} times the scores of the textbook's worker; at most {TARGETS['scores']} is allowed"
    yield masked, not otherwise and times <= TARGETS["scores"], otherwise or told
    times = _times(done.summary["bytes"], best.summary["bytes"])
    told = f"it sends {times:.2f} times the bytes of the textbook's worker; at most {TARGETS['traffic']} is allowed"
    yield frugal, not otherwise and times <= TARGETS["traffic"], otherwise or told
    told = "" if otherwise else _other_sizes(solution, dice)
    yield general, not otherwise and not told, otherwise or told or "1 rank; 3 ranks with 2 positions each"


def _times(one: float, other: float) -> float:
    """Return `one` as a multiple of `other`; infinity if `other` is 0, as for ranks that compute no scores."""
    return one / other if other else inf


def _large(solution, dice: random.Random) -> str:
    """Return a message if the solution fails on scores in the thousands that rise or fall from key to key; else ""."""
    ranks = 3
    with solution.ranks(ranks) as attempts:
        for slope in (1.0, -1.0):
            sequence = SharedSequence(ranks, 2 * ranks * dice.randint(8, 12), 16, dice.randrange(10**6), slope=slope)
            sequence.play([one.role("worker") for one in attempts], attempts[0])
            if said := sequence.error():
                return f"with large scores {said}"
        return ""
    return "it failed where scores are large"  # an error of the solution ends its attempts, and is reported


def _other_sizes(solution, dice: random.Random) -> str:
    """Return a message if the solution fails on one rank, or on three ranks with two positions each; else ""."""
    with solution.ranks(3) as attempts:
        for ranks, positions in ((1, 2 * dice.randint(3, 8)), (3, 6)):
            sequence = SharedSequence(ranks, positions, 8, dice.randrange(10**6))
            sequence.play([one.role("worker") for one in attempts[:ranks]], attempts[0])
            if said := sequence.error():
                return f"{ranks} rank{'s' * (ranks > 1)}, {positions} positions: {said}"
        return ""
    return "it failed there"


def textbook(comm, task, s):
    """Send the same blocks and compute the same scores as zigzag ring attention, but merge nothing and return None."""
    places = [indices_of(pieces_of(rank, comm.size, s.positions, "zigzag")) for rank in range(comm.size)]
    mine, half = places[comm.rank], s.positions // (2 * comm.size)
    q, *block = task.start(mine)
    for hop in range(comm.size):
        coming = None
        if hop < comm.size - 1:
            comm.isend(tuple(block), (comm.rank + 1) % comm.size)
            coming = comm.irecv((comm.rank - 1) % comm.size)
        theirs = places[(comm.rank - hop) % comm.size]
        for queries in (slice(half), slice(half, None)):
            for keys in (slice(half), slice(half, None)):
                if theirs[keys][0] <= mine[queries][-1]:
                    task.forward(q[queries], block[0][keys])
        block = coming.wait() if coming else block


class SharedSequence:
    """A sequence that `ranks` ranks share, with the scores that each has computed and the attention it has returned.

    With a `slope`, scores grow (or fall) from the first key to the last, and are in the thousands.
    """

    def __init__(self, ranks: int, positions: int, width: int, seed: int, slope: float = 0.0):
        self.ranks, self.positions, self.width = ranks, positions, width
        dice = np.random.default_rng(seed)
        self.q, self.k, self.v = dice.normal(size=(3, positions, width)).astype(np.float32)
        if slope:
            self.q[:, 0] = 50 * width**0.5
            self.k[:, 0] = slope * np.linspace(-100, 100, positions)
        self.place = {
            name: {row.tobytes(): at for at, row in enumerate(rows)} for name, rows in (("q", self.q), ("k", self.k))
        }
        self.owner: dict[int, int] = {}
        self.sides: dict[int, SequenceSide] = {}
        self.found: dict[int, object] = {}
        self.ended: dict[int, float] = {}

    def play(self, plays, attempt=None, beside=None):
        """Run the exercise with `plays[r]` as rank r, in the sandbox of `attempt` if given, and return the Run."""
        given = {"positions": self.positions, "width": self.width}
        half = self.positions // (2 * self.ranks)
        hop = 2 * self.width * 2 * half**2 / FLOPS  # s for the scores of a block of the textbook's
        values = {
            "algorithm": "sync_sgd", "workload": "quadratic", "dimension": 1, "points": 32, "batch": 1, "steps": 1,
            "evaluations": 1, "learning_rate": 0.1, "workers": self.ranks, "device": f"{FLOPS:g}:1e15:0",
            "latency": 1e-9, "bandwidth": 16 * half * self.width / (0.7 * hop),
        }  # fmt: skip

        def worker(comm, task, s):
            side = self.sides[comm.rank] = SequenceSide(self, comm, task)
            settings = given if attempt else Restricted("s", **given)
            self.found[comm.rank] = plays[comm.rank](side.comm(), side, settings)
            self.ended[comm.rank] = comm.event_log.clock()

        if attempt:
            return attempt.run(worker, beside=beside, **values)
        return run(Experiment.of(values), worker_override=worker)

    def error(self) -> str:
        """Return a message about the first thing that is wrong with what was computed or returned; "" if nothing is."""
        if len(self.owner) < self.positions:
            return f"no rank has position {min({*range(self.positions)} - {*self.owner})}"
        for rank, side in sorted(self.sides.items()):
            own, seen = side.own, np.arange(self.positions) <= side.own[:, None]
            row, key = np.unravel_index(np.argmax(seen & ~side.asked), seen.shape)
            if seen[row, key] and not side.asked[row, key]:
                return f"rank {rank} did not compute the score of position {own[row]} and key {key}"
            y, wanted = self.found[rank], self.attention(own)
            if not isinstance(y, np.ndarray) or y.shape != wanted.shape or y.dtype.kind != "f":
                shape = f"of shape {y.shape}" if isinstance(y, np.ndarray) else f"that is a {type(y).__name__}"
                raise SolutionError(f"rank {rank} returned something {shape}; expected floats of shape {wanted.shape}.")
            wrong = ~(np.abs(y - wanted).max(axis=1) <= CLOSE)
            if wrong.any():
                return f"rank {rank} returned the wrong attention for position {own[np.argmax(wrong)]}"
        return ""

    def attention(self, own: np.ndarray) -> np.ndarray:
        """Return the attention of these positions to the whole sequence, (positions, width)."""
        scores = self.scores(own, np.arange(self.positions)).astype(float)
        scores[np.arange(self.positions) > own[:, None]] = -np.inf
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return weights @ self.v / weights.sum(axis=1, keepdims=True)

    def scores(self, queries: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Return the scores of queries and keys at these positions, (queries, keys)."""
        return self.q[queries] @ self.k[keys].T / np.float32(self.width**0.5)

    def most_keys(self) -> int:
        """Return the largest number of keys whose scores were computed in one call."""
        return max(side.most_keys for side in self.sides.values())

    def seconds(self) -> float:
        """Return when the last rank returned, in s."""
        return max(self.ended.values())

    def busiest(self) -> float:
        """Return how long the busiest rank computed scores, in s."""
        return max(side.busy for side in self.sides.values())

    def mean(self) -> float:
        """Return how long a rank computed scores on average, in s."""
        return sum(side.busy for side in self.sides.values()) / self.ranks


class SequenceSide:
    """The task of one rank as the solution sees it."""

    takes: ClassVar[dict[str, Takes]] = {
        "forward": (("queries, an array", ARRAY[1]), ("keys, an array", ARRAY[1])),
    }

    def __init__(self, sequence: SharedSequence, comm, task):
        self._sequence, self._comm, self.per_epoch = sequence, comm, task.per_epoch
        self.own = np.array([], int)
        self.asked = np.zeros((0, sequence.positions), bool)
        self.most_keys, self.busy = 0, 0.0

    def comm(self):
        """Return the comm that the worker gets."""
        names = "isend", "irecv", "send", "recv", "all_gather"
        parts = {name: getattr(self._comm, name) for name in names}
        return Restricted("comm", rank=self._comm.rank, size=self._comm.size, **parts)

    def start(self, positions=None):
        """Return the queries, keys and values at these positions, (positions, width) each, and record that they belong
        to this rank.
        """
        whole, rank = self._sequence, self._comm.rank
        if not isinstance(positions, np.ndarray) or positions.dtype.kind not in "iu" or positions.ndim != 1:
            raise SolutionError("task.start takes the positions of this rank, an array of whole numbers.")
        if len(self.own):
            raise SolutionError(f"rank {rank} called task.start twice; ask for all of its positions at once.")
        if (
            not len(positions)
            or np.any(np.diff(positions) <= 0)
            or positions[0] < 0
            or positions[-1] >= whole.positions
        ):
            raise SolutionError(
                f"rank {rank} asked for positions that are not ascending numbers from 0 to {whole.positions - 1}."
            )
        if len(positions) * whole.ranks != whole.positions:
            raise SolutionError(
                f"rank {rank} asked for {len(positions)} positions; each rank has {whole.positions // whole.ranks}."
            )
        for position in positions.tolist():
            if whole.owner.setdefault(position, rank) != rank:
                raise SolutionError(
                    f"rank {rank} asked for position {position}, which rank {whole.owner[position]} has already."
                )
        self.own, self.asked = positions, np.zeros((len(positions), whole.positions), bool)
        return whole.q[positions], whole.k[positions], whole.v[positions]

    def forward(self, queries, keys):
        """Return the scores of these queries and keys, (queries, keys). Charge the time that this takes, and record
        that the scores were computed.
        """
        whole = self._sequence
        rows, columns = self._places("q", queries), self._places("k", keys)
        own = {position: at for at, position in enumerate(self.own.tolist())}
        if strange := [int(row) for row in rows if int(row) not in own]:
            raise SolutionError(f"rank {self._comm.rank} has no position {strange[0]}, but used its query.")
        self.asked[np.ix_([own[int(row)] for row in rows], columns)] = True
        self.most_keys = max(self.most_keys, len(columns))
        began = self._comm.event_log.clock()
        with self._comm.event_log.doing(COMPUTE, "scores"):
            METER.get().charge("matmul", 2 * whole.width * len(rows) * len(columns), 0)
        self.busy += self._comm.event_log.clock() - began
        return whole.scores(rows, columns)

    def _places(self, name: str, rows: np.ndarray) -> np.ndarray:
        """Return the position of each row of queries or keys, (rows,). Raise SolutionError for a row that `start` did
        not give.
        """
        whole, kind = self._sequence, {"q": "queries", "k": "keys"}[name]
        if rows.ndim != 2 or rows.shape[1] != whole.width:
            raise SolutionError(
                f"task.forward takes {kind} of shape (any number, {whole.width}), but was given shape {rows.shape}."
            )
        rows = np.ascontiguousarray(rows, np.float32)
        found = [whole.place[name].get(row.tobytes(), -1) for row in rows]
        if -1 in found:
            raise SolutionError(
                f"task.forward was given {kind} that task.start did not give. Pass on its rows unchanged."
            )
        return np.array(found, int)
