"""Backup workers keep synchronous SGD from waiting for stragglers: each step uses the first N of N + b gradients.

Rank 0 is the server. When any N workers have pushed a gradient of step t,

    g = (g_1 + ... + g_N) / N        w <- w - lr g        t <- t + 1

and these N receive the new w. A straggler finishes its gradient; its push, now of an older step, is dropped, and it
continues from the newest w. The server knows the step of every gradient, since it knows what it sent to each worker. Up
to b workers may be lost for good.

Price: 2 (N + b) d elements per step through the server's link, late pushes included; b / (N + b) of the gradients are
wasted. The server holds 2 (N + 1) d elements: each gradient as it arrived and as a row to be added, g and w.
Staleness: none. Which N of the N + b mini-batches are used is decided by speed: unbiased only if speed is independent
of the data.
Source: Chen, Pan, Monga, Bengio & Jozefowicz, arXiv:1604.00981 (96 workers and 4 backups of 100 machines).
"""

from itertools import count

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_server
from algorithms.parts.optimizers import HEAVY, Rule, optimizer

SERVER = 0
END = None  # sent along with the last w


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    backups: int | None = knob(
        None, "b, workers each step does not wait for", none="one in 25, at least one", ge=0, le=4095
    )
    update: Rule = knob("sgd", "optimizer of the server, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)

    @property
    def synchronous(self):
        return self.backups == 0

    def workers_needed(self, workers):
        return workers - ((workers + 23) // 25 if self.backups is None else self.backups)


def check(workers, batch, workload, s):
    if s.workers_needed(workers) < 1:
        among = "1 worker" if workers == 1 else f"{workers} workers"
        raise ValueError(
            f"{s.backups} backups among {among} leave no worker to wait for; use fewer backups than workers."
        )


def elements_sent(shape, s):  # if no worker is more than a step late
    return 2 * shape.workers * shape.parameters * shape.steps


def notes(e):
    if e.workers > 1 and e.knobs.workers_needed(e.workers) == 1:
        yield f"Each step waits for only one of {e.workers} gradients, so it is a step of sgd; use fewer backups."


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else trainer(comm, task)


def trainer(comm, task):
    w = task.start()  # (d,)
    for step in count():
        task.at(step)
        _, g = task.gradient(w)
        comm.send((g, END) if task.spent() else (g,), SERVER)
        w, *end = comm.recv(SERVER)
        if end:
            return w


def server(comm, task, s):
    w = task.start()  # (d,)
    rule = optimizer(s.update, w, s.momentum)
    workers = range(1, comm.size)
    n = s.workers_needed(len(workers))
    g, rows = kernels.keep(kernels.empty_like(w)), kernels.keep(kernels.empty((n, len(w)), w))
    task.holds("gradients", n * w.nbytes)  # those that have arrived
    began = dict.fromkeys(workers, 0)  # the step whose gradient each worker computes
    arrived, lost, dropped, end = {}, set(), 0, []
    for step in task.steps():
        for rank in arrived:
            comm.send((w,), rank)
            began[rank] = step
        arrived = {}
        while len(arrived) < n:
            rank, message = comm.recv_any()
            if message is None:
                lost.add(rank)
                if len(lost) > len(workers) - n:
                    comm.recv(rank)  # raises RankLost: no step can be completed any more
                continue
            gradient, *spent = message
            end += spent
            if began[rank] == step:
                arrived[rank] = gradient
            else:
                dropped += 1
                comm.send((w,), rank)
                began[rank] = step
        for row, rank in zip(rows, sorted(arrived), strict=True):  # added in the order of ranks: the same bits always
            row[:] = arrived[rank]
        kernels.mean(g, rows)
        rule.step(w, g, s.learning_rate)
        task.measure("dropped", dropped)
        task.report(w)
        if end:
            break
    for rank in arrived:
        comm.send((w, END), rank)
    late = began.keys() - arrived.keys() - lost
    while late:
        rank, message = comm.recv_any()
        late.discard(rank)
        if message is not None:
            comm.send((w, END), rank)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    servers=one_server,
    check=check,
    elements_sent=elements_sent,
    deterministic=lambda s: s.synchronous,
    drops_steps=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence(
            "two workers and no backup give synchronous SGD", to="sync_sgd", workers=2, settings={"backups": 0}
        ),
        Equivalence(
            "more workers and no backup give synchronous SGD, up to the order in which gradients are added",
            to="sync_sgd",
            exactness="RND",
            workers=5,
            settings={"backups": 0},
        ),
    ),
)
