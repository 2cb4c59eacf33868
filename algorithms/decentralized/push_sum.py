"""Push-sum SGP: in every step each worker sends half of its model, one way, to one of several workers in turn.

In step t worker i sends half of x_i and of its weight p_i to the worker 2^(t mod log2 N) ahead:

    x_i <- x_i - lr g(z_i)        x_i <- x_i / 2 + received        p_i <- p_i / 2 + received        z_i <- x_i / p_i

What is sent is subtracted at the sender, so the sum of all x_i is conserved under any pattern of sends; the weight p_i
is the share of a model that a worker holds, and z_i is that model. All receive from one worker, so p_i stays 1, until a
worker is lost: then what was sent to it is lost from x and p alike, and z_i is still correct. The final model is the
mean of all z_i.

Price: d + 1 elements from every worker in every step, one message delay; one more vector of memory, z.
Staleness: none, but workers disagree.
Source: Assran, Loizou, Ballas & Rabbat, Stochastic Gradient Push, ICML 2019, Algorithm 1; Kempe et al., FOCS 2003.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.neighbour_messages import recv_or_lost


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)


def elements_sent(shape, s):
    alone = shape.workers == 1
    return 0 if alone else shape.workers * (shape.parameters + 1) * shape.steps


def notes(e):
    if e.workers == 2:
        yield "Two workers that exchange half their models both get the mean, so this is sync_sgd; use 4 or more."
    elif e.workers > 2 and not e.crash.by_rank:
        yield (
            "Each worker receives from exactly one other, so all weights p stay 1 and dividing by them has no effect; "
            "lose a worker, for example with crash 3:0.02, to see their purpose."
        )


def worker(comm, task, s=Settings()):
    x = task.start()  # (d,)
    z = kernels.keep(kernels.copy(x))
    p = z[:1] * 0 + 1  # (1,)
    rounds = (comm.size - 1).bit_length()
    lost = set()  # lost workers, which nothing is sent to
    for step in task.steps(together=True):
        _, g = task.gradient(z)
        kernels.sgd(x, g, s.learning_rate)
        if rounds:
            distance = 1 << step % rounds
            to, source = (comm.rank + distance) % comm.size, (comm.rank - distance) % comm.size
            if to not in lost:
                kernels.scale(x, 0.5)
                p *= 0.5
                comm.send((x, p), to, tag=step)
            theirs = recv_or_lost(comm, source, step, lost)
            if theirs is not None:
                kernels.add(x, theirs[0])
                p += theirs[1]
        z[:] = x
        if p[0] != 1:
            kernels.scale(z, 1 / float(p[0]))
        task.report(z)
    return z


ALGORITHM = Algorithm(
    worker,
    Settings,
    notes=notes,
    elements_sent=elements_sent,
    survives_loss=True,
    equivalences=(Equivalence("one worker gives SGD", to="sgd"),),
)
