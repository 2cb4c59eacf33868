"""A perfect solution to the exercise on gossip: push-sum with changing partners, in which nobody waits."""


def worker(comm, task, s):
    x, p = task.start(), 1.0
    others = [rank % comm.size for rank in range(comm.rank + 1, comm.rank + comm.size)]
    for step in task.steps():
        _, g = task.gradient(x / p)
        x = x - s.learning_rate * g
        x, p = collect(comm, x, p, others)
        x, p = x / 2, p / 2
        comm.send((x, p), partner(others, step))
        task.report(x / p)
    return x / p


def partner(others, step):
    distances = [1 << k for k in range(len(others).bit_length())]
    return others[distances[step % len(distances)] - 1]


def collect(comm, x, p, others):
    for _ in comm.poll():
        rank, message = comm.recv_any()
        if message is None:
            others.remove(rank)
        else:
            x, p = x + message[0], p + message[1]
    return x, p
