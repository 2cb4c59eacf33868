"""A perfect solution to the exercise on model parallelism: columns of the first matrix, rows of the second."""

import numpy as np


def worker(comm, task, s):
    first, last = (s.units * rank // comm.size for rank in (comm.rank, comm.rank + 1))
    columns = np.arange(s.width * s.units).reshape(s.width, s.units)[:, first:last]
    rows = s.width * s.units + np.arange(s.width * s.units).reshape(s.units, s.width)[first:last]
    w = task.start(np.concatenate([columns.ravel(), rows.ravel()]))
    u = w[: w.size // 2].reshape(s.width, last - first)
    v = w[w.size // 2 :].reshape(last - first, s.width)
    for _ in task.steps(together=True):
        x = task.forward(w)
        y, z = upward(comm, x, u, v)
        dz = task.classify(z)
        dy, dx = downward(comm, dz, y, u, v)
        task.backward(w, dx)
        g = np.concatenate([(x.T @ dy).ravel(), (y.T @ dz).ravel()])
        w -= s.learning_rate * g
        task.report(w)
    return w


def upward(comm, x, u, v):
    y = np.maximum(x @ u, 0)
    z = comm.all_reduce((y @ v).ravel()).reshape(x.shape)
    return y, z


def downward(comm, dz, y, u, v):
    dy = dz @ v.T * (y > 0)
    dx = comm.all_reduce((dy @ u.T).ravel()).reshape(dz.shape)
    return dy, dx
