"""Write a stage that never waits for a pipeline to drain.

A model is cut in stages. `stage(comm, task, s)` runs on every rank of a simulated cluster, and rank r holds stage r
of `comm.size`. What belongs to the layers is done for you:

- `task.start()` gives the weights of this stage, a NumPy vector; `list(task.steps())` the numbers of all mini-batches.
- `y = task.forward(w, x, batch)` takes a mini-batch through this stage with the weights w. x is what the stage before
  sent. The first stage has the data and takes `None`; the last one computes the loss, and there y is `None`.
- `dx, g = task.backward(w, dy, batch)` takes it back. dy is what the stage after sent back; the last stage takes
  `None`, and on the first dx is `None`. What the forward left behind is kept for you, but *not the weights*.
- `task.report(w)` is to be called after each update, `w - s.learning_rate * g`: one for every mini-batch, in order.
- `comm.send(x, rank)` does not wait; `comm.recv(rank)` waits for the next message from there. A stage talks to its
  neighbours only.

The stage below is right, and slow: a mini-batch goes all the way and back before the next one starts, so one stage
works and all others wait. Keep all of them busy, as PipeDream does:

- no stage waits, but while the pipeline fills and while it empties;
- no gradient is later than that takes: at most S-1-s updates lie between the forward of a mini-batch on stage s of S
  and the update it brings;
- each backward reads *the same weights* as its forward, though there are newer ones by then;
- nothing is held that nobody will read again;
- and there may be fewer mini-batches than stages.

NumPy and the standard library may be imported.
"""

TARGETS = {
    "time": 1.02,  # of the time that the textbook's pipeline takes
    "staleness": 0,  # updates beyond S-1-s
    "traffic": 1.0,  # of the bytes it sends
    "memory": 1.5,  # of the versions it stashes, all stages together, and one more for what is being worked on
}


def stage(comm, task, s):
    """Train one stage, and give back its final weights."""
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    w = task.start()  # (d_s,)
    for batch in task.steps():
        x = None if first else comm.recv(comm.rank - 1)
        y = task.forward(w, x, batch)
        if not last:
            comm.send(y, comm.rank + 1)
        dy = None if last else comm.recv(comm.rank + 1)
        dx, g = task.backward(w, dy, batch)
        if not first:
            comm.send(dx, comm.rank - 1)
        w = w - s.learning_rate * g
        task.report(w)
    return w
