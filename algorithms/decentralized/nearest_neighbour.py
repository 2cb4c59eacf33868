"""Nearest neighbours send each other their raw gradients, and never average: as fast as it is unstable.

Workers sit on a ring or torus. After each mini-batch a worker takes its own step and sends its gradient to its
neighbours; what has come from them by then is summed, and is one more step:

    w <- rule(w, g(w))        w <- rule(w, sum of the neighbours' g that have arrived)

Nothing pulls the workers together. With plain steps on curvature h the mode of disagreement with eigenvalue e of
I + A, A the adjacency matrix, is multiplied by 1 - lr h e in every step, and e is -1 on an even ring, -3 on an even
torus: it grows. Adagrad's shrinking steps slow that down; what cures it is to restart all workers together every
`period` steps, from the best of them (as the authors' code does, there by validation accuracy, here by the mean loss
since the last restart) or from their mean. Or gradients count by `weights` lazy: in place of I + A stands a mixing
matrix W whose e are all between 0 and 1, a worker's own gradient counting W_ii and a neighbour's W_ij.

Price: degree d elements from every worker in every step, one hop; with a restart (N-1) d more. Staleness: whatever the
network makes of it; none with `synchronous`, which waits for one gradient of each neighbour.
Source: Viviani, Drocco, Baccega, Colonnelli & Aldinucci, Deep Learning at Scale, PDP 2019, and the authors' FAST code.
"""

from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import Rule, optimizer
from algorithms.parts.topology import Topology, mixing, neighbours


class Settings(Knobs):
    learning_rate: float = knob(0.02, "step size; the authors have 0.01", gt=0, le=1000)
    update: Rule = knob("adagrad", "what a worker does with its own gradient, and with the sum of its neighbours'")
    topology: Topology = knob("torus", "who is whose neighbour")
    weights: Literal["one", "lazy"] = knob("one", "what gradients count: all 1, or as a lazy mixing matrix has it")
    restart: Literal["best", "mean", "none"] = knob("best", "where all workers go on from together, now and then")
    period: int = knob(10, "steps from one restart to the next", ge=1, le=100_000, unit="steps", delay=True)
    synchronous: bool = knob(False, "wait for one gradient of each neighbour in every step")


def elements_sent(shape, s):
    degrees = sum(map(len, neighbours(s.topology, shape.workers)))
    restarts = 0 if s.restart == "none" else shape.steps // s.period
    losses = shape.workers * (shape.workers - 1) if s.restart == "best" else 0
    moved = (shape.workers - 1) * shape.parameters * (1 if s.restart == "best" else 2)
    return degrees * shape.parameters * shape.steps + restarts * (losses + moved)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    rule = optimizer(s.update, w)
    graph = neighbours(s.topology, comm.size)
    others = graph[comm.rank]
    counts = mixing(graph, lazy=True)[comm.rank] if s.weights == "lazy" else np.ones(comm.size)
    together = kernels.zeros_like(w)  # the neighbours' gradients that have arrived
    steps = heard = 0
    lost = 0.0  # the sum of losses since the last restart
    for step in task.steps(together=True):
        loss, g = task.gradient(w)
        lost += loss
        for other in others:
            comm.send(g, other)
        if counts[comm.rank] != 1:
            kernels.scale(g, counts[comm.rank])
        rule.step(w, g, s.learning_rate)
        if s.synchronous:
            arrived = [(other, comm.recv(other)) for other in others]
        else:
            arrived = [comm.recv_any() for _ in comm.poll()]
        if arrived:
            together[:] = 0
            for other, theirs in arrived:
                kernels.mix(together, theirs, 1.0, counts[other])
            rule.step(w, together, s.learning_rate)
        steps, heard = step + 1, heard + len(arrived)
        if s.restart != "none" and steps % s.period == 0:
            restart(comm, w, lost, s)
            lost = 0.0
        task.report(w)
    for _ in range(steps * len(others) - heard):
        comm.recv_any()  # too late
    return w


def restart(comm, w, lost, s):
    """Every w becomes the mean of all, or that of the worker whose losses were least."""
    if s.restart == "mean":
        comm.all_reduce(w, op="mean")
        return
    losses = comm.all_gather(np.array([lost], w.dtype if isinstance(w, np.ndarray) else np.float32))
    best = min(range(comm.size), key=lambda rank: float(losses[rank][0]))
    w[:] = comm.broadcast(w, best)


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    deterministic=lambda s: s.synchronous,
    equivalences=(Equivalence("one worker is SGD", to="sgd", settings={"update": "sgd"}),),
)
