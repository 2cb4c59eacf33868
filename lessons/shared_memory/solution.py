"""A perfect solution to the exercise on shared memory: it gathers samples, and reads again just before writing."""

import numpy as np

GATHER = 32  # samples


def thread(comm, task, s):
    shared = comm.shared(task.start())
    gathered = np.zeros(len(task.start()))  # (d,)
    for step in task.steps():
        if step % GATHER == 0:
            w = shared.read()
        _, g = task.gradient(w)
        gathered += g
        if step % GATHER == GATHER - 1:
            add(shared, -s.learning_rate * gathered)
            gathered[:] = 0
    add(shared, -s.learning_rate * gathered)


def add(shared, change):
    v = np.flatnonzero(change)
    if len(v):
        shared.write(shared.read(v) + change[v], v)
