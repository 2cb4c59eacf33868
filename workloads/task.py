"""The task: what one rank trains, and where it writes down how that goes.

An algorithm asks the task for its first parameters, for steps, for gradients, and tells it which model it would
ship now. Losses, samples, staleness and time are recorded here and in the cluster, never by the algorithm, so every
algorithm stops the same way, diverges the same way and is measured the same way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from kernels import metered, to_device, to_numpy
from kernels.arrays import extents, shares
from knobs import Knobs, knob
from workloads.batches import Batches
from workloads.checkpoints import Checkpoints
from workloads.layerwise import Passing, places
from workloads.shared_memory import Walk

_COMPUTE = 0  # tracing.COMPUTE; the task knows the event log only by its rows
_RECENT = 20  # mini-batches in the running mean that a target loss is compared with


class Evaluation(NamedTuple):
    """How good a model is on held-out data; accuracy is NaN where the workload has none."""

    loss: float
    accuracy: float


class Workload(Protocol):
    """A model and its data. Parameters are one flat vector `w`, shape (parameters,)."""

    name: str
    parameters: int
    depth: int  # layers that it can be cut in; 1 if it cannot be
    tensors: tuple[tuple[slice, tuple[int, ...]], ...]  # where each tensor of the model lies in w, and its shape
    samples: int  # in the training set
    shuffle: bool
    dtype: Any

    def start(self, seed: int) -> np.ndarray:
        """The first parameters; seeded per layer, so every split of a model starts from the same numbers."""

    def batch(self, indices: np.ndarray) -> tuple:
        """The samples at these indices, as arrays."""

    def gradient(self, w: np.ndarray, batch: tuple) -> tuple[float, np.ndarray]:
        """(loss, g): mean over the batch, and its gradient at w."""

    def evaluate(self, w: np.ndarray) -> Evaluation:
        """The held-out loss and accuracy at w."""

    def split(self, stages: int | Sequence[int]) -> list:
        """The model cut in consecutive stages: in so many, as equal in work as layers allow, or in stages of so many
        layers each. ValueError if it cannot be."""

    def boundaries(self, stages: int | Sequence[int]) -> tuple[int, ...]:
        """Numbers per sample that cross from each stage to the next."""


class Budget(Knobs):
    """When to stop: whichever comes first."""

    steps: int | None = knob(None, "mini-batches per worker", ge=1, le=10_000_000, unit="steps")
    epochs: float | None = knob(None, "passes over the training set", gt=0, le=10_000, unit="epochs")
    seconds: float | None = knob(None, "time on the run's own clock", gt=0, le=1e7, unit="s")
    target_loss: float | None = knob(None, "stop when the mean of 20 mini-batch losses is below this", gt=0, le=1e6)

    def limit(self, per_epoch: int) -> int | None:
        """Steps that this budget allows a worker with `per_epoch` batches an epoch; None for no such limit."""
        limits = [self.steps, None if self.epochs is None else max(1, round(self.epochs * per_epoch))]
        return min((n for n in limits if n is not None), default=None)


class Diverged(ArithmeticError):
    """The loss became NaN or infinite; `rank` and `step` say where. What was recorded until then is kept."""

    def __init__(self, loss: float, rank: int, step: int):
        super().__init__(f"diverged: the loss became {loss} at step {step} on rank {rank}")
        self.rank, self.step = rank, step

    def __reduce__(self):
        return type(self), (math.nan, self.rank, self.step)


class OutOfMemory(ValueError):
    """A rank needs more memory than it has."""


class Task:
    """One rank's share of a workload.

    `shard` of `shards` is this rank's part of the data, None on a server that trains nothing. Of the reports one in
    `report_every` is kept for evaluation; whenever they have become twice `keep`, every second one is dropped, so
    that a run of any length keeps between `keep` and twice as many, evenly spaced. `memory` is how many bytes a rank
    has, None for as many as it likes.

    A rank that comes back after it was lost begins with the newest model of `checkpoints`, and goes on in its budget
    and its data after the last loss that its former life has written down.
    """

    def __init__(
        self,
        workload: Workload,
        comm,
        *,
        budget: Budget,
        batch: int = 32,
        shard: int | None = 0,
        shards: int = 1,
        seed: int = 0,
        report_every: int = 1,
        keep: int | None = None,
        memory: float | None = None,
        checkpoints: Checkpoints | None = None,
    ):
        self.workload, self.comm, self.budget, self.seed = workload, comm, budget, seed
        self.batch, self.shards, self.memory = batch, shards, memory
        self.event_log = comm.event_log
        self.report_every, self.keep = report_every, keep
        self.serves = shard is None
        self.checkpoints = checkpoints
        self._restart = checkpoints.read(self.event_log.clock()) if checkpoints else None
        before = [] if self._restart is None else self.event_log.losses  # those of a former life
        self._first, self._samples = (before[-1][0] + 1, before[-1][1]) if before else (0, 0)
        self._recent = [loss for *_, loss in before[-_RECENT:]]
        self.batches = Batches(workload.samples, batch, shard or 0, shards, seed, workload.shuffle, len(before))
        self._kept = 0
        self._reports: dict[tuple[int, int], int] = {}  # part of the model -> how often it was reported

    @property
    def tensors(self) -> tuple[tuple[slice, tuple[int, ...]], ...]:
        """Where each tensor of the model lies in w, and its shape: a matrix of weights, a vector of biases."""
        return self.workload.tensors

    @property
    def layers(self) -> tuple[slice, ...]:
        """Where each layer lies in w: what `forward` and `backward` go through; all of w if it is not in layers."""
        return places(self.workload)

    @property
    def per_epoch(self) -> int:
        """Mini-batches of a rank that trains in one pass over the data."""
        return self.batches.per_epoch

    def start(self) -> np.ndarray:
        """The first parameters, (d,): the same on every rank but on one that comes back."""
        w = self.workload.start(self.seed) if self._restart is None else self._restart.copy()
        return to_device(w, self.comm.device)

    @property
    def open_ended(self) -> bool:
        """Whether the budget may be spent before its steps are: it has seconds or a target loss."""
        return self.budget.seconds is not None or self.budget.target_loss is not None

    def steps(self, together: bool = False) -> Iterator[int]:
        """Count this rank's steps, or a server's updates, until the budget is spent.

        With `together` all ranks of the run stop at the same step, as methods need that meet in every step. A budget
        of steps or epochs says so by itself; one in seconds or with a target loss is agreed by reducing one number.
        """
        limit = self.budget.limit(self.per_epoch)
        step = self._first
        while limit is None or step < limit:
            if self.open_ended and self._spent(together):
                break
            self.at(step)
            yield step
            step += 1

    def at(self, step: int) -> None:
        """This rank works on `step` now; for ranks that follow the steps of another, as stages of a pipeline do."""
        self.event_log.step = step

    def spent(self) -> bool:
        """Whether the seconds are up or the target loss is reached, as far as this rank can tell."""
        return self._spent(together=False)

    def next_batch(self) -> tuple:
        """The next mini-batch of this rank's shard."""
        if self.serves:
            raise ValueError(f"rank {self.comm.rank} is a server: it has no data to take a batch from")
        parts = self.workload.batch(next(self.batches))
        return tuple(to_device(part, self.comm.device) for part in parts)

    def gradient(self, w: np.ndarray, batch: tuple | None = None) -> tuple[float, np.ndarray]:
        """(loss, g) at w on `batch`, or on the next mini-batch: mean loss, and a new array of shape (d,)."""
        batch = self.next_batch() if batch is None else batch
        with self.event_log.doing(_COMPUTE, "gradient"):
            loss, g = self.workload.gradient(w, batch)
        self._needed(w, g, len(batch[0]))
        self.record(loss, len(batch[0]))
        return loss, g

    def portion(self, w: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        """(loss, g) at w: means over these samples of the training set, whoever's they are. No loss is recorded."""
        batch = tuple(to_device(part, self.comm.device) for part in self.workload.batch(indices))
        with self.event_log.doing(_COMPUTE, "portion"):
            loss, g = self.workload.gradient(w, batch)
        self._needed(w, g, len(batch[0]))
        return loss, g

    def walk(self, shared, rate: float, examples: int = 1, anchor: tuple | None = None) -> None:
        """Take the next mini-batch through shared memory, `examples` samples to a step:

        w <- w - rate (sum of their gradients at w), or of g(w) - g(a) + G for each if the anchor (a, G) is given. Where
        it can be seen, staleness is recorded, and measured how many coordinates were "written" for a sample, and what
        part of these writes were "conflicts" and what part "lost" additions of others.
        """
        walk = getattr(self.workload, "walk", None) or partial(Walk, self.workload)
        indices = next(self.batches)
        with self.event_log.doing(_COMPUTE, "walk"):
            loss, tally = shared.walk(walk(indices, rate, examples, anchor))
        self.record(loss / len(indices), len(indices))
        if tally:
            for staleness in tally.staleness:
                self.applied(staleness)
            self.measure("written", tally.written / len(indices))
            self.measure("conflicts", tally.conflicts / tally.written)
            self.measure("lost", tally.lost / tally.written)

    def forward(self, w, batch: tuple | None = None) -> Iterator[slice]:
        """Pass a mini-batch forward layer by layer: yields the part of w that the next layer is about to read.

        What it says of w when the layer comes to it is what counts, so a layer's update may come at the last moment.
        """
        self._passing = Passing(self, self.next_batch() if batch is None else batch)
        return self._passing.forward(w)

    def backward(self) -> Iterator[tuple[slice, Any]]:
        """Pass the same mini-batch back: yields (part, g) of each layer, the last first, as soon as g (new) is there.

        All parts together are the gradient, bit for bit. The loss is recorded before the first of them.
        """
        return ((part, g) for part, g, _ in self._passing.backward())

    def backward_factors(self) -> Iterator[tuple[slice, Any, tuple | None]]:
        """The same with (part, g, factors): inputs (batch, rows) and errors (batch, columns) of a dense layer.

        Its g is then inputs' errors, (rows, columns) in row order, followed by the sum of errors over the batch, the
        bias's; other layers have factors None.
        """
        return self._passing.backward()

    def stage(self, index: int, count: int, replica: int = 0, replicas: int = 1, cuts: Sequence[int] = ()):
        """Stage `index` of the model cut in `count`, for pipelines; replicas share the data out among themselves.

        `cuts` are the layers of each stage; without, stages are balanced by work.
        """
        from workloads.stage import Stage

        return Stage(self, index, count, replica, replicas, cuts)

    def module(self, index: int, count: int):
        """The same stage for methods in which it learns without the error of the one after it."""
        from workloads.decoupled import Module

        return Module(self, index, count)

    def shard(self, rank: int, ranks: int, stage: int = 0, stages: int = 1, chunks: int = 1):
        """Shard `rank` of the model dealt out to `ranks` that take every sample together, by columns and rows.

        Of a pipeline only the blocks of `stage`; mini-batches come in so many `chunks`, equally large.
        """
        from workloads.shard import Shard

        blocks = self.workload.blocks(rank, ranks)
        some = shares(len(blocks), stages)[stage]
        return Shard(self, rank, blocks, lambda _, size: np.arange(size)[shares(size, ranks)[rank]], some, chunks)

    def units(self, rank: int, assign: Callable[[int], Sequence[np.ndarray]]):
        """The shard of `rank` where assign(n), called layer by layer, deals out its n units: an array for each rank.

        What was assigned is (layer, rank) in the shard's `assigned`.
        """
        from workloads.shard import Shard

        assigned = [assign(units) for units in self.workload.units]
        mine = [ranks[rank] for ranks in assigned]
        shard = Shard(self, rank, self.workload.unit_blocks([*map(len, mine)]), lambda layer, _: mine[layer])
        shard.assigned = assigned
        return shard

    def needs(self, w, g, saved) -> None:
        """This rank holds w, a gradient g like it, and the arrays in `saved`, nested as they like, for the way back."""
        self.event_log.hold("parameters", w.nbytes)
        self.event_log.hold("gradients", g.nbytes)
        self.holds("activations", sum(extents(saved).values()))

    def applied(self, staleness: int) -> None:
        """One update entered the shared model, computed from parameters `staleness` updates old."""
        self.event_log.applied.append((self.event_log.clock(), staleness))

    def holds(self, kind: str, nbytes: int) -> None:
        """This rank holds so many bytes of a kind (`tracing.HELD`) from now on, whatever it held before.

        A gradient says by itself that it needs parameters, gradients and activations, and an update rule what it
        remembers. TooLarge if it is more than the rank has.
        """
        event_log = self.event_log
        event_log.hold(kind, nbytes)
        if self.memory is not None and sum(event_log.held) > self.memory:
            raise OutOfMemory(
                f"rank {event_log.rank} has {self.memory:,.0f} bytes of memory and needs {event_log.inventory()}; "
                "use a smaller model or batch, or deal the model out to more ranks."
            )

    def measure(self, quantity: str, value: float) -> None:
        """Write down a number that the method finds worth a curve, by its name: "noise scale", "spread"."""
        self.event_log.measures.append((self.event_log.step, self.event_log.clock(), quantity, float(value)))

    def report(self, w: np.ndarray, where: slice | np.ndarray = slice(None)) -> None:
        """The model that this rank would ship now, or a part: a slice of it, or numbers whose places are `where`.

        It is evaluated outside the clock.
        """
        if self.serves:  # a rank that trains has said so with its gradient
            self.holds("parameters", w.nbytes)
        if isinstance(where, slice):
            start, stop, _ = where.indices(self.workload.parameters)
        elif len(where):
            start, stop = int(where[0]), int(where[0]) + len(where)
            self.event_log.places[start, stop] = where
        else:
            return
        if self.checkpoints:
            self.checkpoints.write(self.event_log.clock(), where, to_numpy(w))
        index = self._reports[start, stop] = self._reports.get((start, stop), 0) + 1
        if index % self.report_every:
            return
        self.event_log.reports.append((index, self.event_log.clock(), start, stop, to_numpy(w).copy()))
        self._kept += 1
        if self.keep and self._kept >= 2 * self.keep * len(self._reports):
            self.report_every *= 2
            self.event_log.reports[:] = [row for row in self.event_log.reports if row[0] % self.report_every == 0]
            self._kept = (self._kept + 1) // 2

    def record(self, loss: float, samples: int) -> None:
        """Write down a mini-batch loss; raises Diverged if it is not finite."""
        self._samples += samples
        event_log = self.event_log
        event_log.losses.append((event_log.step, self._samples, event_log.clock(), float(loss)))
        if not math.isfinite(loss):
            raise Diverged(float(loss), self.comm.rank, event_log.step)
        if self.budget.target_loss is not None:
            self._recent = [*self._recent[1 - _RECENT :], float(loss)]

    def _needed(self, w, g, samples: int) -> None:
        """What a gradient of the whole model needs at least."""
        self.event_log.hold("parameters", w.nbytes)
        self.event_log.hold("gradients", g.nbytes)
        self.holds("activations", getattr(self.workload, "activations", {}).get(samples, 0))

    def _spent(self, together: bool) -> bool:
        target, seconds = self.budget.target_loss, self.budget.seconds
        spent = seconds is not None and self.event_log.clock() >= seconds
        if target is not None and len(self._recent) == _RECENT:
            spent = spent or sum(self._recent) / _RECENT <= target
        if not together or self.comm.size == 1:
            return spent
        with metered(None):
            return bool(self.comm.all_reduce(np.array([spent], np.float32))[0])
