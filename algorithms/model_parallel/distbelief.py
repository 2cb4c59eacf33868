"""DistBelief partitions the units of a network: a machine computes its own, and receives only the outputs it needs.

Any assignment of units to machines works. An output is sent once to each machine that needs it, however many edges lead
there; in dense layers that is every machine. A layer starts when all its inputs have arrived:

    x <- outputs of all machines' units          forward: one message from each machine to each other
    d_r <- sum over machines q of d_q[r]         backward: q's part of the errors of r's units, one message from q to r
    w_r <- w_r - lr rule(g_r)

Price: 2 (P-1) elements for each unit's output between two layers and for each sample, in 2 P (P-1) messages per layer.
All machines wait for all in each layer. Beyond some number of machines messages cost more than they save
(`theory/partition_cost.py`); much later where units are connected locally. Staleness: none.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 3.
"""

from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model, shared_by_all
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from kernels.arrays import shares
from knobs import Refusal


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every machine, for its units")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    assignment: Literal["in a row", "by turns", "shuffled"] = knob(
        "in a row", "which units of the network a machine holds: in a row, by turns or shuffled"
    )


def check(workers, batch, workload, s):
    workload.unit_blocks(workload.units)  # raises if there are none, or with the layer that cannot be split
    if workers > (most := min(workload.units)):
        raise Refusal(f"{workers} machines are too many for a layer of {most} units; use at most {most}.", [most])


def elements_sent(shape, s):
    return None if shape.workers > 1 else 0  # it depends on the model's layers


def assign(units, machines, assignment):
    order = np.arange(units)
    if assignment == "by turns":
        return [order[machine::machines] for machine in range(machines)]
    if assignment == "shuffled":
        order = np.random.default_rng(units).permutation(units)  # the same on every machine
    return [np.sort(order[share]) for share in shares(units, machines)]


def worker(comm, task, s=Settings()):
    model = task.unit_shard(comm.rank, lambda units: assign(units, comm.size, s.assignment))
    w = model.start()  # (d_r,)
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        x, target = task.next_batch()
        y, saved = forward(comm, model, w, x)
        _, dy = model.loss(y, target)
        g = kernels.empty_like(w)
        task.needs(w, g, saved)
        backward(comm, model, w, saved, dy, g)
        rule.step(w, g, s.learning_rate)
        model.report(w)
    return w


def forward(comm, model, w, x):
    """Return (y, saved): all outputs, on every machine, and what the backward pass needs."""
    mine, saved = x, []
    for block, units in zip(model.blocks, model.assigned, strict=True):
        z, inside = block.inner(w, x)
        mine, _ = block.leave(w, z, mine, ())
        x = gather_units(comm, mine, units)
        saved.append(inside)
    return x, saved


def backward(comm, model, w, saved, dy, g):
    d = kernels.copy(dy[:, model.assigned[-1][comm.rank]])
    for number, block in reversed(list(enumerate(model.blocks))):
        dz, past = block.leave_back((), d)
        dx = block.inner_back(w, saved[number], dz, g)
        if number:
            d = block.enter_back(w, (), sum_parts(comm, dx, model.assigned[number - 1]), past, g)


def gather_units(comm, mine, units):
    """Return (samples, units, ...): the outputs of all units, gathered from `mine`, (samples, units of this machine,
    ...).
    """
    x = kernels.empty((len(mine), sum(map(len, units)), *mine.shape[2:]), mine)
    tell(comm, lambda machine: mine)
    for machine in range(comm.size):
        x[:, units[machine]] = mine if machine == comm.rank else comm.recv(machine)
    return x


def sum_parts(comm, dx, units):
    """Return (samples, units of this machine, ...): the sum of all machines' parts, added in machine order."""
    tell(comm, lambda machine: dx[:, units[machine]])
    d = None
    for machine in range(comm.size):
        known = kernels.copy(dx[:, units[machine]]) if machine == comm.rank else comm.recv(machine)
        if d is None:
            d = known
        else:
            kernels.add(d.reshape(-1), known.reshape(-1))
    return d


def tell(comm, what):
    """Send `what(machine)` to every other machine, the next one first, so that machines do not all send to the same one
    at once.
    """
    for step in range(1, comm.size):
        machine = (comm.rank + step) % comm.size
        comm.send(what(machine), machine)


ALGORITHM = Algorithm(
    worker,
    Settings,
    data_shards=shared_by_all,
    split=one_model,
    check=check,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one machine gives SGD", to="sgd"),
        Equivalence("three machines with units assigned in a row give SGD", to="sgd", exactness="RND", workers=3),
        Equivalence(
            "three machines with units assigned by turns give SGD",
            to="sgd",
            exactness="RND",
            workers=3,
            settings={"assignment": "by turns"},
        ),
        Equivalence(
            "three machines with shuffled units give SGD",
            to="sgd",
            exactness="RND",
            workers=3,
            settings={"assignment": "shuffled"},
        ),
    ),
)
