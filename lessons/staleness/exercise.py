"""Write a server that lets no worker run too far ahead: stale-synchronous parallel.

`server(comm, task, s)` runs on rank 0 of a simulated cluster; ranks 1, 2, ... are workers. Each worker computes a
gradient at the parameters it holds, sends it to the server, and waits for an answer: new parameters, at which it
computes its next gradient. When it has done all its steps it sends `None`. All begin with `task.start()`.

The server below keeps all workers in step, so all wait for the slowest. Make it wait less:

- every gradient is applied as it arrives: `w <- w - s.learning_rate / workers * gradient`, then `task.report(w)`;
- a worker's clock is the number of gradients that it has sent. It is answered as soon as its clock is at most
  `s.bound` ahead of the slowest worker's clock, neither earlier nor later, with the newest `w`;
- a worker that has sent `None` no longer has a clock. It has finished; or it has crashed, at any time, and then
  `comm.recv_any()` returns `(its rank, None)`, once. In `workers`, above, it still counts;
- when no worker is left, return `w`.

What you have: `comm.size`, `comm.send(x, rank)`, `comm.recv_any()`, which returns the next message as `(rank, x)`;
`task.start()` and `task.report(w)`; `s.learning_rate` and `s.bound`. Parameters and gradients are NumPy vectors. NumPy
and the standard library may be imported.
"""

import numpy as np

TARGETS = {
    "time": 1.05,  # times what the textbook's server takes with the same workers
    "traffic": 1.05,  # times the bytes that server sends and receives
    "memory": 8,  # vectors as long as w that may be held at once, whatever the number of workers
}


def server(comm, task, s):
    """Train and return the final parameters."""
    w = task.start()  # (d,)
    workers = comm.size - 1
    waiting, gradients, left = [], [], workers
    while left:
        rank, g = comm.recv_any()
        if g is None:
            left -= 1
            continue
        waiting.append(rank)
        gradients.append(g)
        if len(waiting) == workers:
            w = w - s.learning_rate * np.mean(gradients, axis=0)
            task.report(w)
            for rank in waiting:
                comm.send(w, rank)
            waiting, gradients = [], []
    return w
