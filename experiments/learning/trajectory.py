"""Trajectory: the models that passed through the tasks of a run, each with its rank and time.

A watched task wraps a rank's own task. It records the parameters at which the algorithm asks for a gradient, those that
it reports, and those that the rank returns. Algorithms need no change; everything else is passed on.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

LIMIT = 512_000_000  # bytes of models that are stored
GRADIENT, REPORT, END = range(3)


class Sighting(NamedTuple):
    """A model that was seen at a rank. `what` is its kind, `number` its serial number within that kind, from 0, and
    `place` its index among the stored models.
    """

    rank: int
    seconds: float
    what: int  # GRADIENT, REPORT or END
    number: int
    place: int


class Applied(NamedTuple):
    """An update of a server's model after `versions` reports, with a gradient that was `staleness` versions old."""

    rank: int
    seconds: float
    versions: int
    staleness: int


class Trajectory:
    """The sightings of a run. Equal models are stored once.

    Above LIMIT bytes, every second gradient and report of each rank is dropped, so that a run of any length keeps
    evenly spaced ones: one in `every`. Raise ValueError if not even the first and last model of each rank would fit.
    """

    def __init__(self, parameters: int, itemsize: int, ranks: int, limit: int = LIMIT):
        if 4 * ranks * parameters * itemsize > limit:
            raise ValueError(
                f"the path of {ranks} models with {parameters:,} parameters each takes more than {limit / 1e6:.0f} "
                "MB; use a smaller model or fewer workers to see how it learns."
            )
        self.limit, self.every = limit, 1
        self.sightings: list[Sighting] = []
        self.applied: list[Applied] = []
        self.models: list[np.ndarray] = []  # each (d,)
        self._places: dict[bytes, int] = {}  # index in `models`, by the bytes of the model
        self._seen: Counter = Counter()  # by (rank, what)
        self._bytes = 0

    def see(self, rank: int, seconds: float, what: int, w: np.ndarray) -> None:
        """Record the model `w`, (d,), if it is finite and its turn: one in `every` of each rank and kind is kept. Above
        `limit` bytes, thin out what is recorded.
        """
        number = self._seen[rank, what]
        self._seen[rank, what] += 1
        if number % self.every == 0 and np.isfinite(w).all():
            self.sightings.append(Sighting(rank, seconds, what, number, self.keep(w)))
            if self._bytes > self.limit:
                self._thin()

    def apply(self, rank: int, seconds: float, staleness: int) -> None:
        """Record an update of the model that this rank reports."""
        self.applied.append(Applied(rank, seconds, self._seen[rank, REPORT], staleness))

    def keep(self, w: np.ndarray) -> int:
        """Store the model w, unless an equal one is stored, and return its index."""
        copy = w.tobytes()
        if copy not in self._places:
            self._places[copy] = len(self.models)
            self.models.append(np.frombuffer(copy, w.dtype))
            self._bytes += len(copy)
        return self._places[copy]

    def _thin(self) -> None:
        self.every *= 2
        kept = [one for one in self.sightings if one.number % self.every == 0]
        old, self.models, self._places, self._bytes = self.models, [], {}, 0
        self.sightings = [one._replace(place=self.keep(old[one.place])) for one in kept]


class WatchedTask:
    """A task that records its models in a trajectory."""

    def __init__(self, task, trajectory: Trajectory):
        self._task, self._trajectory = task, trajectory

    def __getattr__(self, name: str) -> Any:
        return getattr(self._task, name)

    def gradient(self, w, batch=None) -> tuple:
        self.see(GRADIENT, w)
        return self._task.gradient(w, batch)

    def portion(self, w, indices) -> tuple:
        self.see(GRADIENT, w)
        return self._task.portion(w, indices)

    def descend(self, shared, *args, **kwargs) -> None:
        """Record the shared model at the start of a mini-batch, and take the steps of that mini-batch."""
        self.see(GRADIENT, shared.vector)
        self._task.descend(shared, *args, **kwargs)

    def report(self, w, where=slice(None), new: bool = True) -> None:
        if isinstance(where, slice) and where == slice(None):
            self.see(REPORT, w)
        self._task.report(w, where, new)

    def applied(self, staleness: int) -> None:
        """Record an update of the shared model in the trajectory, and pass it on to the task."""
        event_log = self._task.event_log
        self._trajectory.apply(event_log.rank, event_log.clock(), staleness)
        self._task.applied(staleness)

    def see(self, what: int, w) -> None:
        """Record this rank's parameters `w`, unless they are only a shard."""
        if getattr(w, "shape", None) == (self._task.workload.parameters,):
            self._trajectory.see(self._task.event_log.rank, self._task.event_log.clock(), what, w)


def watch_worker(worker: Callable[[Any, Any, Any], Any], trajectory: Trajectory) -> Callable[[Any, Any, Any], Any]:
    """Return a worker that does what `worker` does, and records the models of its task and the model it returns in
    `trajectory`.
    """

    def program(comm, task, s):
        seen = WatchedTask(task, trajectory)
        w = worker(comm, seen, s)
        seen.see(END, w)
        return w

    return program


class Arrow(NamedTuple):
    """A stale update, as an arrow from the model whose gradient was computed to the model that was changed."""

    seconds: float
    start: int
    stop: int


def arrows(trajectory: Trajectory, servers: int) -> Iterator[Arrow]:
    """Yield the stale updates of servers that report every version of a whole model. Updates from or to dropped
    versions are left out.
    """
    versions: dict[tuple[int, int], int] = {
        (one.rank, one.number + 1): one.place for one in trajectory.sightings if one.what == REPORT
    }
    first = next((one.place for one in trajectory.sightings if one.what == GRADIENT), None)
    for rank, seconds, version, staleness in trajectory.applied:
        if rank < servers and staleness:
            since = versions.get((rank, version - staleness), first if version == staleness else None)
            if (now := versions.get((rank, version))) is not None and since is not None:
                yield Arrow(seconds, since, now)
