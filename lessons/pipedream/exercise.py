"""Write a stage that never waits for a pipeline to drain.

A model is cut into stages. `stage(comm, task, s)` runs on every rank of a simulated cluster, and rank r holds stage r
of `comm.size`. The layers are done for you:

- `task.start()` returns the weights of this stage, a NumPy vector; `list(task.steps())` lists all mini-batches.
- `y = task.forward(w, x, batch)` is the forward pass of a mini-batch through this stage with the weights w. x is what
  the previous stage sent. The first stage has the data and takes `None`; the last one computes the loss, and its y is
  `None`.
- `dx, g = task.backward(w, dy, batch)` is its backward pass. dy is what the next stage sent back; the last stage takes
  `None`, and on the first one dx is `None`. The activations of the forward pass are kept for you, *the weights are
  not*.
- Call `task.report(w)` after each update, `w - s.learning_rate * g`: one update per mini-batch, in order.
- `comm.send(x, rank)` does not wait; `comm.recv(rank)` waits for the next message from that rank. A stage communicates
  with its neighbours only.

The stage below is correct but slow: a mini-batch goes all the way and back before the next one starts, so one stage
works and all others wait. Keep all of them busy, as PipeDream does:

- no stage waits, except while the pipeline fills and while it drains;
- no gradient is staler than necessary: on stage s of S, at most S-1-s updates come between the forward pass of a
  mini-batch and its own update;
- each backward pass reads *the same weights* as its forward pass, although there are newer ones by then;
- nothing is held that will not be read again;
- and there may be fewer mini-batches than stages.

NumPy and the standard library may be imported.
"""

TARGETS = {
    "time": 1.02,  # times the time of the textbook's pipeline
    "staleness": 0,  # updates beyond S-1-s
    "traffic": 1.0,  # times the bytes of the textbook's pipeline
    "memory": 1.5,  # times the versions that pipeline stashes on all stages together, plus one per stage to work on
}


def stage(comm, task, s):
    """Train one stage and return its final weights."""
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
