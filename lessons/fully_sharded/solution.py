"""A perfect solution to the exercise on full sharding. Layers are gathered ahead in both passes."""

import numpy as np


def worker(comm, task, s):
    w = task.start()
    g = np.empty_like(w)
    places = own_places(comm, s)
    forwards = [*enumerate(places)]
    for _ in task.steps(together=True):
        for layer, whole in gather_ahead(comm, w, forwards, s.prefetch):
            task.forward(layer, whole)
        for layer, whole in gather_ahead(comm, w, forwards[::-1], s.prefetch):
            gradient = task.backward(layer, whole)
            g[places[layer]] = comm.reduce_scatter(gradient, op="mean")
        w -= s.learning_rate * g
        task.report(w)
    return w


def own_places(comm, s):
    ends = np.cumsum([len(np.array_split(range(n), comm.size)[comm.rank]) for n in s.layers])
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def gather_ahead(comm, w, passes, ahead):
    begun = []
    for number, (layer, here) in enumerate(passes):
        while len(begun) <= ahead and number + len(begun) < len(passes):
            begun.append(begin(comm, w[passes[number + len(begun)][1]]))
        yield layer, finish(comm, w[here], begun.pop(0))


def begin(comm, piece):
    others = [(comm.rank + step) % comm.size for step in range(1, comm.size)]
    for rank in others:
        comm.isend(piece, rank)
    return {rank: comm.irecv(rank) for rank in others}


def finish(comm, piece, coming):
    pieces = {rank: handle.wait() for rank, handle in coming.items()} | {comm.rank: piece}
    return np.concatenate([pieces[rank] for rank in range(comm.size)])
