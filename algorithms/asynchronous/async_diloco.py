"""Asynchronous DiLoCo: workers train alone for a period and visit a server one by one; nobody waits for the slowest.

Rank 0 serves the common model x. A worker takes H inner steps from the x that it last received, keeping the state of
its inner optimizer, and pushes its displacement p = x - w. The server counts the pushes t = 1, 2, ... and moves x at
each, but changes its momentum only at every B-th, by the mean of the last B pushes, D / B ("delayed Nesterov"):

    D <- D + p
    t mod B > 0     x <- x - outer_rate (c mu m + p / B)
    t mod B = 0     m <- mu m + D / B        x <- x - outer_rate ((1 - c (B-1)) mu m + p / B)        D <- 0

With B = 1 it is Nesterov's momentum at every push: N times as often as in DiLoCo, with pushes of other versions, which
the paper finds to fail. Three choices soften the staleness: `weigh` multiplies p by (1 + staleness)^(-1/2); `dynamic`
gives slow workers shorter periods, H v_i / v_max, so that all push equally often, with speeds v estimated from the
steps that each has pushed so far; and a `quorum` of pushes is applied before any of them is answered, as a window of
time would do for workers of about equal speed. A quorum of all workers is DiLoCo. A push is a period old when it
arrives, and delay acts as momentum: mu has to be smaller than DiLoCo's 0.9.

Price: 2 d elements per period of each worker, through the server's link; three vectors on the server, x, m and D.
Staleness: N - 1 pushes on average.
Source: Liu, Chhaparia, Douillard et al., arXiv:2401.09135 (delayed Nesterov, dynamic local updates).
"""

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server
from algorithms.parts.optimizers import HEAVY, Rule, optimizer

SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.005, "step size of the inner steps", gt=0, le=1000)
    period: int = knob(20, "H, inner steps between two visits", ge=1, le=10_000, unit="steps", postpones=True)
    outer_rate: float = knob(0.7, "step size of the server", gt=0, le=100)
    outer_momentum: float = knob(0.3, "mu, decay of the server's momentum", ge=0, lt=1)
    buffer: int | None = knob(
        None, "B, pushes between two changes of the server's momentum", none="as many as workers", ge=1, le=4096
    )
    early_share: float = knob(0.0, "c, share of the momentum's step taken at every push; at most 1 / B", ge=0, le=1)
    quorum: int = knob(1, "pushes that are applied before any of them is answered", ge=1, le=4096, unit="pushes")
    weigh: bool = knob(False, "divide a push by the root of 1 + its staleness")
    dynamic: bool = knob(False, "give slow workers shorter periods, so that all push equally often")
    update: Rule = knob("adam", "inner optimizer")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def check(workers, batch, workload, s):
    buffer = s.buffer or workers
    if s.early_share * buffer > 1:
        raise ValueError(
            f"an early share of {s.early_share:g} over {buffer} pushes is more than the whole momentum; "
            f"use at most {1 / buffer:.3g}."
        )
    if s.quorum > workers:
        raise ValueError(f"{workers} workers cannot make a quorum of {s.quorum} pushes; use at most {workers}.")


def elements_sent(shape, s):
    if s.dynamic:
        return None
    return 2 * shape.workers * shape.parameters * -(-shape.steps // s.period)


def notes(e):
    if e.knobs.quorum == e.workers > 1:
        yield "A quorum of all workers waits for everybody, so this is diloco with a server; use a smaller quorum."


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else replica(comm, task, s)


def replica(comm, task, s):
    w = task.start()  # (d,)
    x, p = kernels.keep(kernels.copy(w)), kernels.keep(kernels.empty_like(w))
    inner = optimizer(s.update, w, s.momentum)

    def visit(taken):
        """Push the displacement, continue from the newest x, and return the length of the next period."""
        kernels.displacement(p, x, w, 1.0)
        comm.send((p, taken) if s.dynamic else (p,), SERVER)
        newest, *period = comm.recv(SERVER)
        x[:] = newest
        w[:] = newest
        return period[0] if period else s.period

    period, taken = s.period, 0
    for _ in task.steps():
        _, g = task.gradient(w)
        inner.step(w, g, s.learning_rate)
        taken += 1
        if taken >= period:
            period, taken = visit(taken), 0
    if taken:
        visit(taken)
    comm.send(None, SERVER)  # no more pushes
    return w


def server(comm, task, s):
    x = task.start()
    m, total = kernels.state_like(x), kernels.keep(kernels.zeros_like(x))
    buffer = s.buffer or comm.size - 1
    pushes, answered = 0, 0  # so far; and when workers were last answered
    read, steps = [0] * comm.size, [0] * comm.size  # pushes in the x that each worker has; inner steps it has pushed
    training, waiting = set(range(1, comm.size)), []
    while training:
        sender, message = comm.recv_any()
        if message is None:
            training.discard(sender)
        else:
            p, *taken = message
            steps[sender] += sum(taken)
            staleness = answered - read[sender]
            task.applied(staleness)
            if s.weigh:
                kernels.scale(p, (1 + staleness) ** -0.5)
            pushes += 1
            kernels.add(total, p)
            share = s.early_share
            if pushes % buffer == 0:
                kernels.mix(m, total, s.outer_momentum, 1 / buffer)
                total[:] = 0
                share = 1 - s.early_share * (buffer - 1)
            kernels.sgd(x, p, s.outer_rate / buffer)
            kernels.sgd(x, m, s.outer_rate * share * s.outer_momentum)
            waiting.append(sender)
            task.report(x)
        if len(waiting) >= min(s.quorum, len(training)):
            for rank in waiting:
                period = max(1, s.period * steps[rank] // max(1, *steps))
                comm.send((x, period) if s.dynamic else (x,), rank)
                read[rank] = pushes
            answered, waiting = pushes, []
    return x


ALGORITHM = parameter_server(
    worker,
    Settings,
    check=check,
    notes=notes,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence(
            "one worker gives DiLoCo",
            to="diloco",
            exactness="RND",
            settings={"period": 4, "outer_momentum": 0.9},
            to_settings={"period": 4},
        ),
        Equivalence(
            "with a quorum of all workers it is DiLoCo",
            to="diloco",
            exactness="RND",
            workers=4,
            settings={"quorum": 4, "period": 4, "outer_momentum": 0.9},
            to_settings={"period": 4},
        ),
    ),
)
