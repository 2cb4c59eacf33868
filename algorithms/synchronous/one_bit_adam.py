"""1-bit Adam freezes Adam's mean of squares after some steps, so that the momentum can be sent as signs.

Error feedback sends later what a message leaves out. The total is right only if a step is linear in what was sent, and
Adam's step is not, because of the square root of v. So v, the mean of squares, is frozen after T uncompressed steps:

    t <= T    Adam with g, the mean gradient of all workers; then v <- v / (1 - b2^T), infinite where all g were 0
    t > T     m <- mean over i of C(m + (1 - b1) (g_i - m))        w <- w - lr (m / (1 - b1^t)) / (sqrt(v) + eps)

From then on the method is SGD with momentum and a fixed rate for each weight. C sends signs and their mean size in each
tensor, with error feedback at the sender and at the owner of each part, as in `compression/sign.py`; all workers have
the same m afterwards. A weight whose gradients were all 0 until the freeze does not move, because its step would be the
size of a sign divided by 0. A weight whose gradients are small compared with those of its tensor moves too far, since
all signs of a tensor have the same size, and error feedback corrects that later, so the learning rate has to be smaller
than Adam's. If v is frozen too early, it comes from the first gradients, which are usually larger than later ones.

Price: an all-reduce per step, 2 (N-1) d elements in total by the ring, and 1/32 of that once v is frozen; m, v and two
errors, d + d/N. Staleness: none, but what a message leaves out is sent later.
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
    freeze_step: int = knob(50, "T, steps of uncompressed Adam before v is frozen", ge=1, le=10_000, unit="steps")


def elements_sent(shape, s):
    if shape.steps > s.freeze_step and shape.workers > 1:
        return None  # signs are packed, and each tensor adds its size
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
    """Correct v for its start at 0, in place; set it to infinity where it is 0, so that these weights never move."""
    kernels.scale(v, 1 / (1 - BETAS[1] ** steps))
    v[v == 0] = math.inf


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=elements_sent,
    computes_together=True,
    equivalences=(
        Equivalence(
            "steps before the freeze are synchronous Adam",
            to="sync_sgd",
            workers=3,
            settings={"freeze_step": 10_000},
            to_settings={"update": "adam"},
        ),
    ),
)
