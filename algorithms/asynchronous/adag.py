"""ADAG measures staleness as a distance: the further a weight has moved in the meantime, the smaller its step.

Rank 0 is the server, the others are workers, which commit the mean a of `period` local steps as in `agn`. The server
stores w' as each worker last read it:

    w <- w - lr a / ((w - w')^2 / lr + 1)        weight by weight

Counting updates penalises a late step even if nothing has changed; a distance does not. In dist-keras this algorithm
is the class Experimental; the class named ADAG there is `agn`.

The last commit is the mean of the remaining steps; dist-keras drops these.

Price: 2 d / period elements per step of a worker; one accumulator, and N d elements on the server.
Staleness: N-1 commits on average.
Source: Hermans, On Scalable Deep Learning and Parallelizing Gradient Descent, Maastricht University 2017, chapter 4.
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
    version, read = 0, [0] * comm.size
    training = set(range(1, comm.size))
    pulled = {rank: kernels.keep(kernels.copy(w)) for rank in training}  # w as each worker last read it
    while training:
        sender, a = comm.recv_any()
        if a is None:
            training.discard(sender)
            continue
        task.applied(version - read[sender])
        kernels.distance_scaled(w, a, pulled[sender], s.learning_rate)
        version += 1
        comm.send(w, sender)
        pulled[sender][:] = w
        read[sender] = version
        task.report(w)
    return w


ALGORITHM = parameter_server(
    worker,
    Settings,
    elements_sent=elements_sent,
    compresses="push",
    equivalences=(Equivalence("one worker that commits every step gives SGD", to="sgd", settings={"period": 1}),),
)
