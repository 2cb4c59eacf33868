"""CHOCO-SGD gossips compressed differences, and yet all workers agree on the exact mean.

Worker i keeps z_i, what its neighbours believe its model is, and s_i, the mean of what it believes of them and of
itself. It sends, compressed, only by how much its model differs from that belief:

    y_i <- x_i - lr g(x_i)        q_i <- C(y_i - z_i)                   to all neighbours
    z_i <- z_i + q_i              s_i <- s_i + sum_j W_ij q_j           j = i included
    x_i <- y_i + gamma (s_i - z_i)

C keeps the largest elements. What it leaves out stays in y_i - z_i and is sent later, so no other error feedback is
needed. Gossip of C(x_i) itself would stop at a distance that C never sends. The mean of all x_i moves as synchronous
SGD would, for any C and gamma. The stronger the compression, the smaller gamma has to be: otherwise workers run away
from beliefs that are too old. On digits, three times the fraction that is sent was small enough for every graph of 4 to
32 workers that we tried; with a hundredth sent, a gamma of 0.4 learned nothing.

Price: a compressed model from every worker to each of its neighbours in every step; two more vectors, z and s, however
many neighbours. Staleness: none, but workers disagree.
Source: Koloskova, Stich & Jaggi, ICML 2019, arXiv:1902.00340, in the form that keeps two vectors; Koloskova, Lin, Stich
& Jaggi, ICLR 2020, arXiv:1907.09356.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.topology import Topology, check_edges, mixing, neighbours, same_graph


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    fraction: float = knob(0.1, "fraction of the elements that is sent, largest first; 1 sends all", gt=0, le=1)
    consensus: float = knob(0.4, "gamma, fraction of the way to the neighbours' mean that a step covers", gt=0, le=1)
    topology: Topology = knob(
        "ring", "graph of neighbours: ring, torus, exponential, complete, star or random", when={"edges": ("",)}
    )
    edges: str = knob("", "custom graph of neighbours as pairs of workers", example="0-1,1-2,2-0")


def elements_sent(shape, s):
    if s.fraction < 1 and shape.workers > 1:
        return None  # the indices are of four bytes, whatever the numbers are
    return sum(map(len, neighbours(s.topology, shape.workers, s.edges))) * shape.parameters * shape.steps


def notes(e):
    yield from same_graph(e.knobs.topology, e.workers, e.knobs.edges)
    fraction, consensus = e.knobs.fraction, e.knobs.consensus
    if fraction == 1 and consensus == 1:
        yield "Without compression and with a consensus step of 1 it is dpsgd that mixes after its step."
    elif fraction == 1 and e.workers > 1:
        yield (
            f"Without compression it is dpsgd that takes {consensus:g} of the way to its neighbours' mean; use a "
            "consensus step of 1 to take all of it, or a fraction below 1 to compress."
        )
    elif consensus > longest_step(fraction) and e.workers > 1:
        yield (
            f"A consensus step of {consensus:g} may drive workers apart if they send a fraction of {fraction:g}; use "
            f"{longest_step(fraction):.2g} or less."
        )


def longest_step(fraction):
    """Return the largest consensus step gamma for workers that send this fraction of their elements.

    Up to it, 4 to 32 workers learned digits on every graph that we tried.
    """
    return max(3 * fraction, min(4 * fraction, 0.4))


def worker(comm, task, s=Settings()):
    graph = neighbours(s.topology, comm.size, s.edges)
    share, others = mixing(graph)[comm.rank], graph[comm.rank]
    x = task.start()  # (d,)
    z, believed = (kernels.keep(kernels.zeros_like(x)) for _ in range(2))
    q = kernels.keep(kernels.empty_like(x))
    k = max(1, round(s.fraction * len(x)))

    def encode(v):
        """Return the message for v: its k largest elements and their indices, or all of v. Set v to the decoded
        message.
        """
        if k == len(v):
            return kernels.copy(v)
        values, index = kernels.empty(k, v), kernels.empty(k, v, "int32")
        kernels.select(values, index, v, *kernels.kth_largest(v, k))
        decode((index, values), v)
        return index, values

    def decode(message, out):
        if k == len(out):
            out[:] = message
        else:
            out[:] = 0
            kernels.scatter_add(out, *message)

    for _ in task.steps(together=True):
        _, g = task.gradient(x)
        kernels.sgd(x, g, s.learning_rate)
        kernels.displacement(q, x, z, 1.0)
        message = encode(q)
        for other in others:
            comm.send(message, other)
        kernels.add(z, q)
        kernels.mix(believed, q, 1.0, share[comm.rank])
        for other in others:
            decode(comm.recv(other), q)
            kernels.mix(believed, q, 1.0, share[other])
        kernels.displacement(q, believed, z, s.consensus)
        kernels.add(x, q)
        task.report(x)
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check_edges,
    notes=notes,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", exactness="RND", settings={"fraction": 1}),
        Equivalence(
            "without compression and with a consensus step of 1 it is D-PSGD that mixes after its step",
            to="dpsgd",
            exactness="RND",
            workers=4,
            settings={"fraction": 1, "consensus": 1},
            to_settings={"mix": "after"},
        ),
    ),
)
