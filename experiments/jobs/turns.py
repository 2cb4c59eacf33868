"""Decide whose job is next, so that one reader's ten tabs do not hold up a class.

    round 3   ada's first, bob's first, cy's first    readers with nothing running, short jobs first
    round 4   ada's second, bob's second              then their next, and so on

A reader has one turn per round. Within a round short jobs go before long ones, so a long one waits for at most one job
of every other reader, however many short ones they request. Readers with a running job come after those without one.

An owner is "reader", "reader:tab" or either with "/place", and a reader is "browser@address" or a plain name (see
app.session). All tabs of a browser share one reader. A browser can give itself any name; an address cannot be faked,
but a class may share one. So turns go by reader, and the address matters only when the queue is full.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from experiments.jobs.spec import JobSpec
from experiments.specification.experiment import Experiment


class Waiting(Protocol):
    """A job in the queue, with what decides its turn: its length and its readers. Several readers may wait for the same
    job.
    """

    length: float

    @property
    def readers(self) -> frozenset[str]: ...


J = TypeVar("J", bound=Waiting)


def reader(owner: str) -> str:
    """Return the reader to whom `owner`, a tab or a slot in a tab, belongs."""
    return owner.partition("/")[0].partition(":")[0]


def address(reader: str) -> str:
    """Return the network address of `reader`, which all browsers behind it share."""
    return reader.partition("@")[2]


def length(work: Experiment | JobSpec) -> float:
    """Return the length of a job, in samples to train on, or infinity if it is unknown in advance."""
    if isinstance(work, JobSpec) or work.steps is None:
        return math.inf
    return float(work.steps * work.workers * work.batch)


class Turns:
    """The turns of all readers, one per round for each reader. Not thread-safe: the caller must hold a lock."""

    def __init__(self) -> None:
        self.round = 0
        self.served: dict[str, int] = {}  # the last round in which a reader had a turn, if it is not over

    def order(self, waiting: Sequence[J], running: Iterable[Waiting] = ()) -> list[J]:
        """Return the `waiting` jobs, which are in order of submission, in the order of their turns."""
        before = Counter(name for job in running for name in job.readers)  # jobs that this reader submitted before it
        queued: Counter[str] = Counter()
        turns = {}
        for serial, job in enumerate(waiting):
            ranks = [(before[name] + queued[name], self._next(name) + queued[name]) for name in job.readers]
            turns[id(job)] = (*min(ranks), job.length, serial)
            queued.update(job.readers)
        return sorted(waiting, key=lambda job: turns[id(job)])

    def take(self, job: Waiting) -> None:
        """Count a turn for a job that is started."""
        self.round = max(self.round, min(self._next(name) for name in job.readers))
        self.served = {name: last for name, last in self.served.items() if last >= self.round}
        self.served.update(dict.fromkeys(job.readers, self.round))

    def _next(self, name: str) -> int:
        """Return the round of this reader's next turn."""
        return max(self.round, self.served.get(name, -1) + 1)


def job_to_drop(waiting: Sequence[J], asking: str) -> J | None:
    """Return the job that gives up its place in a full queue to `asking`, or None if that reader already has a fair
    share.

    It is the last job of the reader with the most jobs, unless `asking` would then have as many. If everybody has one
    and `asking` has none, it is the last job of the address with the most: an address that poses as a hundred readers
    keeps nobody out.
    """
    own = [job for job in waiting if len(job.readers) == 1]  # a job that others also wait for stays
    whose = [next(iter(job.readers)) for job in own]
    mine = sum(asking in job.readers for job in waiting)
    if (job := _last_of_most(own, whose, mine)) or mine:
        return job
    here = sum(address(asking) in map(address, job.readers) for job in waiting)
    return _last_of_most(own, [address(reader) for reader in whose], here)


def _last_of_most(jobs: Sequence[J], names: Sequence[str], mine: int) -> J | None:
    """Return the last job of the reader or address with the most jobs, if it has at least two more jobs than `mine`."""
    name, most = max(Counter(names).items(), key=lambda item: item[1], default=("", 0))
    return [job for job, its in zip(jobs, names, strict=True) if its == name][-1] if most > mine + 1 else None
