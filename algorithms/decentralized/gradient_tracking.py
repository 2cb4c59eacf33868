"""Gradient tracking also gossips gradients: workers with different data reach the optimum at a constant learning rate.

Next to its model x_i each worker keeps y_i, an estimate of the mean gradient of all workers. It mixes y_i as it mixes
models, adds the change of its own gradient, and takes its step along y_i:

    y_i <- sum_j W_ij y_j + g(x_i) - g_i        g_i <- g(x_i)
    x_i <- sum_j W_ij (x_j - lr y_j)

y_i and g_i start at 0. The sum of all y_i always equals the sum of all g(x_i), so the mean of all x_i moves by the mean
gradient, as in synchronous SGD. D-PSGD stops where each worker's own gradient balances the pull of its neighbours: the
larger the rate and the more the data differ, the farther from the optimum. With gradient tracking, every y_i shrinks to
0 at the optimum for any rate that is small enough, and workers agree exactly. Only the noise of the batches remains.

DIGing mixes `before` the step, x_i <- sum_j W_ij x_j - lr y_i, so messages travel while the gradient is
computed. But in bowls of curvature h it tolerates only rates below (1 + u)^2 / (2 h), with u the smallest eigenvalue of
W: 2 / (9 h) on a ring of four. Mixing `after` the step tolerates the same rates as SGD, up to 2 / h. The final model is
the mean.

Price: 2 d elements from every worker to each neighbour in every step, and one message delay for any number of workers;
two more vectors, y and g_i. Staleness: none, but workers disagree.
Source: Nedic, Olshevsky & Shi, SIAM Journal on Optimization 27(4), 2017, arXiv:1607.03218 (DIGing); Koloskova, Lin &
Stich, NeurIPS 2021, arXiv:2202.03836 (with the gradients of batches, mixed after the step).
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
        "after", "when a worker mixes in its neighbours' models: before or after its own step"
    )


def elements_sent(shape, s):
    graph = neighbours(s.topology, shape.workers, s.edges)
    return 2 * sum(map(len, graph)) * shape.parameters * shape.steps


def notes(e):
    return same_graph(e.knobs.topology, e.workers, e.knobs.edges)


def worker(comm, task, s=Settings()):
    graph = neighbours(s.topology, comm.size, s.edges)
    share, others = mixing(graph)[comm.rank], graph[comm.rank]
    x = task.start()  # (d,)
    y, last = (kernels.keep(kernels.zeros_like(x)) for _ in range(2))

    def send():
        for other in others:
            comm.send((x, y), other)

    def mix_in():
        kernels.scale(x, share[comm.rank])
        kernels.scale(y, share[comm.rank])
        for other in others:
            for mine, theirs in zip((x, y), comm.recv(other), strict=True):
                kernels.mix(mine, theirs, 1.0, share[other])

    for _ in task.steps(together=True):
        if s.mix == "before":
            send()
        _, g = task.gradient(x)
        if s.mix == "before":
            mix_in()
        kernels.add(y, g)
        kernels.residual(y, last)
        last[:] = g
        kernels.sgd(x, y, s.learning_rate)
        if s.mix == "after":
            send()
            mix_in()
        task.report(x)
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check_edges,
    notes=notes,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", exactness="RND"),
        Equivalence("two workers give synchronous SGD", to="sync_sgd", exactness="RND", workers=2),
        Equivalence(
            "the complete graph gives synchronous SGD",
            to="sync_sgd",
            exactness="RND",
            workers=4,
            settings={"topology": "complete"},
        ),
    ),
)
