"""Nearest neighbours send each other raw gradients instead of averaging their models: fast, but unstable.

Workers sit on a ring or torus. After each mini-batch a worker takes its own step and sends its gradient to its
neighbours; the gradients that have arrived by then are summed, for one more step:

    w <- rule(w, g(w))        w <- rule(w, sum of the neighbours' g that have arrived)

Nothing pulls the workers together. With plain steps on curvature h the mode of disagreement with eigenvalue e of
I + A, A the adjacency matrix, is multiplied by 1 - lr h e in every step, and e is -1 on an even ring, -3 on an even
torus: it grows. Adagrad's shrinking steps slow this growth; the cure is to restart all workers together every `period`
steps, from the best of them (in the authors' code by validation accuracy, here by the mean loss since the last restart)
or from their mean. Or, with `weights` lazy, I + A is replaced by a mixing matrix W whose e are between 0 and 1: a
worker's own gradient has weight W_ii and a neighbour's W_ij.

Price: degree d elements from every worker in every step, one hop; with a restart (N-1) d more, from the mean twice
that. One more vector of memory, the sum. Staleness: decided by the network; none with `synchronous`, which waits for
one gradient of each neighbour.
Source: Viviani, Drocco, Baccega, Colonnelli & Aldinucci, Deep Learning at Scale, PDP 2019, and the authors' FAST code.
"""

from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import Rule, optimizer
from algorithms.parts.topology import Topology, mixing, neighbours, same_graph


class Settings(Knobs):
    learning_rate: float = knob(0.02, "step size; the authors use 0.01", gt=0, le=1000)
    update: Rule = knob("adagrad", "optimizer for a worker's own gradient, and for the sum of its neighbours'")
    topology: Topology = knob("torus", "graph of neighbours whose gradients a worker adds to its own")
    weights: Literal["one", "lazy"] = knob(
        "one", "weights of the gradients: one (1 each) or lazy (a lazy mixing matrix)"
    )
    restart: Literal["best", "mean", "none"] = knob(
        "best", "model that all workers restart from, every period: best, mean or none"
    )
    period: int = knob(
        10,
        "steps between restarts from one common model",
        unless={"restart": ("none",)},
        ge=1,
        le=100_000,
        unit="steps",
        postpones=True,
    )
    synchronous: bool = knob(False, "wait for a gradient from each neighbour in every step")


def elements_sent(shape, s):
    degrees = sum(map(len, neighbours(s.topology, shape.workers)))
    restarts = 0 if s.restart == "none" else shape.steps // s.period
    losses = shape.workers * (shape.workers - 1) if s.restart == "best" else 0
    moved = (shape.workers - 1) * shape.parameters * (1 if s.restart == "best" else 2)
    return degrees * shape.parameters * shape.steps + restarts * (losses + moved)


def notes(e):
    return same_graph(e.knobs.topology, e.workers)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    rule = optimizer(s.update, w)
    graph = neighbours(s.topology, comm.size)
    owed = dict.fromkeys(graph[comm.rank], 0)  # gradients that each neighbour still has to send, unless it is lost
    counts = mixing(graph, lazy=True)[comm.rank] if s.weights == "lazy" else np.ones(comm.size)
    arrivals = kernels.keep(kernels.zeros_like(w))  # sum of the neighbours' gradients that have arrived
    steps = 0
    losses = 0.0  # sum of losses since the last restart
    for step in task.steps(together=True):
        loss, g = task.gradient(w)
        losses += loss
        for other in owed:
            comm.send(g, other)
            owed[other] += 1
        if counts[comm.rank] != 1:
            kernels.scale(g, counts[comm.rank])
        rule.step(w, g, s.learning_rate)
        if s.synchronous:
            arrived = {other: comm.recv(other) for other in owed}.items()
        else:
            arrived = [comm.recv_any() for _ in comm.poll()]
        gradients = [(other, theirs) for other, theirs in arrived if is_gradient(other, theirs, owed)]
        if gradients:
            arrivals[:] = 0
            for other, theirs in gradients:
                kernels.mix(arrivals, theirs, 1.0, counts[other])
            rule.step(w, arrivals, s.learning_rate)
        steps = step + 1
        if s.restart != "none" and steps % s.period == 0:
            restart(comm, w, losses, s)
            losses = 0.0
        task.report(w)
    while any(owed.values()):
        is_gradient(*comm.recv_any(), owed)  # too late
    return w


def is_gradient(other, theirs, owed):
    """Return True and count the gradient if `theirs` is one.

    If it is None, the neighbour `other` is lost: remove it and return False.
    """
    if theirs is None:
        owed.pop(other, None)
        return False
    owed[other] -= 1
    return True


def restart(comm, w, losses, s):
    """Overwrite w with the mean of all workers' w, or with the w of the worker with the lowest sum of losses."""
    if s.restart == "mean":
        comm.all_reduce(w, op="mean")
        return
    sums = comm.all_gather(np.array([losses], w.dtype if isinstance(w, np.ndarray) else np.float32))
    best = min(range(comm.size), key=lambda rank: float(sums[rank][0]))
    w[:] = comm.broadcast(w, best)


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    deterministic=lambda s: s.synchronous,
    equivalences=(Equivalence("one worker gives SGD", to="sgd", settings={"update": "sgd"}),),
)
