"""Gradient noise scale: synchronous SGD measures its gradient noise, and so the largest useful batch size, for free.

A worker's gradient g_i is the mean of b samples, their mean g one of B = N b: two batch sizes, two mean norms.

    E |g_i|^2 = |G|^2 + tr(C) / b        E |g|^2 = |G|^2 + tr(C) / B

with the true gradient G and the covariance C of a single sample's gradient. Solved in every step, averaged over steps:

    signal <- a signal + (1-a) (B |g|^2 - b mean |g_i|^2) / (B - b)            an estimate of |G|^2
    noise  <- a noise  + (1-a) (mean |g_i|^2 - |g|^2) / (1/b - 1/B)            an estimate of tr(C)

noise / signal is the noise scale, in samples: far below it, doubling the batch is worth doubling the steps; far above
it, doubling gains nothing. Both are averaged before the division: the mean of the ratios would be a different number.
In a single step, and with little averaging, signal may be negative; then no scale is measured. w moves as in
synchronous SGD.

Price: an all-reduce of d elements and one of a single element per step, 2 (N-1) (d+1) elements in total; two norms.
Staleness: none.
Source: McCandlish, Kaplan, Amodei et al., arXiv:1812.06162, appendix A.1.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    memory: float = knob(0.95, "a, decay rate of the two running averages, per step", ge=0, lt=1)
    update: Rule = knob("sgd", "optimizer of every worker, applied to the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)


def check(workers, batch, workload, s):
    if workers < 2:
        raise ValueError(
            "one worker gives gradients of one batch size only, but measuring noise takes two; use at least 2 workers."
        )


def elements_sent(shape, s):
    return 2 * (shape.workers - 1) * (shape.parameters + 1) * shape.steps


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    rule = optimizer(s.update, w, s.momentum)
    small = kernels.empty(1, w)  # |g_i|^2, then its mean
    b, big = task.batch, task.batch * comm.size
    signal = noise = 0.0
    for step in task.steps(together=True):
        _, g = task.gradient(w)
        small[0] = kernels.squared_norm(g)
        comm.all_reduce(small, op="mean")
        comm.all_reduce(g, op="mean")
        short, long = float(small[0]), kernels.squared_norm(g)
        rule.step(w, g, s.learning_rate)
        if comm.rank == 0:
            signal += (1 - s.memory) * ((big * long - b * short) / (big - b) - signal)
            noise += (1 - s.memory) * ((short - long) / (1 / b - 1 / big) - noise)
            full = 1 - s.memory ** (step + 1)  # both averages began with 0
            task.measure("signal", signal / full)
            task.measure("noise", noise / full)
            if signal > 0:
                task.measure("noise scale", noise / signal)
            task.report(w)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("measuring the noise does not change the weights of synchronous SGD", to="sync_sgd", workers=3),
    ),
)
