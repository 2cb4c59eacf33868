"""Hybrid parallelism forms groups: ranks of a group share a model unit by unit, and groups share the data.

N ranks are G groups of P. Every layer's units, or feature maps, are split within a group, whose ranks take the same
samples. A layer's inputs are gathered, and the errors at its inputs are summed:

    X <- X_1, ..., X_P                           before a layer, for its forward
    dX_r <- its part of dX_1 + ... + dX_P        after its backward
    g_r <- mean over the groups of g_r           at the end, among the ranks with the same units
    w_r <- w_r - lr rule(g_r)

layout: "data" is a group for each rank, "model" one group for all. `parts/rank_groups.py` derives the number of groups
that sends least: the more parameters per unit of work, the fewer groups. (Hence data-parallel convolutions and
model-parallel dense layers: Krizhevsky, arXiv:1404.5997.)

Price: 2 (P-1) elements in a group for each activation between two layers, 2 (G-1) d for gradients; a rank holds 1/P of
the parameters. Staleness: none.
Source: Yadan, Adams, Taigman & Ranzato, arXiv:1312.5853; node groups: Das et al., arXiv:1602.06709;
Sridharan et al. (MLSL), arXiv:1801.08030.
"""

import math
from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model
from algorithms.model_parallel.tensor import Replicated, backward, forward
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.rank_groups import divisors, one_of
from kernels.arrays import concatenate, shares


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every rank, for its units")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    layout: Literal["data", "model", "hybrid"] = knob(
        "hybrid", "how ranks are grouped: data (one each), model (one for all) or hybrid"
    )
    groups: int = knob(
        2,
        "G, groups of ranks; each group shares one model, on its own data",
        when={"layout": ("hybrid",)},
        ge=1,
        le=4096,
        unit="groups",
    )


def data_shards(workers, s):
    return {"data": workers, "model": 1, "hybrid": s.groups}[s.layout]


def check(workers, batch, workload, s):
    workload.unit_blocks(workload.units)  # raises if there are none, or with the layer that cannot be split
    groups, allowed = data_shards(workers, s), divisors(workers)
    if groups not in allowed:
        n = f"{workers} worker{'s' * (workers > 1)}"
        raise ValueError(f"{groups} groups do not divide {n}; use {one_of(allowed)} groups, or another layout.")
    members, (*hidden, last) = workers // groups, workload.units
    common = math.gcd(*hidden)
    if members > last or common % members:
        fitting = [g for g in allowed if workers // g <= last and common % (workers // g) == 0]
        raise ValueError(
            f"{members} ranks of a group cannot share layers of {', '.join(map(str, workload.units))} units: each "
            "layer but the last must divide evenly, and the last needs a unit for each rank; use "
            f"{one_of(fitting)} groups."
        )


def elements_sent(shape, s):
    groups = data_shards(shape.workers, s)
    if groups < shape.workers:
        return None  # it depends on the model's layers
    return 2 * (groups - 1) * shape.parameters * shape.steps


def notes(e):
    if e.workers > 1 and e.workers == data_shards(e.workers, e.knobs):
        yield "One group per rank is sync_sgd; use layout model, or fewer groups than workers."


def worker(comm, task, s=Settings()):
    members = comm.size // data_shards(comm.size, s)
    number, place = divmod(comm.rank, members)
    group, peers = (
        comm.split(number),
        comm.split(place),
    )  # ranks that share a model with this one; ranks with the same part of it
    model = task.unit_shard(place, lambda units: in_a_row(units, members))
    w = model.start()  # (d_r,)
    rule = optimizer(s.update, w, s.momentum)
    between = Units(group)
    for _ in task.steps(together=True):
        x, target = task.next_batch()
        y, saved = forward(model.blocks, w, x, between)
        _, dy = model.loss(between.whole(y), target)
        g = kernels.empty_like(w)
        task.needs(w, g, saved)
        backward(model.blocks, w, saved, between.own_part(dy), g, between)
        peers.all_reduce(g, op="mean")
        rule.step(w, g, s.learning_rate)
        if number == 0:
            model.report(w)
    return w


def in_a_row(units, ranks):
    """Return the units of each rank: consecutive, and divided as equally as possible."""
    return [np.arange(units)[share] for share in shares(units, ranks)]


class Units(Replicated):
    """The operators between two layers for the case that every rank has the outputs of its own units only."""

    def f(self, h):
        return concatenate(self.comm.all_gather(h), axis=1)

    def f_back(self, dh):
        size = self.comm.size
        pieces = [dh[:, share].reshape(-1) for share in shares(dh.shape[1], size)]  # by rank, equally long
        return self.comm.reduce_scatter(concatenate(pieces)).reshape(len(dh), -1, *dh.shape[2:])

    def whole(self, y):
        return self.f(y)

    def own_part(self, dy):
        return kernels.copy(dy[:, shares(dy.shape[1], self.comm.size)[self.comm.rank]])


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    data_shards=data_shards,
    split=lambda workers, s: one_model(workers / data_shards(workers, s), s),
    check=check,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one rank gives SGD", to="sgd", settings={"layout": "model"}),
        Equivalence(
            "three ranks that share a model give SGD",
            to="sgd",
            exactness="RND",
            workers=3,
            settings={"layout": "model"},
        ),
        Equivalence(
            "one group per rank gives synchronous SGD, bit for bit",
            to="sync_sgd",
            workers=3,
            settings={"layout": "data"},
        ),
        Equivalence("two groups give SGD with twice the batch", to="sgd", exactness="RND", workers=4, to_batch=2),
    ),
    example_workers=4,
)
