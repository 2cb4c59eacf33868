"""Robust aggregation: all workers see all gradients, and combine them so that a few liars cannot steer the step.

Every worker sends its gradient to all others. The last `liars` of them lie, knowing all honest gradients, their mean m
and, in every coordinate, their standard deviation s; z is the strength of the lie:

    flip     -z g_i            noise    z s times a normal draw
    little   m - z s           inner    -z m

All ranks then take the same step with F(g_1, ..., g_N) instead of the mean. F is made for f liars:

    median       the median of each coordinate        trimmed    the mean without the f largest and f smallest of each
    krum         the gradient with the least sum of squared distances to its N - f - 2 nearest; the mean of `selected`
    geometric    10 steps of Weiszfeld to the point with the least sum of distances
    clipped      3 times v <- v + mean of (g_i - v) min(1, radius / |g_i - v|), from the v of the step before

No F is best against every lie: what protects from one does not protect from another. With momentum a worker sends the
moving mean of its gradients, whose lower noise leaves a lie less room to hide.

Price: N (N-1) d elements per step, quadratic in the workers, and N d numbers for a moment. Staleness: none.
Source: Blanchard, El Mhamdi, Guerraoui & Stainer, NIPS 2017 (Krum); Yin et al., ICML 2018 (median, trimmed mean);
Baruch et al., NeurIPS 2019 (a little is enough); Karimireddy, He & Jaggi, ICML 2021 (clipping, momentum).
"""

from math import sqrt
from typing import Any, Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob

FOUR: dict[str, Any] = {"exactness": "RND", "workers": 4, "to_workers": 4}


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    aggregate: Literal["mean", "median", "trimmed", "krum", "geometric", "clipped"] = knob(
        "median", "F, rule that combines the gradients into one"
    )
    tolerated: int = knob(1, "f, number of liars to withstand", when={"aggregate": ("trimmed", "krum")}, ge=0, le=2000)
    selected: int = knob(
        1, "number of gradients to average, those with the lowest scores", when={"aggregate": ("krum",)}, ge=1, le=4096
    )
    radius: float = knob(
        1.0,
        "distance from the last aggregate beyond which a gradient is clipped",
        when={"aggregate": ("clipped",)},
        gt=0,
        le=1e9,
    )
    momentum: float = knob(0.0, "decay of the mean gradient that a worker sends; 0 sends the gradient", ge=0, lt=1)
    liars: int = knob(0, "number of workers that lie (the last ones)", ge=0, le=4095)
    lie: Literal["flip", "noise", "little", "inner"] = knob("flip", "what liars send")
    strength: float = knob(10.0, "z, strength of the lie", ge=0, le=1e30)


def check(workers, batch, workload, s):
    if s.liars >= workers:
        raise ValueError(f"{s.liars} liars among {workers} workers leave nobody honest; use at most {workers - 1}.")
    if s.aggregate == "trimmed" and workers <= 2 * s.tolerated:
        among = "1 worker has" if workers == 1 else f"{workers} workers have"
        raise ValueError(
            f"{among} no gradient left after the {s.tolerated} largest and smallest are trimmed; "
            f"use tolerated {(workers - 1) // 2}, or {2 * s.tolerated + 1} workers."
        )
    if s.aggregate == "krum" and workers < 2 * s.tolerated + 3:
        raise ValueError(
            f"Krum needs 2 f + 3 workers, {2 * s.tolerated + 3} to tolerate {s.tolerated}, but there are {workers}; "
            + (f"use tolerated {(workers - 3) // 2}." if workers >= 3 else "use at least 3 workers and tolerated 0.")
        )
    if s.aggregate == "krum" and s.selected > workers:
        raise ValueError(f"{s.selected} gradients cannot be selected out of {workers}; use at most {workers}.")


def elements_sent(shape, s):
    return shape.workers * (shape.workers - 1) * shape.parameters * shape.steps


