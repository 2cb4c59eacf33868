"""1-bit Adam freezes Adam's mean of squares after a while, so that the momentum can be sent as signs.

Error feedback returns later what a message leaves out, and that adds up only if a step is linear in what was sent.
Adam's is not, because of the square root of v. So v, the mean of squares, is frozen after T steps with whole gradients:

    t <= T    Adam with g, the mean gradient of all workers; then v <- v / (1 - b2^T), infinite where no gradient was
    t > T     m <- mean over i of C(m + (1 - b1) (g_i - m))        w <- w - lr (m / (1 - b1^t)) / (sqrt(v) + eps)

From then on it is SGD with momentum, with a rate of its own for each weight, which no longer changes. C sends signs and
their mean size in each tensor, with error feedback at the sender and at the owner of each part, as in
`compression/sign.py`; all workers have the same m afterwards. A weight that has had no gradient by then would
move by the size of a sign divided by 0: it stays where it is. One whose gradients are small next to its tensor's moves
too far, since all signs of a tensor have one size, and error feedback takes that back later: rates have to be smaller
than Adam's. Freeze too soon, and they are made from the first gradients, which are usually larger than later.

Price: an all-reduce per step, 2 (N-1) d elements in total by the ring, and 1/32 of that once v is frozen; m, v and two
errors, d + d/N. Staleness: none, but what is left out is sent later.
Source: Tang, Gan, Awan, Rajbhandari et al., ICML 2021, arXiv:2102.02888.
"""

import math

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.compression import sign
from algorithms.parts.error_feedback import attach
from algorithms.parts.optimizers import BETAS, EPS


class Settings(Knobs):
    learning_rate: float = knob(0.002, "roughly how far each weight moves in a step", gt=0, le=1000)
    freeze_step: int = knob(
        50, "T, steps of Adam with whole gradients, after which v is frozen", ge=1, le=10_000, unit="steps"
    )


def elements_sent(shape, s):
    if shape.steps > s.freeze_step and shape.workers > 1:
        return None  # signs are packed, and each tensor has a size of its own
    return ring_all_reduces(shape, s)


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    m, v = kernels.state_like(w), kernels.state_like(w)
    in_signs = attach(comm, sign.COMPRESSION, sign.Settings(error_feedback=True), task.tensors, seed=0)
    for step in task.steps(together=True):
        _, g = task.gradient(w)
        if step < s.freeze_step:
            comm.all_reduce(g, op="mean")
            kernels.adam(w, m, v, g, step + 1, s.learning_rate, *BETAS, EPS)
            if step + 1 == s.freeze_step:
                freeze(v, s.freeze_step)
        else:
            kernels.ema(m, g, 1 - BETAS[0])
            in_signs.all_reduce(m, op="mean")
            kernels.adam_ahead(w, w, m, v, step + 1, 1, s.learning_rate, BETAS[0], 0.0, EPS)
        if comm.rank == 0:
            task.report(w)
    return w


def freeze(v, steps):
    """v <- the mean of squares, corrected for its start at 0; infinite where it is 0, so that nothing moves there."""
    kernels.scale(v, 1 / (1 - BETAS[1] ** steps))
    v[v == 0] = math.inf


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    computes_together=True,
    equivalences=(
        Equivalence(
            "until it freezes it is synchronous Adam",
            to="sync_sgd",
            workers=3,
            settings={"freeze_step": 10_000},
            to_settings={"update": "adam"},
        ),
    ),
)
