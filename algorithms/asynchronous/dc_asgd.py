"""DC-ASGD extrapolates a late gradient to the current parameters: delay-compensated asynchronous SGD.

Rank 0 is the server, the others are workers. The server stores w' as each worker last read it, and corrects a push
by the first-order term of the Taylor series, with lam g g in place of the Hessian:

    constant    w <- w - lr (g + lam g g (w - w'))
    adaptive    s <- m s + (1 - m) g^2        w <- w - lr (g + lam / sqrt(s) g g (w - w'))

Price: that of asynchronous SGD, plus N d elements of memory on the server for w'. The adaptive form needs as many again
for s, one for each worker as in the authors' code, or d if `shared`, one for all as in the paper.
Staleness: N-1 updates on average; its effect is reduced to second order in w - w'.
Source: Zheng et al., ICML 2017, arXiv:1609.08326, Algorithms 1 and 2; Microsoft's updater for Multiverso.
"""

from typing import Literal

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server, pushes_and_pulls

SERVER = 0
EPS = 1e-7  # added inside the root

ADAPTIVE = {"form": ("adaptive",)}  # when the knobs of its mean square are in force


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size of each gradient", gt=0, le=1000)
    form: Literal["constant", "adaptive"] = knob(
        "adaptive", "whether lam is constant, or scaled by the recent size of gradients"
    )
    compensation: float = knob(
        2.0,
        "lambda, strength of the correction; the paper uses 0.04 in the constant form, 2 in the adaptive one",
        ge=0,
        le=1e6,
    )
    forget: float = knob(0.95, "m, decay rate of the mean squared gradient", when=ADAPTIVE, ge=0, lt=1)
    shared: bool = knob(
        False, "keep one mean square for all workers, as in the paper, instead of one for each", when=ADAPTIVE
    )


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
    version, read = 0, [0] * comm.size
    training = set(range(1, comm.size))
    backup = {rank: kernels.keep(kernels.copy(w)) for rank in training}  # w as each worker last read it
    squares = mean_squares(w, training, s)
    while training:
        sender, g = comm.recv_any()
        if g is None:
            training.discard(sender)
            continue
        task.applied(version - read[sender])
        if s.form == "constant":
            kernels.delay_compensated(w, g, backup[sender], s.learning_rate, s.compensation)
        else:
            kernels.delay_compensated_adaptive(
                w, squares[sender], g, backup[sender], s.learning_rate, s.compensation, s.forget, EPS
            )
        version += 1
        comm.send(w, sender)
        backup[sender][:] = w
        read[sender] = version
        task.report(w)
    return w


def mean_squares(w, workers, s):
    """Return {worker: running mean of squared gradients, (d,)}, at first 0; {} in the constant form.

    If `shared`, all workers have the same array.
    """
    if s.form == "constant":
        return {}
    if s.shared:
        return dict.fromkeys(workers, kernels.state_like(w))
    return {rank: kernels.state_like(w) for rank in workers}


ALGORITHM = parameter_server(
    worker,
    Settings,
    elements_sent=pushes_and_pulls,
    compresses="push",
    equivalences=(
        Equivalence("one worker gives SGD, since its gradients are never late", to="sgd"),
        Equivalence(
            "one worker gives SGD in the constant form, too", to="sgd", settings={"form": "constant", "compensation": 1}
        ),
    ),
)
