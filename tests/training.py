"""Training in tests: an algorithm and a workload on a cluster, at the lowest level that runs them.

Also two workloads small enough to check by hand: springs, whose gradients are known, and a scalar chain, which can
be cut in stages.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from functools import partial

import numpy as np

import algorithms
import kernels
from cluster import simulated
from cluster.event_log import Outcome
from kernels.meter import METER
from workloads.blocks import PlainBlock
from workloads.budget import Budget
from workloads.experts import OWN, SHARED, MoeBlock
from workloads.layers import Dense, Layer
from workloads.quadratic import Quadratic
from workloads.sequential import Sequential
from workloads.supervised import Supervised
from workloads.task import Task
from workloads.tensor_split import blocks as split_blocks
from workloads.transformer import AttentionBlock, rows
from workloads.workload import Evaluation, Workload


@dataclass
class Training:
    """What came out of it."""

    outcome: Outcome
    servers: int
    parameters: int

    @property
    def models(self) -> list[np.ndarray]:
        """The models of those who train; the stages of a pipeline hold one together, in any order."""
        results = self.outcome.results[self.servers :]
        whole = all(result is not None and result.shape == (self.parameters,) for result in results)
        in_order = not any(event_log.places for event_log in self.outcome.event_logs)
        return results if whole and in_order else [self.shipped]

    @property
    def shipped(self) -> np.ndarray:
        """The model that was reported last, put together from the parts of all ranks."""
        latest = {
            (event_log.rank, *row[2:4]): row[4] for event_log in self.outcome.event_logs for row in event_log.reports
        }
        w = np.full(self.parameters, np.nan, next(iter(latest.values())).dtype)
        for (rank, start, stop), part in latest.items():
            w[self.outcome.event_logs[rank].places.get((start, stop), slice(start, stop))] = part
        assert not np.isnan(w).any()
        return w

    @property
    def staleness(self) -> list[list[int]]:
        """Of every update, by rank."""
        return [[row[1] for row in event_log.applied] for event_log in self.outcome.event_logs]


def insist(outcome) -> None:
    """Raise the error of a run, and refuse any note but that kernels were compiled, as on a fresh machine."""
    if outcome.error:
        raise outcome.error
    assert not [note for note in outcome.notes if not note.startswith("Kernels were compiled")]


def train(
    name: str,
    workload,
    workers: int = 1,
    settings: dict | None = None,
    *,
    batch: int = 1,
    seed: int = 0,
    run=simulated.run,
    steps: int | None = 10,
    fails: bool = False,
    budget: dict | None = None,
    **where,
) -> Training:
    """Train `workload`, or `workload(rank)`, and insist that it worked and left nothing unread, unless it `fails`."""
    method = algorithms.find(name)
    s = method.Settings(**settings or {})
    servers, shards = method.servers(s), method.data_shards(workers, s)
    limit = Budget(**budget) if budget else Budget(steps=steps)
    program = partial(one_rank, name, s, workload, servers, shards, batch, seed, limit)
    outcome = run(program, servers + workers, **where)
    if not fails:
        insist(outcome)
    one = workload(servers) if callable(workload) else workload
    return Training(outcome, servers, one.parameters)


def wait_until_told(event_log):
    """Until all that a rank of a real cluster has noted is in the pipe to its parent, where no death can undo it."""
    for _ in range(2):  # what the second report takes was noted after the first had been sent
        event_log.measures.append((0, 0, event_log.clock(), "told", 0.0))
        while event_log.measures:
            time.sleep(0.01)


def one_rank(name, s, workload, servers, shards, batch, seed, budget, comm):
    """The program of one rank."""
    worker = comm.rank - servers
    task = Task(
        workload(comm.rank) if callable(workload) else workload,
        comm,
        budget=budget,
        batch=batch,
        data_shard=worker * shards // (comm.size - servers) if worker >= 0 else None,
        data_shards=shards,
        per_update=algorithms.find(name).per_update(s),
        seed=seed,
    )
    with np.errstate(all="ignore"):  # it may diverge; not around each pass, which it makes slower by half
        return algorithms.find(name).worker(comm, task, s)


def pay(flops: float) -> None:
    """Charge the calling rank."""
    if meter := METER.get():
        meter.charge("toy", flops, 0)


class Springs(Workload):
    """f(w) = mean over the batch of |w - c|^2 / 2: sample i pulls towards centre c[i], in every coordinate.

    `starts` are the answers to start(), one after the other, the last one again and again. `seen` keeps for each
    centre where its gradients were asked for.
    """

    name, shuffle = "springs", False

    def __init__(self, centres=(0.0,), starts=(1.0,), parameters=1, curvature=1.0, dtype=np.float64):
        self.centres, self.starts = np.asarray(centres, dtype), list(starts)
        self.samples, self.parameters, self.dtype = len(centres), parameters, np.dtype(dtype)
        self.curvature = self.dtype.type(curvature)
        self.tensors = ((slice(0, parameters), (parameters,)),)
        self.seen: dict[float, list[np.ndarray]] = {}

    def start(self, seed):
        value = self.starts.pop(0) if len(self.starts) > 1 else self.starts[0]
        return np.full(self.parameters, value, self.dtype)

    def batch(self, indices):
        return (self.centres[indices],)

    def gradient(self, w, batch):
        pay(1e7)
        self.seen.setdefault(float(batch[0][0]), []).append(w.copy())
        g = self.curvature * (w - batch[0].mean())
        return float(g @ g) / 2, g

    def evaluate(self, w):
        return Evaluation(float(np.square(w - self.centres.mean()).mean()) / 2, np.nan)


class Slope(Springs):
    """f(w) = 2 sum(w): the gradient is 2 in every coordinate, whatever the sample. `seen` lists w of every gradient."""

    name = "slope"

    def __init__(self, parameters=1, start=1.0):
        super().__init__(centres=np.zeros(64), starts=[start], parameters=parameters)
        self.seen = []

    def gradient(self, w, batch):
        pay(1e7)
        self.seen.append(w.copy())
        return 2 * float(w.sum()), np.full_like(w, 2)

    def evaluate(self, w):
        return Evaluation(2 * float(w.sum()), np.nan)


def noisy_bowl(samples: int, dimension: int = 1000) -> Quadratic:
    """f(w) = |w|^2 / 2 from its optimum 0, in many coordinates at once; a sample's gradient is w + noise of 1."""
    points = np.random.default_rng(0).standard_normal((samples, dimension))
    return Quadratic(points, np.ones(dimension), np.zeros(dimension), shuffle=False)


