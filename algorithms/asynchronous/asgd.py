"""Asynchronous SGD: no worker waits for another; the server applies every gradient to the current w, however late.

Rank 0 is the server, the others are workers. A worker computes g at the w that it last read, pushes it, and
receives the current w, its own push included:

    worker    push g(w')        w' <- answer
    server    w <- w - lr g(w')        or what another update rule makes of g

The method is as old as parallel machines; its price is that g(w') is stale when it arrives. On curvature h a gradient
that is always s updates old is stable up to lr h = 2 sin(pi / (2 (2 s + 1))), about pi / (2 s).

Price: d elements to the server and d back in every step of a worker; the server's link carries N times that.
Staleness: N-1 updates on average at any speeds; exactly N-1 in a round robin.
Source: Agarwal & Duchi, NIPS 2011; Lian, Huang, Li & Liu, arXiv:1506.08272.
"""

from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server, pushes_and_pulls
from algorithms.parts.optimizers import HEAVY, Rule, optimizer

SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size of each gradient", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of the server")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


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
    rule = optimizer(s.update, w, s.momentum)
    version, read = 0, [0] * comm.size  # updates so far; the version that each worker has read
    training = set(range(1, comm.size))
    while training:
        sender, g = comm.recv_any()
        if g is None:
            training.discard(sender)
            continue
        task.applied(version - read[sender])
        rule.step(w, g, s.learning_rate)
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
    equivalences=(Equivalence("one worker gives SGD", to="sgd"),),
)
