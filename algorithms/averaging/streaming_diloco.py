"""Streaming DiLoCo averages a fragment of the model at a time, while training continues.

The layers form K fragments. Every H / K inner steps it is the next fragment's turn, so each has an outer step every H,
as in DiLoCo, but no all-reduce is larger than a fragment. It starts tau steps before its result is needed:

    w_i <- w_i - lr adam(g_i(w_i))        tau steps before the turn ends        p <- mean of x - w_i        (its start)
    at the end of the turn                v <- mu v + p        x <- x - outer_rate (p + mu v)
                                          w_i <- alpha w_i + (1 - alpha) x

for the fragment's part of all vectors. A worker keeps the share alpha of what it has learned during the tau steps; the
rest is overwritten. At the end, all fragments that have moved take one more outer step.

Price: 2 (N-1) d elements per period by the ring, as DiLoCo, at a K-th of the peak; x, v, and one fragment in flight.
Staleness: none; models diverge for at most H + tau - 1 steps.
Source: Douillard et al., arXiv:2501.18512, and torchft's local_sgd.py, whose regression test it reproduces.
"""

import kernels
from algorithms.algorithm import Algorithm, Equivalence
from algorithms.parts.fragments import FragmentSettings as Settings
from algorithms.parts.fragments import check_turns, fragments
from algorithms.parts.optimizers import optimizer
from algorithms.parts.segments import side_by_side


def check(workers, batch, workload, s):
    check_turns(workload, s)


def elements_sent(shape, s):
    if s.fragments > 1 and shape.workers > 1:
        return None  # it depends on the layers: at the end, only fragments that have moved are sent
    return 2 * (shape.workers - 1) * shape.parameters * -(-shape.steps // s.period)


def notes(e):
    if e.knobs.fragments == 1 and e.knobs.overlap == 0 and e.knobs.own_share == 0:
        yield "With one fragment, overlap 0 and own_share 0, this is diloco; use more fragments or a longer overlap."


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
            "with one fragment, averaged at once and overwritten by the result, it is DiLoCo",
            to="diloco",
            workers=4,
            settings={"fragments": 1, "overlap": 0, "own_share": 0, "period": 4},
            to_settings={"period": 4},
        ),
    ),
)
