"""Asynchrony begets momentum: if N workers take random times, stale gradients act like a momentum of 1 - 1/N.

Rank 0 is the server, the others are workers, as in asynchronous SGD. If the work times are exponential, staleness is
geometric and on average

    w(t+1) - w(t) = (1 - 1/N) (w(t) - w(t-1)) - lr/N g(w(t))        exactly, where g is linear

so the server adds only the difference to the desired momentum, which may be negative:

    mu = momentum - (1 - 1/N)        v <- mu v + g        w <- w - lr v

That the two add up is a rule of thumb; a fixed delay, as in a round robin, is no momentum at all.

Price: asynchronous SGD's, and d elements of memory on the server. Staleness: N-1 updates on average.
Source: Mitliagkas, Zhang, Hadjis & Ré, Allerton 2016, arXiv:1605.09774, Theorem 3.
"""

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server, pushes_and_pulls

SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size", gt=0, le=1000)
    momentum: float = knob(0.6, "total momentum, explicit and implicit", ge=0, lt=1)


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else replica(comm, task, s)


def replica(comm, task, s):
    w = task.start()  # (d,)
    for _ in task.steps():
        _, g = task.gradient(w)
        comm.send(g, SERVER)
        w = comm.recv(SERVER)
    comm.send(None, SERVER)  # no more pushes
    return w


def server(comm, task, s):
    w = task.start()
    v = kernels.state_like(w)
    training = set(range(1, comm.size))
    explicit = s.momentum - (1 - 1 / len(training))
    version, read = 0, [0] * comm.size
    while training:
        sender, g = comm.recv_any()
        if g is None:
            training.discard(sender)
            continue
        task.applied(version - read[sender])
        kernels.momentum(w, v, g, s.learning_rate, explicit)
        version += 1
        comm.send(w, sender)
        read[sender] = version
        task.report(w)
    return w


ALGORITHM = parameter_server(
    worker,
    Settings,
    elements_sent=pushes_and_pulls,
    compresses="push",
    equivalences=(
        Equivalence(
            "one worker gives SGD with momentum",
            to="momentum",
            settings={"momentum": 0.9},
            to_settings={"momentum": 0.9},
        ),
        Equivalence(
            "with no more momentum than asynchrony causes, it is asynchronous SGD",
            to="asgd",
            workers=4,
            settings={"momentum": 0.75},
        ),
    ),
)
