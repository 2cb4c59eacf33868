"""Streaming DiLoCo averages a fragment of the model at a time, while training continues.

The layers form K fragments. Every H / K inner steps it is the next fragment's turn, so each has an outer step every H,
as in DiLoCo, but no all-reduce is larger than a fragment. It starts tau steps before its result is needed:

    w_i <- w_i - lr adam(g_i(w_i))        tau steps before the turn ends        p <- mean of x - w_i        (its start)
    at the end of the turn                v <- mu v + p        x <- x - outer_rate (p + mu v)
                                          w_i <- alpha w_i + (1 - alpha) x

for the fragment's part of all vectors. What a worker has learned during the tau steps is kept to the share alpha, and
otherwise overwritten. At the end, all fragments that have moved have one more outer step.

Price: 2 (N-1) d elements per period by the ring, as DiLoCo, at a K-th of the peak; x, v, and one fragment in flight.
Staleness: none; models diverge for at most H + tau - 1 steps.
Source: Douillard et al., arXiv:2501.18512, and torchft's local_sgd.py, whose regression test it reproduces.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from algorithms.parts.fragments import Pattern, fragments
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.segments import side_by_side
from knobs import Refusal, multiples


class Settings(Knobs):
    learning_rate: float = knob(0.005, "step size of the inner steps", gt=0, le=1000)
    period: int = knob(
        20, "H, inner steps between two outer steps of a fragment", ge=1, le=10_000, unit="steps", postpones=True
    )
    fragments: int = knob(2, "K, parts of the model that are averaged in turn", ge=1, le=1000)
    pattern: Pattern = knob("strided", "layers of a fragment: consecutive ones, or every K-th (strided)")
    overlap: int = knob(1, "tau, inner steps while a fragment travels", ge=0, le=9999, unit="steps")
    own_share: float = knob(
        0.5, "alpha, share of its own fragment that a worker keeps at an outer step; 0 overwrites it", ge=0, le=1
    )
    outer_rate: float = knob(0.7, "step size of the outer update", gt=0, le=100)
    outer_momentum: float = knob(
        0.9, "mu of the outer steps, the fraction of the last one carried into the next", ge=0, lt=1
    )
    update: Rule = knob("adam", "inner optimiser")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)

    @property
    def turn(self):
        """The number of inner steps between outer steps of one fragment and the next."""
        return self.period // self.fragments


def check(workers, batch, workload, s):
    if s.period % s.fragments:
        near = [period for period in multiples(s.fragments, s.period) if period]
        raise Refusal(
            f"{s.fragments} fragments cannot take turns of equal length in a period of {s.period} steps; use a period "
            f"of {' or '.join(map(str, near))}.",
            near,
        )
    if s.overlap >= s.turn:
        raise ValueError(
            f"a fragment cannot travel for {s.overlap} steps, since the next one starts after {s.turn}, the period "
            f"divided by the number of fragments; use an overlap of at most {s.turn - 1}, or a longer period."
        )
    most = workload.depth if workload.depth > 1 else workload.parameters
    if s.fragments > most:
        of = "layers" if workload.depth > 1 else "parameters"
        raise ValueError(f"{s.fragments} fragments are too many for a model of {most} {of}; use at most {most}.")


def elements_sent(shape, s):
    if s.fragments > 1 and shape.workers > 1:
        return None  # it depends on the layers: at the end, only fragments that have moved are sent
    return 2 * (shape.workers - 1) * shape.parameters * -(-shape.steps // s.period)


def notes(e):
    if e.knobs.fragments == 1 and e.knobs.overlap == 0 and e.knobs.own_share == 0:
        yield "One fragment that does not overlap with training and keeps nothing is diloco."


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,)
    x, v = kernels.keep(kernels.copy(w)), kernels.state_like(w)
    inner = optimizer(s.update, w, s.momentum)
    parts = fragments(task.layers, s.fragments, s.pattern)
    within = [side_by_side(part) for part in parts]  # the slices of a fragment in a vector of the fragment alone
    flight = kernels.keep(kernels.empty(max(places[-1].stop for places in within), w))  # room for the one that travels

    def start(number):
        p = flight[: within[number][-1].stop]
        for here, place in zip(within[number], parts[number], strict=True):
            kernels.displacement(p[here], x[place], w[place], 1.0)
        return comm.all_reduce(p, op="mean", async_op=True)

    def finish(number, handle):
        p = handle.wait()
        for here, place in zip(within[number], parts[number], strict=True):
            kernels.nesterov(x[place], v[place], p[here], s.outer_rate, s.outer_momentum)
            kernels.mix(w[place], x[place], s.own_share, 1 - s.own_share)
        if comm.rank == 0:
            task.report(x)

    taken, moved, handle = 0, [0] * len(parts), None  # moved: inner steps since a fragment's last outer step
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        inner.step(w, g, s.learning_rate)
        now, taken = taken // s.turn % s.fragments, taken + 1
        moved = [steps + 1 for steps in moved]
        left = -taken % s.turn  # steps until the turn ends
        if left == s.overlap:
            handle = start(now)
        if left == 0:
            finish(now, handle)
            moved[now], handle = 0, None
    if handle:
        finish(now, handle)
        moved[now] = 0
    for number, steps in enumerate(moved):
        if steps:
            finish(number, start(number))
    return x


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    notes=notes,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence(
            "in one fragment that does not travel while training continues it is DiLoCo",
            to="diloco",
            workers=4,
            settings={"fragments": 1, "overlap": 0, "own_share": 0, "period": 4},
            to_settings={"period": 4},
        ),
    ),
)
