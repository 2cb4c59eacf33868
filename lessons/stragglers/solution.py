"""A perfect solution to the exercise on stragglers."""


def server(comm, task, s):
    w = task.start()
    workers = range(1, comm.size)
    began, gone, arrived = dict.fromkeys(workers, 0), set(), []
    for step in task.steps():
        for rank in arrived:
            comm.send(w, rank)
            began[rank] = step
        arrived, total = [], None
        needed = len(workers) - s.backups
        while len(arrived) < needed:
            rank, g = comm.recv_any()
            if g is None:
                gone.add(rank)
            elif began[rank] == step:
                arrived.append(rank)
                if total is None:
                    total = g
                else:
                    total += g
            else:
                comm.send(w, rank)
                began[rank] = step
        total *= -s.learning_rate / needed
        w = w + total
        task.report(w)
    for rank in arrived:
        comm.send(None, rank)
    late = set(workers) - set(arrived) - gone
    while late:
        rank, g = comm.recv_any()
        late.discard(rank)
        if g is not None:
            comm.send(None, rank)
    return w
