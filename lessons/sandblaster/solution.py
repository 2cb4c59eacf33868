"""A perfect solution to the exercise on Sandblaster."""

import numpy as np


def coordinator(comm, task, s):
    w = task.start()
    free, busy, known = set(range(1, comm.size)), {}, {}
    for step in task.steps():
        pending, done, total = list(range(s.portions)), set(), np.zeros_like(w)
        while len(done) < s.portions:
            for rank in sorted(free):
                portion = choose(step, pending, done, busy)
                if portion is not None:
                    comm.send(portion if known.get(rank) == step else (w, portion), rank)
                    known[rank], busy[rank] = step, (step, portion)
                    free.discard(rank)
            rank, g = comm.recv_any()
            began, portion = busy.pop(rank, (None, None))
            if g is None:
                free.discard(rank)
                if began == step and portion not in done and (step, portion) not in busy.values():
                    pending.append(portion)
                continue
            free.add(rank)
            if began == step and portion not in done:
                done.add(portion)
                total += g
        w = w - s.learning_rate * total
        task.report(w)
    for rank in (*free, *busy):
        comm.send(None, rank)
    return w


def choose(step, pending, done, busy):
    if pending:
        return pending.pop()
    late = [portion for began, portion in busy.values() if began == step and portion not in done]
    return min(late, key=late.count, default=None)
