"""AD-PSGD lets two workers average their models whenever one of them is ready: gossip without a barrier.

One side of the graph is active, the other passive: even and odd workers, if the edges between them connect the graph.
An active worker that has a gradient sends its x to a random passive neighbour, both take the average, and it steps; a
passive one answers between its own steps:

    active     g <- g(x_i)        x_i, x_j <- (x_i + x_j) / 2        x_i <- x_i - lr g
    passive    g <- g(x_j)        answers all who have asked         x_j <- x_j - lr g

Only active workers ask, so workers cannot deadlock in a cycle. Averaging leaves the sum of all x unchanged, and a step
changes it by -lr g: the mean moves correctly at any speeds. The final model is the mean.

Price: d elements in every step of an active worker, and d back. Staleness, counted in averages of x
between a gradient and its step: 1 for active workers, any number for passive ones. An active worker waits while the one
that it asks computes a gradient; the authors' passive workers answer in a thread. A lost worker is left out.
Source: Lian, Zhang, Zhang & Liu, ICML 2018, arXiv:1710.06952, Algorithm 1; roles as in its section on deadlocks.
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.topology import Topology, bipartite_subgraph, bipartition, neighbours, same_graph
from knobs import Refusal

ASK, ANSWER = 1, 2  # tags


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    topology: Topology = knob("complete", "graph of neighbours: which passive workers an active one may average with")


def check(workers, batch, workload, s):
    if s.topology == "ring" and workers % 2 and workers > 1:
        raise Refusal(
            f"in a ring of {workers} workers two neighbours have the same role; use an even number of workers, "
            "or another graph.",
            (workers - 1, workers + 1),
        )


def elements_sent(shape, s):
    asking = bipartition(neighbours(s.topology, shape.workers)).count(0) if shape.workers > 1 else 0
    return 2 * asking * shape.parameters * shape.steps


def notes(e):
    return same_graph(e.knobs.topology, e.workers)


def worker(comm, task, s=Settings()):
    graph = neighbours(s.topology, comm.size)
    side = bipartition(graph)
    active, passive = ([rank for rank in range(comm.size) if side[rank] == which] for which in (0, 1))
    if side[comm.rank]:
        return answering(comm, task, s, set(active))
    return asking(comm, task, s, bipartite_subgraph(graph, side)[comm.rank], passive)


def asking(comm, task, s, mine, passive):
    """Run an active worker, whose passive neighbours are `mine`; return its model, (d,)."""
    x = task.start()  # (d,)
    generator = np.random.default_rng([task.seed, 0xAD, comm.rank])
    for _ in task.steps():
        _, g = task.gradient(x)
        if mine:
            other = mine[generator.integers(len(mine))]
            comm.send(x, other, ASK)
            average = None
            while average is None and other in mine:
                sender, average = comm.recv_any(ANSWER)
                if average is None and sender in mine:
                    mine.remove(sender)  # it is lost
            x = x if average is None else average
            task.applied(int(average is not None))
        kernels.sgd(x, g, s.learning_rate)
        task.report(x)
    for other in passive:
        comm.send(None, other, ASK)  # no more averages
    return x


def answering(comm, task, s, training):
    """Run a passive worker; return its model, (d,). It answers between its steps, and then until no active worker is
    `training`.
    """
    x = task.start()

    def answer():
        asker, theirs = comm.recv_any(ASK)
        if theirs is None:
            training.discard(asker)
            return False
        kernels.mix(x, theirs, 0.5, 0.5)
        comm.send(x, asker, ANSWER)
        return True

    for _ in task.steps():
        _, g = task.gradient(x)
        averages = 0
        while training and comm.poll(ASK):
            averages += answer()
        task.applied(averages)
        kernels.sgd(x, g, s.learning_rate)
        task.report(x)
    while training:
        answer()
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    check=check,
    elements_sent=elements_sent,
    deterministic=False,
    counts_staleness=True,
    equivalences=(Equivalence("one worker gives SGD", to="sgd"),),
)
