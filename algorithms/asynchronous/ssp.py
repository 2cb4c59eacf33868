"""SSP lets a worker run ahead of the slowest one, by at most a bound: asynchrony with limited staleness.

Rank 0 is the server, the others are workers. A worker's clock counts its own steps. It may begin clock c only when
the slowest worker has finished clock c - bound - 1, and then reads a w with at least all updates up to that
clock, all of its own, and perhaps newer ones of others:

    worker    push g(w')        w' <- answer, or w' <- w' - lr/N g while its copy is fresh enough
    server    w <- w - lr/N g        answers clock c once every clock is at least c - bound

The steps of all workers in one clock together are one step with the mean gradient, so bound 0 is synchronous SGD. A
large bound is asynchronous SGD with lr/N.

Price: d elements to the server in every step of a worker, d + 1 back, or fewer with `cache`.
Staleness: a gradient misses the others' updates of at most the last `bound` clocks of its own worker.
Source: Cipar et al., Solving the Straggler Problem with Bounded Staleness, HotOS 2013; Ho et al., More Effective
Distributed ML via a Stale Synchronous Parallel Parameter Server, NIPS 2013.
"""

import numpy as np

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server

SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.2, "lr: one clock of all workers moves by lr times the mean gradient", gt=0, le=1000)
    bound: int = knob(
        3,
        "steps (clocks) a worker may be ahead of the slowest; 0 is synchronous SGD",
        ge=0,
        le=1_000_000,
        unit="steps",
        postpones=True,
    )
    cache: bool = knob(False, "keep working on the local copy of the model while the bound allows it")


def elements_sent(shape, s):
    return None if s.cache else shape.workers * (2 * shape.parameters + 1) * shape.steps


def notes(e):
    alike = e.jitter == "none" and not (e.slow.by_rank or e.pause.by_rank or e.crash.by_rank)
    if e.workers > 1 and e.knobs.bound > 1 and alike and not e.knobs.cache:
        yield (
            f"No worker gets {e.knobs.bound} clocks ahead while all workers are equally fast, so this is asgd with "
            f"learning_rate / {e.workers}; use bound 0, jitter cloud, or slow 1:3."
        )


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else replica(comm, task, s)


def replica(comm, task, s):
    w = task.start()  # (d,)
    rate = s.learning_rate / (comm.size - 1)
    seen = 0  # clocks of all workers that w includes
    for clock in task.steps():
        _, g = task.gradient(w)
        pull = not s.cache or clock + 1 - s.bound > seen
        comm.send((g,) if pull else g, SERVER)
        if pull:
            w, slowest = comm.recv(SERVER)
            seen = int(slowest[0])
        else:
            kernels.sgd(w, g, rate)
    comm.send(None, SERVER)  # no more pushes
    return w


def server(comm, task, s):
    w = task.start()
    rate = s.learning_rate / (comm.size - 1)
    clocks = dict.fromkeys(range(1, comm.size), 0)  # of the workers that are still training
    asked = {}  # worker -> the clock it wants to begin
    version, read = 0, [0] * comm.size
    while clocks:
        sender, push = comm.recv_any()
        if push is None:
            clocks.pop(sender, None)
            asked.pop(sender, None)
        else:
            pull = isinstance(push, tuple)
            kernels.sgd(w, push[0] if pull else push, rate)
            task.applied(version - read[sender])
            version += 1
            read[sender] += not pull  # a worker knows its own updates
            clocks[sender] += 1
            if pull:
                asked[sender] = clocks[sender]
            task.at(min(clocks.values()))
            task.measure("clocks apart", max(clocks.values()) - min(clocks.values()))
            task.report(w)
        slowest = min(clocks.values(), default=0)
        for ready in [rank for rank, clock in asked.items() if clock - s.bound <= slowest]:
            comm.send((w, np.array([slowest], task.workload.dtype)), ready)
            read[ready] = version
            del asked[ready]
    return w


ALGORITHM = parameter_server(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence(
            "a bound of 0 gives synchronous SGD", to="sync_sgd", exactness="RND", workers=4, settings={"bound": 0}
        ),
    ),
)
