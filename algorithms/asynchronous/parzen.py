"""ASGD with a Parzen window: workers send each other their states, and accept only those that lie ahead of them.

Every `period` steps a worker sends its w_i to a random other worker, without waiting. A worker that finds states w_k in
its buffers accepts those that its own step brings it closer to, and is attracted to the mean of them and itself:

    accept w_k if |(w_i - lr g) - w_k| < |w_i - w_k|
    w_i <- w_i - lr (w_i - mean of w_i and the accepted + g)

A state that arrives too late to lie ahead is not used. Without messages it is one-shot averaging, and as there the mean
of all workers is the final model. If a worker is lost, the others continue.

Price: d / period elements per step of a worker, and an average at the end. Staleness: decided by the network.
Source: Keuper & Pfreundt, MLHPC 2015, arXiv:1505.04956; a setting decides whether lr also scales the attraction.
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob

STATE = 1  # tag


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    period: int = knob(4, "steps between sending two states", ge=1, le=100_000, unit="steps", postpones=True)
    buffers: int = knob(4, "received states a worker considers, newest first", ge=1, le=64)
    scaled: bool = knob(True, "let the learning rate scale the attraction to other workers as well")


def elements_sent(shape, s):
    if shape.workers == 1:
        return 0
    sent = shape.workers * (shape.steps // s.period)
    return (sent + 2 * (shape.workers - 1)) * shape.parameters


def notes(e):
    if e.workers > 1:
        yield "Unless a worker accepts a state it receives, this is one_shot: watch the share accepted."


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    generator = np.random.default_rng([task.seed, 0x9A52, comm.rank])
    training = {*range(comm.size)} - {comm.rank}  # others that may still send
    for step in task.steps():
        _, g = task.gradient(w)
        buffer = []
        for _ in comm.poll(STATE) if training else ():
            sender, theirs = comm.recv_any(STATE)
            if theirs is None:
                training.discard(sender)
            else:
                buffer = [*buffer, theirs][-s.buffers :]
        towards = [theirs for theirs in buffer if ahead(w, g, theirs, s.learning_rate)]
        if towards:
            task.measure("accepted", len(towards) / len(buffer))
            pull = kernels.copy(w)  # w - (w + sum of theirs) / (n + 1)
            kernels.scale(pull, len(towards) / (len(towards) + 1))
            for theirs in towards:
                kernels.sgd(pull, theirs, 1 / (len(towards) + 1))
            kernels.sgd(w, pull, s.learning_rate if s.scaled else 1.0)
        kernels.sgd(w, g, s.learning_rate)
        if comm.size > 1 and (step + 1) % s.period == 0:
            other = int(generator.integers(comm.size - 1))
            comm.send(w, other + (other >= comm.rank), STATE)
        task.report(w)
    for other in range(comm.size):
        if other != comm.rank:
            comm.send(None, other, STATE)  # no more states
    while training:
        sender, theirs = comm.recv_any(STATE)
        if theirs is None:
            training.discard(sender)
    return comm.all_reduce(w, op="mean")


def ahead(w, g, theirs, rate):
    """Return True if a step down the gradient brings w closer to `theirs`, the state of another worker."""
    return float(g @ (w - theirs)) > rate / 2 * float(g @ g)


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    deterministic=False,
    equivalences=(Equivalence("one worker gives SGD", to="sgd"),),
)
