"""EASGD lets replicas explore on their own, tied to a shared centre by springs.

Every `period` steps replica x visits the centre c, and the two move towards each other by the same amount:

    p = a (x - c)        x <- x - p - lr g(x)        c <- c + p

Asynchronous form, also called AEASGD: rank 0 holds the centre and serves visitors as they arrive. The gradient is taken
at the position before the visit, so the replica computes it while its visit is in flight. Synchronous form: all
replicas visit at once, and every rank has a copy of the centre, c <- c + sum of all p.

With `momentum` delta it is EAMSGD: the local step has Nesterov's momentum, with the gradient taken ahead of x:

    v <- delta v - lr g(x + delta v)        x <- x - p + v

The centre is the model. Steps after a replica's last visit are lost: all of them, if it visited only at step 0.

dist-keras differs: its EAMSGD looks back, to x - delta v, and multiplies two learning rates; its AEASGD takes the
gradient after the visit.

Price: a visit sends 2 d elements (synchronous: 2 (N-1) d for all visits of a round). In addition to c, the centre keeps
p; a synchronous replica keeps both; momentum takes two more vectors. Staleness: every gradient is applied to the
replica that computed it; a replica knows the centre as of its last visit.
Source: Zhang, Choromanska & LeCun, NIPS 2015, Algorithms 1 and 2; order of steps as in mpiT.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob

CENTRE = 0


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    pull: float | None = knob(
        None, "a, strength of the spring between replica and centre", none="0.9 / workers", ge=0, le=2
    )
    period: int = knob(4, "gradient steps between visits", ge=1, le=10_000, unit="steps", postpones=True)
    synchronous: bool = knob(False, "let all replicas visit at once, each with a copy of the centre")
    momentum: float = knob(0.0, "delta of EAMSGD, whose gradient is taken ahead; the paper uses 0.99", ge=0, lt=1)

    def spring(self, replicas):
        return 0.9 / replicas if self.pull is None else self.pull


def servers(s):
    return 0 if s.synchronous else 1


def restartable(s):
    return not s.synchronous


def elements_sent(shape, s):
    visits = -(-shape.steps // s.period)
    return 2 * shape.parameters * visits * (shape.workers - 1 if s.synchronous else shape.workers)


def unstable(e):
    s, replicas = e.knobs, e.workers
    pull = s.spring(replicas)
    both, name = (1 + replicas, f"1 − (1 + {replicas}) pull") if s.synchronous else (2, "1 − 2 pull")
    if pull * both > 2:
        yield (
            "pull",
            f"pull is {pull:g}, and each visit takes a replica to the other side of the centre, "
            f"{both * pull - 1:.3g} times as far away ({name} = −{both * pull - 1:.3g}); use at most {2 / both:.3g}",
        )


def worker(comm, task, s=Settings()):
    if s.synchronous:
        return synchronous_replica(comm, task, s)
    return centre(comm, task, s) if comm.rank == CENTRE else replica(comm, task, s)


def replica(comm, task, s):
    x = task.start()  # (d,)
    local = local_step(x, s)
    for step in task.steps():
        visiting = step % s.period == 0
        if visiting:
            comm.send(x, CENTRE)
        _, g = task.gradient(local.at)
        if visiting:
            x -= comm.recv(CENTRE)
        local.take(g)
    comm.send(None, CENTRE)  # no more visits
    return x


def centre(comm, task, s):
    c = task.start()  # (d,)
    p = kernels.keep(kernels.empty_like(c))
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


def synchronous_replica(comm, task, s):
    x, c = task.start(), kernels.keep(task.start())  # (d,), (d,)
    p = kernels.keep(kernels.empty_like(x))
    local = local_step(x, s)
    a = s.spring(comm.size)
    for step in task.steps(together=True):
        _, g = task.gradient(local.at)
        if step % s.period == 0:
            kernels.displacement(p, x, c, a)
            x -= p
            kernels.add(c, comm.all_reduce(p))
            if comm.rank == 0:
                task.report(c)
        local.take(g)
    return c


def local_step(x, s):
    return NesterovStep(x, s) if s.momentum else GradientStep(x, s)


class GradientStep:
    """A plain gradient step, in place: x <- x - lr g(x)."""

    def __init__(self, x, s):
        self.x = self.at = x  # where the gradient is taken
        self.rate = s.learning_rate

    def take(self, g):
        kernels.sgd(self.x, g, self.rate)


class NesterovStep:
    """A step of Nesterov's momentum, in place: v <- delta v - lr g(x + delta v), x <- x + v."""

    def __init__(self, x, s):
        self.x, self.v = x, kernels.state_like(x)
        self.at = kernels.keep(kernels.copy(x))  # x + delta v
        self.rate, self.momentum = s.learning_rate, s.momentum

    def take(self, g):
        kernels.sutskever(self.at, self.x, self.v, g, self.rate, self.momentum)


ALGORITHM = Algorithm(
    worker,
    Settings,
    servers=servers,
    unstable=unstable,
    elements_sent=elements_sent,
    deterministic=lambda s: s.synchronous,
    restartable=restartable,
    equivalences=(
        Equivalence(
            "without a pull every replica runs SGD on its own", to="sgd", workers=3, settings={"pull": 0}, to_workers=3
        ),
    ),
)
