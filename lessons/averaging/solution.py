"""A perfect solution to the exercise on averaging: block momentum in Nesterov's form."""

import numpy as np


def worker(comm, task, s):
    keep = 1 - 1 / comm.size
    w = task.start()
    start, model, step = w.copy(), w.copy(), np.zeros_like(w)

    def meet():
        w[:] -= start
        comm.all_reduce(w, op="mean")
        step[:] *= keep
        step[:] += w
        model[:] += step
        start[:] = model
        start[:] += keep * step
        w[:] = start
        if comm.rank == 0:
            task.report(model)

    alone = 0
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        g *= s.learning_rate
        w -= g
        alone += 1
        if alone == s.period:
            meet()
            alone = 0
    if alone:
        meet()
    return model