class ScalarChain(Workload):
    """y = w[-1] ... w[1] w[0] x with loss (y - 1)^2 / 2: one weight is one layer."""

    name, shuffle = "chain", False

    def __init__(self, w=(0.5, 0.6, 0.7), x=(1.0, 2.0, 1.5, 0.5, 1.0, 1.2, 0.8, 1.6), dtype=np.float64, flops=1e7):
        self.w, self.x = np.array(w, dtype), np.array(x, dtype)
        self.samples, self.parameters, self.dtype, self.flops = len(self.x), len(self.w), np.dtype(dtype), flops
        self.depth = len(self.w)
        self.tensors = tuple((slice(layer, layer + 1), (1,)) for layer in range(self.depth))

    def start(self, seed):
        return self.w.copy()

    def batch(self, indices):
        return self.x[indices], np.ones(len(indices), self.dtype)

    def split(self, stages):
        if not isinstance(stages, int):
            return [ScalarPart(self, layers) for layers in np.split(np.arange(len(self.w)), np.cumsum(stages)[:-1])]
        if stages > len(self.w):
            raise ValueError(f"{stages} stages are too many for {len(self.w)} layers; use at most {len(self.w)}.")
        return [ScalarPart(self, layers) for layers in np.array_split(np.arange(len(self.w)), stages)]

    def boundaries(self, stages):
        return (1,) * (stages - 1)

    def gradient(self, w, batch):
        x, target = batch
        (whole,) = self.split(1)
        y, saved = whole.forward(w, x)
        loss, dy = whole.loss(y, target)
        return loss, whole.backward(w, saved, dy)[1]

    def evaluate(self, w):
        return Evaluation(float(np.square(w.prod() * self.x - 1).mean()) / 2, np.nan)


@dataclass(frozen=True)
class Spread(Dense):
    """A dense layer that starts with one weight spread over all inputs of each unit, and costs `toll` FLOPs a pass."""

    weight: float = 1.0
    toll: float = 0.0

    def forward(self, parts, x):
        pay(self.toll)
        return super().forward(parts, x)

    def backward_input(self, parts, saved, dy, needed=True):
        pay(2 * self.toll)
        return super().backward_input(parts, saved, dy, needed)

    def start(self, generator):
        return np.full(self.shapes[0], self.weight / self.units), np.zeros(self.units)


class WideChain(Supervised):
    """The same function, each weight spread over a dense layer without activation, so that ranks can share it.

    Inputs and targets are so small that losses, and what a step does to each spread weight, are the scalar's.
    """

    layer: type[Spread] = Spread
    kind: type[Sequential] = Sequential

    def __init__(self, w=(0.5, 0.6, 0.7), x=(1.0, 2.0, 1.5, 0.5), dtype=np.float64, flops=1e7, units=12):
        layers = [self.layer((units,), units, "none", weight, flops) for weight in w]
        each = np.repeat(x, units).reshape(-1, units) / math.sqrt(units)
        layers, each = self.arranged(layers, each)
        data = each, np.full_like(each, 1 / math.sqrt(units))
        super().__init__("wide chain", self.kind(layers, kernels.squared_error, dtype), data, data)
        self.shuffle, self.arguments = False, (w, x, dtype, flops, units)

    def arranged(self, layers, x):
        """The layers and the samples x, (n, units)."""
        return layers, x

    def __reduce__(self):
        return type(self), self.arguments  # a kernel does not go to other processes


