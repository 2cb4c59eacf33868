"""n-softsync collects N/n gradients for an update, and divides the step of each by its staleness.

Rank 0 is the server, the others are workers. With N workers an update takes c = floor(N / n) gradients, at least one,
from any workers, g_l computed s_l updates ago:

    w <- w - 1/c sum_l lr / max(s_l, 1) g_l

Pushes are answered at once: n = N is asynchronous SGD with a staleness-aware rate, n = 1 nearly synchronous. With
`hard`, answers wait for the update, and n = 1 is synchronous SGD; without it, most gradients are one update old even
then.

Price: d elements to the server and d back in every step of a worker; the server keeps the
sum of an update, d more.
Staleness: (N-1)/c updates on average at any speeds.
Source: Zhang, Gupta, Lian & Liu, IJCAI 2016, arXiv:1511.05950.
"""

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server, pushes_and_pulls

HARD = {"splits": 1, "hard": True, "modulate": False}
SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.1, "step size of a gradient that is at most one update old", gt=0, le=1000)
    splits: int = knob(2, "n: each update takes gradients from one in n workers, whichever come first", ge=1, le=4096)
    modulate: bool = knob(True, "divide the step of each gradient by its staleness")
    hard: bool = knob(False, "reply to a worker only after its gradient has been applied")


def notes(e):
    s = e.knobs
    if 2 * s.splits > e.workers and not s.hard and (not s.modulate or e.workers == 2):
        yield "Every update uses a single gradient at its full rate, so this is asgd; use fewer splits."


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
    step = kernels.keep(kernels.zeros_like(w))
    version, read = 0, [0] * comm.size  # updates so far; the version that each worker has read
    training = set(range(1, comm.size))
    c = max(1, len(training) // s.splits)
    gathered = []  # senders of the gradients in `step`
    while training:
        sender, g = comm.recv_any()
        if g is None:
            training.discard(sender)
        else:
            age = version - read[sender]
            task.applied(age)
            kernels.sgd(step, g, s.learning_rate / (c * max(age, 1) if s.modulate else c))
            gathered.append(sender)
        full = 0 < min(c, len(training)) <= len(gathered)
        if full:
            kernels.add(w, step)
            step[:] = 0
            version += 1
            task.report(w)
        for waiting in dict.fromkeys(gathered) if s.hard and full else [sender] if g is not None and not s.hard else []:
            comm.send(w, waiting)
            read[waiting] = version
        if full:
            gathered.clear()
    return w


ALGORITHM = parameter_server(
    worker,
    Settings,
    notes=notes,
    elements_sent=pushes_and_pulls,
    compresses="push",
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence(
            "one split and hard updates give synchronous SGD", to="sync_sgd", exactness="RND", workers=4, settings=HARD
        ),
    ),
)
