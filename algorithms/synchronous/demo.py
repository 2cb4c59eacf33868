"""DeMo sends the few largest frequency components of each worker's momentum; all step by the sign of their mean.

Every worker keeps a momentum m of its own, which is never averaged. In a step it is cut into segments, and a discrete
cosine transform, the orthogonal matrix C, tells how much of each frequency is in a segment:

    m <- beta m + lr g        q <- the largest |C m| of each segment, as many as fraction * segment
    m <- m - C' q             Q <- the mean of q over the workers that sent this frequency
    w <- w - lr sign(C' Q)

What is sent is subtracted from m, so m is also the error feedback: what is left out grows until it is among the
largest, or decays. A frequency of a segment spreads over all of its parameters, so a few of them move all parameters,
where the largest elements of the gradient would move only these. Parameters without any gradient move, too. All of them
move by the whole learning rate, which has to be as small as Adam's. If everything is sent, m is 0 after each step, and
the method is signSGD on a batch N times as large.

The model is cut as one vector, whose last segment is filled up with zeros; the authors' program transforms blocks of a
matrix along both axes.

Price: a message of 2 fraction d words from every worker to all others, 2 N (N-1) fraction d in total; three transforms,
2 segment FLOPs per parameter each; m, and three more vectors to work in. Staleness: none, but a small frequency waits
until it is among the largest of its segment.
Source: Peng, Chen, Su, Quesnelle, Kingma & Liu, arXiv:2411.19870, and the authors' demo.py.
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob


class Settings(Knobs):
    learning_rate: float = knob(0.002, "how far each parameter moves in a step", gt=0, le=1000)
    fraction: float = knob(0.0625, "fraction of a segment's frequency components to send, largest first", gt=0, le=1)
    segment: int = knob(64, "parameters in a segment, which are transformed together", ge=1, le=1024)
    decay: float = knob(0.999, "beta, decay of the momentum", ge=0, lt=1)


def elements_sent(shape, s):
    return None if shape.workers > 1 else 0  # the indices are of four bytes, whatever the numbers are


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    shape = -(-len(w) // s.segment), s.segment  # a segment is a row
    m = kernels.state_like(kernels.empty(shape, w))
    frequencies, senders, waves = (kernels.keep(kernels.empty_like(m)) for _ in range(3))
    mean, count, update = (table.reshape(-1) for table in (frequencies, senders, waves))
    basis = kernels.empty((s.segment, s.segment), w)  # C
    basis[:] = kernels.beside(cosines(s.segment), w)
    k = max(1, round(s.fraction * s.segment))
    ones = kernels.empty(shape[0] * k, w)
    ones[:] = 1
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        kernels.scale(m.reshape(-1), s.decay)
        kernels.mix(m.reshape(-1)[: len(w)], g, 1.0, s.learning_rate)
        own = subtract_largest(m, k, basis, frequencies, waves)
        mean[:] = 0
        count[:] = 0
        for index, values in comm.all_gather(own):
            kernels.scatter_add(mean, index, values)
            kernels.scatter_add(count, index, ones)
        mean /= count.clip(1)
        kernels.matmul(waves, frequencies, basis)
        kernels.sign_sgd(w, update[: len(w)], s.learning_rate)
        if comm.rank == 0:
            task.report(w)
    return w


def subtract_largest(m, k, basis, frequencies, waves):
    """Subtract its k largest frequency components from each row of m, (segments, segment); return their (indices,
    values).

    `frequencies` and `waves`, tables like m, are overwritten.
    """
    values, index = kernels.empty((len(m), k), m), kernels.empty((len(m), k), m, "int32")
    kernels.matmul(frequencies, m, basis.T)
    kernels.row_top_k(values, index, frequencies)
    message = index.reshape(-1), values.reshape(-1)
    frequencies[:] = 0
    kernels.scatter_add(frequencies.reshape(-1), *message)
    kernels.matmul(waves, frequencies, basis)
    kernels.residual(m.reshape(-1), waves.reshape(-1))
    return message


def cosines(n):
    """Return the orthogonal matrix of the discrete cosine transform (DCT-II) of n numbers, (frequencies, numbers)."""
    frequency, place = np.mgrid[:n, :n]
    waves = np.sqrt(2 / n) * np.cos(np.pi * (2 * place + 1) * frequency / (2 * n))
    waves[0] = 1 / np.sqrt(n)
    return waves


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    computes_together=True,
    stable_rate=0.005,
    equivalences=(
        Equivalence(
            "if everything is sent, N workers equal one worker with N times the batch",
            to="demo",
            exactness="RND",
            workers=4,
            settings={"fraction": 1},
            to_workers=1,
            to_settings={"fraction": 1},
            to_batch=4,
        ),
    ),
)