def notes(e):
    if e.knobs.liars and e.knobs.aggregate == "mean":
        yield "The mean has no defence: one liar decides it. Try aggregate median, trimmed, krum, geometric or clipped."
    if 2 * e.knobs.liars >= e.workers:
        yield f"{e.knobs.liars} of {e.workers} workers lie: no aggregate can tell a lying majority from honest workers."


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    honest = comm.size - s.liars
    rows = kernels.keep(kernels.empty((comm.size, len(w)), w))
    true, taken = kernels.empty_like(w), kernels.keep(kernels.zeros_like(w))
    sent = kernels.state_like(w)
    draw = np.random.default_rng([task.seed, 0x11E])  # the same on all ranks; 0x11E: a stream of its own
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        if s.momentum:
            kernels.ema(sent, g, 1 - s.momentum)
            g = sent
        for row, gradient in zip(rows, comm.all_gather(g), strict=True):
            row[:] = gradient
        if s.liars:
            kernels.mean(true, rows[:honest])
            tell(rows, true, honest, s, draw)
        AGGREGATES[s.aggregate](taken, rows, s)
        kernels.sgd(w, taken, s.learning_rate)
        if comm.rank == 0:
            if s.liars:
                kernels.displacement(true, taken, true, 1.0)
                task.measure("pulled away", sqrt(kernels.squared_norm(true)))
            task.report(w)
    return w


def tell(rows, mean, honest, s, draw):
    """Overwrite the last rows, those of the liars, with what the liars send."""
    deviation = ((rows[:honest] - mean) ** 2).mean(0) ** 0.5
    for row in rows[honest:]:
        if s.lie == "flip":
            kernels.scale(row, -s.strength)
        elif s.lie == "noise":
            row[:] = deviation * kernels.beside(draw.standard_normal(len(row)), row)
            kernels.scale(row, s.strength)
        elif s.lie == "little":
            kernels.displacement(row, mean, deviation * s.strength, 1.0)
        else:
            kernels.displacement(row, mean, mean * 2, s.strength)


def mean(out, rows, s):
    kernels.mean(out, rows)


def median(out, rows, s):
    kernels.trimmed_mean(out, rows, (len(rows) - 1) // 2)


def trim(out, rows, s):
    kernels.trimmed_mean(out, rows, s.tolerated)


def krum(out, rows, s):
    near = len(rows) - s.tolerated - 2
    scores = [sum(sorted(squared_distances(rows, row, skip=i))[:near]) for i, row in enumerate(rows)]
    chosen = sorted(range(len(rows)), key=lambda i: (scores[i], i))[: s.selected]
    kernels.mean(out, rows[sorted(chosen)])


def geometric(out, rows, s, rounds=10):
    kernels.mean(out, rows)
    for _ in range(rounds):
        weights = [1 / max(sqrt(distance), 1e-6) for distance in squared_distances(rows, out)]
        weighted_sum(out, rows, weights, 0.0)
        kernels.scale(out, 1 / sum(weights))


def clip(out, rows, s):
    for _ in range(3):
        shares = [min(1.0, s.radius / max(sqrt(distance), 1e-30)) for distance in squared_distances(rows, out)]
        weights = [share / len(rows) for share in shares]
        weighted_sum(out, rows, weights, 1 - sum(weights))


AGGREGATES = {
    "mean": mean, "median": median, "trimmed": trim, "krum": krum, "geometric": geometric, "clipped": clip
}  # fmt: skip


def squared_distances(rows, point, skip=-1):
    """Return the squared distance of each row from the point, except row `skip`."""
    apart = kernels.empty_like(point)
    found = []
    for i, row in enumerate(rows):
        if i != skip:
            kernels.displacement(apart, row, point, 1.0)
            found.append(kernels.squared_norm(apart))
    return found


def weighted_sum(out, rows, weights, own):
    """Set `out` to `own` times `out` plus the sum of the rows, each times its weight."""
    for row, weight in zip(rows, weights, strict=True):
        kernels.mix(out, row, own, weight)
        own = 1.0


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    notes=notes,
    elements_sent=elements_sent,
    computes_together=True,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd", settings={"aggregate": "mean"}),
        Equivalence("the mean gives synchronous SGD", to="sync_sgd", settings={"aggregate": "mean"}, **FOUR),
        Equivalence(
            "the trimmed mean that trims nothing gives synchronous SGD",
            to="sync_sgd",
            settings={"aggregate": "trimmed", "tolerated": 0},
            **FOUR,
        ),
    ),
)
