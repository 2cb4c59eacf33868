"""D-PSGD: every worker averages with its neighbours only and takes its own step, without a server or a global sum.

Workers sit on a graph. Each holds its own x_i, and in every step mixes it with those of its neighbours:

    x_i <- sum_j W_ij x_j - lr g(x_i)

The gradient is taken at the x_i before mixing, so the messages overlap its computation. W's rows and columns sum
to 1: the mean of all x_i moves as synchronous SGD would, by the mean gradient, and the disagreement of workers
contracts by the graph's spectral gap. The final model is the mean.

Price: degree d elements from every worker in every step, one message delay for any number of workers (a ring
all-reduce has 2 (N-1)). Staleness: none, but workers disagree.
Source: Lian et al., NIPS 2017, arXiv:1705.09056, Algorithm 1.
"""

from typing import Literal

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.topology import Topology, check_edges, mixing, neighbours, same_graph


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    topology: Topology = knob(
        "ring", "graph of neighbours: ring, torus, exponential, complete, star or random", when={"edges": ("",)}
    )
    edges: str = knob("", "custom graph of neighbours as pairs of workers", example="0-1,1-2,2-0")
    mix: Literal["before", "after"] = knob(
        "before", "when a worker mixes in its neighbours' models: before or after its own step"
    )


def elements_sent(shape, s):
    graph = neighbours(s.topology, shape.workers, s.edges)
    return sum(map(len, graph)) * shape.parameters * shape.steps


def notes(e):
    return same_graph(e.knobs.topology, e.workers, e.knobs.edges)


def worker(comm, task, s=Settings()):
    graph = neighbours(s.topology, comm.size, s.edges)
    share = mixing(graph)[comm.rank]
    x = task.start()  # (d,)
    for _ in task.steps(together=True):
        if s.mix == "after":
            _, g = task.gradient(x)
            kernels.sgd(x, g, s.learning_rate)
        for other in graph[comm.rank]:
            comm.send(x, other)
        if s.mix == "before":
            _, g = task.gradient(x)
        keep = share[comm.rank]
        for other in graph[comm.rank]:
            kernels.mix(x, comm.recv(other), keep, share[other])
            keep = 1.0
        if s.mix == "before":
            kernels.sgd(x, g, s.learning_rate)
        task.report(x)
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    check=check_edges,
    elements_sent=elements_sent,
    equivalences=(Equivalence("one worker gives SGD", to="sgd"),),
)