@dataclass(frozen=True)
class AtEach(Layer):
    """A layer at each of `time` positions."""

    inner: Layer
    time: int

    inputs = property(lambda self: (self.time, *self.inner.inputs))
    outputs = property(lambda self: (self.time, *self.inner.outputs))
    shapes = property(lambda self: self.inner.shapes)
    flops = property(lambda self: self.time * self.inner.flops)

    def start(self, generator):
        return self.inner.start(generator)

    def forward(self, parts, x):
        y, saved = self.inner.forward(parts, rows(x))
        return y.reshape(*x.shape[:-1], -1), saved

    def backward_input(self, parts, saved, dy, needed=True):
        dx, pending = self.inner.backward_input(parts, saved, rows(dy), needed)
        return dx.reshape(*dy.shape[:-1], -1) if needed else None, pending

    def backward_weights(self, gradients, pending):
        self.inner.backward_weights(gradients, pending)


@dataclass(frozen=True)
class ByPosition(PlainBlock):
    """A first block, whose outputs are the positions of all samples, as rows."""

    axes, partial = (), False

    def inner(self, parts, x):
        return rows(x), ()

    def inner_back(self, parts, saved, dz, g, needed):
        return None


class LossOfRows(Sequential):
    """A model of sequences whose outputs may be rows, one for each position of each sample."""

    def loss(self, y, target):
        return super().loss(y, target.reshape(y.shape))


class Sentences(WideChain):
    """The same chain at each position of sequences, without attention."""

    kind = LossOfRows
    time, heads = 8, 4

    def arranged(self, layers, x):
        return [AtEach(layer, self.time) for layer in layers], np.repeat(x[:, None], self.time, axis=1)

    def sequence(self):
        return self.time, self.heads

    def blocks(self, rank, ranks, holder=None):
        layers = [getattr(layer, "inner", layer) for layer in self.model.layers]
        return [ByPosition(), *split_blocks(layers, rank, ranks, holder)]


class Silent(AttentionBlock):
    """Attention whose output counts for nothing at first. No bias is 0, since keys' biases would stay 0 but for
    rounding."""

    def start(self, generator):
        *others, w, b = super().start(generator)
        return *(part + 0.1 * (part.ndim == 1) for part in others), 0 * w, b


class SilentExperts(MoeBlock):
    """A mixture of experts whose output counts for nothing at first. No bias is 0, except those of the output."""

    def start(self, generator):
        parts = [part + 0.1 * (part.ndim == 1) for part in super().start(generator)]
        last = range(SHARED + OWN - 2, len(parts), OWN)
        return tuple(0 * part if n in last or n - 1 in last else part for n, part in enumerate(parts))


class AttentiveChain(Sentences):
    """The same chain at each position of sequences, after a block of attention."""

    block = staticmethod(lambda time, units, heads: Silent(time, units, heads))

    def arranged(self, layers, x):
        layers, x = super().arranged(layers, x)
        units = x.shape[-1]
        waves = 0.1 * np.sin(np.arange(self.time)[:, None] + np.arange(units))  # positions that differ
        first = self.block(self.time, units, self.heads)
        return [first, *layers], x * (1 + waves - waves.mean(axis=1, keepdims=True))


class ExpertChain(AttentiveChain):
    """The same chain after a mixture of four experts."""

    block = staticmethod(lambda time, units, heads: SilentExperts(time, units))


class GridChain(AttentiveChain):
    """The same chain after attention and a mixture of experts with room for all tokens."""

    def arranged(self, layers, x):
        (attention, *chain), x = super().arranged(layers, x)
        return [attention, SilentExperts(self.time, x.shape[-1], capacity=4, balance=0.0), *chain], x

    def start(self, seed):
        """Return initial parameters of which none is 0, where a difference by rounding would be as large as they."""
        w = super().start(seed)
        return np.where(w == 0, w.dtype.type(0.01), w)


class ScalarPart:
    """Consecutive layers of a scalar chain."""

    def __init__(self, chain, layers):
        self.chain, self.offset, self.parameters = chain, int(layers[0]), len(layers)

    def start(self, seed):
        return self.chain.start(seed)[self.offset : self.offset + self.parameters]

    def forward(self, w, x):
        pay(self.chain.flops * len(w))
        saved = []
        for weight in w:
            saved.append(x)
            x = weight * x
        return x, saved

    def backward(self, w, saved, dy, g=None, add=False):
        dx, pending = self.backward_input(w, saved, dy)
        return dx, self.backward_weights(pending, g, add)

    def backward_input(self, w, saved, dy):
        pay(self.chain.flops * len(w))
        pending = []
        for weight, x in zip(reversed(w), reversed(saved), strict=True):
            pending.append((dy, x))
            dy = weight * dy
        return dy, pending[::-1]

    def backward_weights(self, pending, g=None, add=False):
        pay(self.chain.flops * len(pending))
        new = np.array([dy @ x for dy, x in pending])
        if g is None:
            return new
        g[:] = g + new if add else new
        return g

    def backward_factors(self, w, saved, dy):
        return *self.backward(w, saved, dy), None

    def loss(self, y, target):
        return float(np.square(y - target).mean()) / 2, (y - target) / len(y)
