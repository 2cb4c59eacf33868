"""EASGD lets replicas explore on their own, tied to a shared centre by springs.

Every `period` steps replica x visits the centre c, and the two move towards each other by the same amount:

    p = a (x - c)        x <- x - p - lr g(x)        c <- c + p

Asynchronous form, also called AEASGD: rank 0 keeps the centre and serves visitors as they come. The gradient is taken
at the position before the visit, so the replica computes it while its visit is under way. Synchronous form: all visit
at once, and every rank keeps a copy of the centre, c <- c + sum of all p.

With `momentum` delta, EAMSGD: the replica's own step has Nesterov's momentum, with the gradient taken ahead of it:

    v <- delta v - lr g(x + delta v)        x <- x - p + v

dist-keras does otherwise: its EAMSGD looks back, to x - delta v, and multiplies two learning rates; its AEASGD takes
the gradient after the visit.

Price: a visit moves 2 d numbers (synchronous: 2 (N-1) d for all visits together); with momentum two more vectors of
memory. Staleness: every gradient is applied to the replica that computed it; a replica knows the centre as of its
last visit.
Source: Zhang, Choromanska & LeCun, NIPS 2015, Algorithms 1 and 2, equations 2 and 3; order of steps as in mpiT.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob

CENTRE = 0


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    pull: float | None = knob(None, "a, the spring; by default 0.9 / replicas", ge=0, le=2)
    period: int = knob(4, "gradient steps from one visit to the next", ge=1, le=10_000, unit="steps", delay=True)
    synchronous: bool = knob(False, "all visit at once, and each keeps a copy of the centre")
    momentum: float = knob(0.0, "delta of EAMSGD, with the gradient taken ahead; the paper has 0.99", ge=0, lt=1)

    def spring(self, replicas):
        return 0.9 / replicas if self.pull is None else self.pull


def servers(s):
    return 0 if s.synchronous else 1


def restartable(s):
    return not s.synchronous


def elements_sent(shape, s):
    visits = -(-shape.steps // s.period)
    return 2 * shape.parameters * visits * (shape.workers - 1 if s.synchronous else shape.workers)


def worker(comm, task, s=Settings()):
    if s.synchronous:
        return together(comm, task, s)
    return centre(comm, task, s) if comm.rank == CENTRE else replica(comm, task, s)


def replica(comm, task, s):
    x = task.start()  # (d,)
    y, v = looking_ahead(x, s)
    for step in task.steps():
        visiting = step % s.period == 0
        if visiting:
            comm.send(x, CENTRE)
        _, g = task.gradient(y)
        if visiting:
            x -= comm.recv(CENTRE)
        move(x, y, v, g, s)
    comm.send(None, CENTRE)  # no more visits
    return x


def centre(comm, task, s):
    c = task.start()  # (d,)
    p = kernels.empty_like(c)
    training = comm.size - 1
    a = s.spring(training)
    while training:
        visitor, x = comm.recv_any()
        if x is None:
            training -= 1
            continue
        kernels.elastic(p, c, x, a)
        comm.send(p, visitor)
        task.report(c)
    return c


def together(comm, task, s):
    x, c = task.start(), task.start()  # (d,), (d,)
    p = kernels.empty_like(x)
    y, v = looking_ahead(x, s)
    a = s.spring(comm.size)
    for step in task.steps(together=True):
        _, g = task.gradient(y)
        if step % s.period == 0:
            kernels.displacement(p, x, c, a)
            x -= p
            kernels.add(c, comm.all_reduce(p))
        move(x, y, v, g, s)
        if comm.rank == 0:
            task.report(c)
    return c


def looking_ahead(x, s):
    """(y, v): where the gradient is taken, x itself without momentum, and the velocity."""
    return (kernels.copy(x), kernels.state_like(x)) if s.momentum else (x, None)


def move(x, y, v, g, s):
    """The replica's own step."""
    if s.momentum:
        kernels.sutskever(y, x, v, g, s.learning_rate, s.momentum)
    else:
        kernels.sgd(x, g, s.learning_rate)


ALGORITHM = Algorithm(
    worker,
    Settings,
    servers=servers,
    elements_sent=elements_sent,
    deterministic=lambda s: s.synchronous,
    restartable=restartable,
    equivalences=(
        Equivalence(
            "without a pull every replica is SGD alone", to="sgd", workers=3, settings={"pull": 0}, to_workers=3
        ),
    ),
)
