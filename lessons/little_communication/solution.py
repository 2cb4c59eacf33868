"""A perfect solution to the exercise on training with little communication: streaming DiLoCo."""

import numpy as np


def worker(comm, task, s):
    w = task.start()
    x, v = w.copy(), np.zeros_like(w)
    turn = s.period // s.fragments

    def part(k):
        return slice(k * len(w) // s.fragments, (k + 1) * len(w) // s.fragments)

    def start(k):
        return comm.all_reduce(x[part(k)] - w[part(k)], op="mean", async_op=True)

    def finish(k, handle):
        here = part(k)
        p = handle.wait()
        v[here] = s.outer_momentum * v[here] + p
        x[here] -= s.outer_rate * (p + s.outer_momentum * v[here])
        w[here] = s.own_share * w[here] + (1 - s.own_share) * x[here]
        if comm.rank == 0:
            task.report(x)

    handle, moved = None, [0] * s.fragments
    for taken, _ in enumerate(task.steps(together=True), 1):
        _, g = task.gradient(w)
        w -= s.learning_rate * g
        moved = [steps + 1 for steps in moved]
        now, left = (taken - 1) // turn % s.fragments, -taken % turn
        if left == s.overlap:
            handle = start(now)
        if left == 0:
            finish(now, handle)
            moved[now], handle = 0, None
    if handle:
        finish(now, handle)
        moved[now] = 0
    for k, steps in enumerate(moved):
        if steps:
            finish(k, start(k))
    return x
