"""A perfect solution to the exercise on compression. It sends the largest of the numbers that it owes, or all of
them.
"""

import numpy as np


def worker(comm, task, s):
    w = task.start()
    owed = np.zeros_like(w)
    k = max(1, round(s.density * len(w)))
    few = k * comm.size < len(w)
    for _ in task.steps(together=True):
        _, g = task.gradient(w)
        owed += g
        mean = largest(comm, owed, k) if few else everything(comm, owed)
        w -= s.learning_rate * mean
        if comm.rank == 0:
            task.report(w)
    return w


def largest(comm, owed, k):
    index = np.argpartition(np.abs(owed), -k)[-k:].astype(np.int32)
    messages = comm.all_gather((index, owed[index]))
    owed[index] = 0
    mean = np.zeros_like(owed)
    for places, values in messages:
        mean[places] += values / comm.size
    return mean


def everything(comm, owed):
    mean = comm.all_reduce(owed.copy(), op="mean")
    owed[:] = 0
    return mean
