"""A perfect solution to the exercise on PipeDream."""


def stage(comm, task, s):
    before, after = comm.rank - 1, comm.rank + 1
    first, last = comm.rank == 0, after == comm.size
    batches = len(list(task.steps()))
    ahead = comm.size - 1 - comm.rank  # forwards that go before the first backward
    w, stash = task.start(), {}

    def forward(batch):
        x = None if first else comm.recv(before)
        y = task.forward(w, x, batch)
        stash[batch] = w
        if not last:
            comm.send(y, after)

    for batch in range(min(ahead, batches)):
        forward(batch)
    for batch in range(batches):
        if batch + ahead < batches:
            forward(batch + ahead)
        dy = None if last else comm.recv(after)
        dx, g = task.backward(stash.pop(batch), dy, batch)
        if not first:
            comm.send(dx, before)
        w = w - s.learning_rate * g
        task.report(w)
    return w
