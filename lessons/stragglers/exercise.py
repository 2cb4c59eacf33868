"""Write a server that does not wait for stragglers.

`server(comm, task, s)` runs on rank 0 of a simulated cluster; ranks 1, 2, ... are workers. Each worker computes a
gradient at the parameters it holds, sends it to the server, and waits for an answer: new parameters, at which it
computes its next gradient, or `None`, which ends it. All begin with `task.start()`.

The server below is correct but slow: in every step it waits for all workers. Make it wait for all but `s.backups`:

- a step uses the first gradients that arrive, as many as there are workers less `s.backups`, all of them computed at
  the newest parameters;
- a late gradient, of older parameters, is dropped, and its worker gets the newest ones at once;
- no worker is left waiting when training is over;
- a worker may crash. `comm.recv_any()` then returns `(its rank, None)`, once. As long as enough are left, continue.

What you have: `comm.size`, `comm.send(x, rank)`, `comm.recv_any()`, which returns the next message as `(rank, x)`;
`task.start()`, `task.steps()`, and `task.report(w)`, called once after each update; `s.learning_rate`,
`s.backups`. Parameters and gradients are NumPy vectors. NumPy and the standard library may be imported.
"""

import numpy as np

TARGETS = {
    "time": 1.05,  # times what the textbook's server takes with the same stragglers
    "traffic": 1.05,  # times the bytes that server sends and receives
    "memory": 8,  # vectors as long as w that may be held at once, whatever the number of workers
}


def server(comm, task, s):
    """Train and return the final parameters."""
    w = task.start()  # (d,)
    arrived = []
    for _ in task.steps():
        for rank in arrived:
            comm.send(w, rank)
        arrived, gradients = [], []
        while len(arrived) < comm.size - 1:
            rank, g = comm.recv_any()
            arrived.append(rank)
            gradients.append(g)
        w = w - s.learning_rate * np.mean(gradients, axis=0)
        task.report(w)
    for rank in arrived:
        comm.send(None, rank)
    return w
