"""AGN commits the mean of several local steps, not their sum: accumulated gradient normalisation.

Rank 0 is the server, the others are workers. A worker takes `period` local steps and commits their mean, a good
direction with the length of one step, so that a late commit does no more harm than a late gradient:

    worker    a <- a + g(x)        x <- x - lr g(x)        `period` times; then push a / period and x <- answer
    server    w <- w - lr a / period

The last commit is the mean of the remaining steps; dist-keras drops these.

In dist-keras this algorithm is the class named ADAG; what its author's thesis calls ADAG is `adag`.

Price: 2 d / period elements per step of a worker; one accumulator. Staleness: N-1 commits on average.
Source: Hermans, Spanakis & Moeckel, ACML 2017, arXiv:1710.02368, Algorithm 1.
"""

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server

SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size of local steps and of commits", gt=0, le=1000)
    period: int = knob(4, "local steps per commit", ge=1, le=10_000, unit="steps", postpones=True)


def elements_sent(shape, s):
    return 2 * shape.workers * shape.parameters * -(-shape.steps // s.period)


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else replica(comm, task, s)


def replica(comm, task, s):
    x = task.start()  # (d,)
    a = kernels.keep(kernels.zeros_like(x))
    taken = 0  # steps since the last commit
    for _ in task.steps():
        _, g = task.gradient(x)
        kernels.add(a, g)
        kernels.sgd(x, g, s.learning_rate)
        taken += 1
        if taken == s.period:
            x = commit(comm, a, taken)
            taken = 0
    if taken:
        x = commit(comm, a, taken)
    comm.send(None, SERVER)  # no more commits
    return x


def commit(comm, a, taken):
    """Push the mean gradient of the local steps, set `a` to 0, and return the server's w."""
    kernels.scale(a, 1 / taken)
    comm.send(a, SERVER)
    a[:] = 0
    return comm.recv(SERVER)


def server(comm, task, s):
    w = task.start()
    version, read = 0, [0] * comm.size  # commits so far; the version that each worker has read
    training = set(range(1, comm.size))
    while training:
        sender, a = comm.recv_any()
        if a is None:
            training.discard(sender)
            continue
        task.applied(version - read[sender])
        kernels.sgd(w, a, s.learning_rate)
        version += 1
        comm.send(w, sender)
        read[sender] = version
        task.report(w)
    return w


ALGORITHM = parameter_server(
    worker,
    Settings,
    elements_sent=elements_sent,
    compresses="push",
    equivalences=(
        Equivalence("one worker that commits every step gives SGD", to="sgd", settings={"period": 1}),
        Equivalence("a period of 1 gives asynchronous SGD", to="asgd", workers=3, settings={"period": 1}),
    ),
)
