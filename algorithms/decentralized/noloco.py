"""NoLoCo is DiLoCo without an all-reduce: outer steps in random pairs, with a spring between the two models.

Every `period` inner steps all workers form new pairs. Partners send each other their slow model x and their
displacement w - x, and take an outer step with the means over the pair:

    w_i <- w_i - lr adam(g_i(w_i))        every period
    v_i <- mu v_i + outer_rate mean(w - x) - gamma (x_i - mean(x))        x_i <- x_i + v_i        w_i <- x_i

The mean over all workers moves as DiLoCo's with heavy-ball momentum: the springs cancel in it. They pull the models
together, by half of the way per exchange with gamma 1 and without momentum; with momentum gamma has to be smaller, and
`contraction` says where disagreement grows. With an odd number of workers one rests and takes its own displacement.
Partners leave out a lost worker. The final model is the mean of all x_i.

Price: 2 d elements from every worker per period, one message delay for any number of workers; x, v and two more.
Staleness: none, but workers disagree.
Source: Kolehmainen, Blagoev, Donaghy, Ersoy & Nies, arXiv:2506.10911 (groups of two).
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.neighbour_messages import recv_or_lost
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.005, "step size of the inner steps", gt=0, le=1000)
    period: int = knob(20, "H, inner steps between outer steps", ge=1, le=10_000, unit="steps", postpones=True)
    outer_rate: float = knob(0.7, "step size of the outer update", gt=0, le=100)
    outer_momentum: float = knob(
        0.5, "mu of the outer steps, the fraction of each step carried into the next", ge=0, lt=1
    )
    pull: float = knob(1.0, "gamma, stiffness of the spring to the mean of the pair", ge=0, le=4)
    update: Rule = knob("adam", "inner optimizer")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def elements_sent(shape, s):
    paired = shape.workers // 2 * 2
    return 2 * paired * shape.parameters * -(-shape.steps // s.period)


def partner(rank, size, turn, seed):
    """Return the rank's partner in this exchange, or the rank itself if it rests."""
    places = np.random.default_rng([seed, 0x2010C0, turn]).permutation(size)
    mine = int(np.flatnonzero(places == rank)[0])
    other = mine ^ 1
    return int(places[other]) if other < size else rank


def contraction(mu, gamma):
    """Return the factor by which each exchange multiplies the mean squared disagreement of many workers while none of
    them trains.

    The second moments of a worker's distance from the mean, and of its velocity, follow a linear recursion (x'x, x'v,
    v'v); the factor is the largest magnitude of its eigenvalues.
    """
    vv = np.array([gamma**2 / 2, -mu * gamma, mu**2])
    cross = np.array([-gamma / 2, mu, 0])
    return float(max(abs(np.linalg.eigvals([np.array([1, 0, 0]) + 2 * cross + vv, cross + vv, vv]))))


def unstable(e):
    mu, gamma = e.knobs.outer_momentum, e.knobs.pull
    if e.workers > 2 and (factor := contraction(mu, gamma)) > 1:
        yield (
            "pull",
            f"With pull {gamma:g} and outer momentum {mu:g}, each exchange multiplies the squared disagreement of many "
            f"workers by {factor:.2g}; use a smaller pull.",
        )


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    x, v = kernels.keep(kernels.copy(w)), kernels.state_like(w)
    p, apart = kernels.keep(kernels.empty_like(w)), kernels.keep(kernels.empty_like(w))
    inner = optimizer(s.update, w, s.momentum)
    lost = set()  # lost workers, left out by their partners

    def outer_step(turn):
        kernels.displacement(p, w, x, 1.0)
        apart[:] = 0
        other = partner(comm.rank, comm.size, turn, task.seed)
        if other != comm.rank:
            comm.send((x, p), other, tag=turn)
            theirs = recv_or_lost(comm, other, turn, lost)
            if theirs is not None:
                kernels.displacement(apart, x, theirs[0], 0.5)  # x - mean(x)
                kernels.mix(p, theirs[1], 0.5, 0.5)
        kernels.mix(v, p, s.outer_momentum, s.outer_rate)
        kernels.mix(v, apart, 1.0, -s.pull)
        kernels.add(x, v)
        w[:] = x
        task.report(x)

    taken = 0
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        inner.step(w, g, s.learning_rate)
        taken += 1
        if taken % s.period == 0:
            outer_step(taken // s.period)
    if taken % s.period:
        outer_step(taken // s.period + 1)
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    unstable=unstable,
    survives_loss=True,
    equivalences=(
        Equivalence(
            "two workers without momentum give DiLoCo without momentum",
            to="diloco",
            exactness="RND",
            workers=2,
            settings={"outer_momentum": 0, "period": 4},
            to_settings={"outer_momentum": 0, "period": 4},
        ),
    ),
)
