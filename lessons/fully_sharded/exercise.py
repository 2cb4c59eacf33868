"""Write the prefetch: gather the next layers while this one computes.

`worker(comm, task, s)` runs on every rank of a simulated cluster. Each rank has a mini-batch of its own, and holds one
piece of each layer: that of layer l is number `comm.rank` of `np.array_split(layer, comm.size)`. Layer l has
`s.layers[l]` numbers.

The worker below is fully sharded already: it gathers a layer, computes with it, and frees it, in the forward pass and
again in the backward pass. It is correct, but while it gathers it does not compute, and while it computes it sends
nothing. Hide the gathers:

- Begin to gather a layer up to `s.prefetch` layers before it is needed: while layer l computes, the next `s.prefetch`
  layers may be on their way, and no more.
- Do so in both passes. The backward pass needs the layers from the last to the first.
- Free a layer as soon as its pass is done. The backward pass gathers it again.
- `s.prefetch` may be 0, or larger than the number of layers, and there may be one rank.

What you have:

- `comm.rank`, `comm.size`; `comm.isend(a, rank)`, which begins to send the vector a, and `comm.irecv(rank)`, which
  begins to receive the next vector from that rank. Both return at once. `.wait()` of what `irecv` returns waits for
  the vector and returns it. Vectors from one rank arrive in the order in which it sent them. `comm.send(a, rank)`,
  `comm.recv(rank)`, `comm.all_gather(a)`, the list of the vectors of all ranks, and
  `comm.reduce_scatter(a, op="mean")`, this rank's piece of the mean of the vectors of all ranks, which waits for them.
- `w = task.start()`, this rank's pieces of all layers, one after the other; `task.steps(together=True)`. In each step:
  `task.forward(l, whole)` for each layer from the first to the last, with all of its numbers; then
  `g = task.backward(l, whole)` for each layer from the last to the first, which returns the gradient of all of its
  numbers for this rank's mini-batch; then `task.report(w)` with the new w.
- `s.layers`, `s.prefetch`, `s.learning_rate`.

A pass through a layer takes time, and so does every message. What you compute yourself is free. Numbers are float32.
Every rank is a process of its own. NumPy and the standard library may be imported.
"""

import numpy as np

TARGETS = {
    "forward": 1.03,  # times the forward pass of the textbook's worker
    "backward": 1.03,  # times its backward pass
    "memory": 1.8,  # times two pieces of every layer, the layers that may be on their way, and two whole layers
    "traffic": 1.01,  # times the bytes of the textbook's worker
}


def worker(comm, task, s):
    """Train this rank's pieces of all layers and return them."""
    w = task.start()  # (d / N,)
    g = np.empty_like(w)
    places = own_places(comm, s)
    for _ in task.steps(together=True):
        for layer, here in enumerate(places):
            task.forward(layer, gather(comm, w[here]))
        for layer, here in reversed([*enumerate(places)]):
            gradient = task.backward(layer, gather(comm, w[here]))
            g[here] = comm.reduce_scatter(gradient, op="mean")
        w -= s.learning_rate * g
        task.report(w)
    return w


def own_places(comm, s):
    """Return the slice of w that is this rank's piece, for each layer."""
    ends = np.cumsum([len(np.array_split(range(n), comm.size)[comm.rank]) for n in s.layers])
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def gather(comm, piece):
    return np.concatenate(comm.all_gather(piece))
