"""GossipGraD averages with one partner per step, a different one each time, and reaches all workers in log2 N steps.

In step t each worker sends to the one 2^k ahead, k = t mod log2 N, and receives from the one 2^k behind
(dissemination), or exchanges with the one whose rank differs in bit k (hypercube). After every log2 N steps a random
permutation, the same on all ranks, gives the workers new places. They exchange models or gradients:

    model       w_i <- w_i - lr g(w_i)        w_i <- (w_i + w_j) / 2
    gradient    w_i <- w_i - lr (g(w_i) + g(w_j)) / 2

A model continues to be mixed in every later step, so after log2 N steps every worker has a part of all others; a
gradient reaches only one partner, and workers diverge. Partners leave a lost worker out. The paper's shuffling of
samples around a ring is omitted: data shards here come from one shuffle.

Price: d elements from every worker in every step, one message delay. Staleness: none, but workers disagree.
Source: Daily, Vishnu, Siegel, Warfel & Amatya, arXiv:1803.05880; the partner rule as in pytorch/torchdistx.
"""

from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.neighbour_messages import recv_or_lost


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    mode: Literal["model", "gradient"] = knob("model", "what partners exchange: model or gradient")
    partners: Literal["dissemination", "hypercube"] = knob(
        "dissemination", "rule that picks partners: dissemination or hypercube"
    )
    rotate: bool = knob(True, "permute the workers after every round, so that partners change, as in the paper")


def check(workers, batch, workload, s):
    if s.partners == "hypercube" and workers & (workers - 1):
        raise ValueError(f"{workers} workers do not form a hypercube; use 1, 2, 4, 8, ... or partners dissemination.")


def elements_sent(shape, s):
    return 0 if shape.workers == 1 else shape.workers * shape.parameters * shape.steps


def partners(rank, size, step, s, seed=0):
    """Return (the rank to send to, the rank to receive from) in this step."""
    rounds = (size - 1).bit_length()
    turn, k = divmod(step, rounds)
    places = np.random.default_rng([seed, 0x6055, turn]).permutation(size) if s.rotate else np.arange(size)
    mine = int(np.flatnonzero(places == rank)[0])
    if s.partners == "hypercube":
        to = source = mine ^ (1 << k)
    else:
        to, source = (mine + (1 << k)) % size, (mine - (1 << k)) % size
    return int(places[to]), int(places[source])


def notes(e):
    if e.workers == 2:
        yield "With two workers this is sync_sgd, because each averages with all others in every step; use 4 or more."


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    lost = set()  # lost workers, left out by their partners
    for step in task.steps(together=True):
        _, g = task.gradient(w)
        if s.mode == "model":
            kernels.sgd(w, g, s.learning_rate)
        if comm.size > 1:
            mine = w if s.mode == "model" else g
            to, source = partners(comm.rank, comm.size, step, s, task.seed)
            comm.send(mine, to, tag=step)
            theirs = recv_or_lost(comm, source, step, lost)
            if theirs is not None:
                kernels.mix(mine, theirs, 0.5, 0.5)
        if s.mode == "gradient":
            kernels.sgd(w, g, s.learning_rate)
        task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    check=check,
    elements_sent=elements_sent,
    survives_loss=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence(
            "two workers that exchange gradients give synchronous SGD",
            to="sync_sgd",
            workers=2,
            settings={"mode": "gradient"},
        ),
    ),
)
