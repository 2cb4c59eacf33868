"""Project Adam sends the factors of a gradient where they are smaller than the gradient itself.

Rank 0 is the server, the others are workers, as in asynchronous SGD. The gradient of a dense layer with m inputs and
n outputs on k samples is a product, so its factors can be sent instead, and the server multiplies:

    k (m + n) elements, the inputs X and the errors E        if that is less than the m n + n of weights and biases
    w <- w - lr (X' E, and the sum of E for the biases)

Gradients of other layers are sent as they are. When a fraction `finish` of the workers has completed its steps, the
others are stopped: the slowest machines are not worth waiting for.

Price: at most d elements to the server in every step of a worker, and d back. Staleness: N-1 updates on average.
Source: Chilimbi, Suzue, Apacible & Kalyanaraman, OSDI 2014, on communication with the parameter server
and on slow machines.
"""

import kernels
from algorithms.algorithm import Equivalence, Knobs, knob, parameter_server

SERVER = 0


class Settings(Knobs):
    learning_rate: float = knob(0.05, "step size of each gradient", gt=0, le=1000)
    factors: bool = knob(True, "send inputs and errors of dense layers where they are smaller than the gradient")
    finish: float = knob(1.0, "stop all workers once this fraction of them has finished", gt=0, le=1)


def notes(e):
    if e.knobs.finish == 1:
        sent = (
            ""
            if e.knobs.factors and "model" in e.data
            else "; here the bytes are equal, too, since no factors are sent"
        )
        yield f"With finish 1 it waits for all workers and differs from asgd only in the bytes sent{sent}."


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank == SERVER else replica(comm, task, s)


def replica(comm, task, s):
    w = task.start()  # (d,)
    for _ in task.steps():
        layers = task.layerwise()
        layers.forward(w)
        push = []  # of each layer, the last first
        for layer in reversed(layers):
            g, factors = layer.backward_factors(w[layer.place])
            less = s.factors and factors is not None and sum(map(len_of, factors)) < len(g)
            push.append(factors if less else g)
        task.holds("gradients", sum(x.nbytes for x in push if not isinstance(x, tuple)))  # factors are activations
        comm.send(tuple(push), SERVER)
        answer = comm.recv(SERVER)
        if answer is None:
            break  # enough others have finished
        w = answer
    comm.send(None, SERVER)  # no more pushes
    return w


def server(comm, task, s):
    w = task.start()
    version, read = 0, [0] * comm.size  # updates so far; the version that each worker has read
    training = set(range(1, comm.size))
    workers = len(training)
    while training:
        sender, push = comm.recv_any()
        if push is None:
            training.discard(sender)
            continue
        task.applied(version - read[sender])
        kernels.sgd(w, gradient(push, w), s.learning_rate)
        version += 1
        enough = (workers - len(training)) / workers >= s.finish
        comm.send(None if enough else w, sender)
        read[sender] = version
        task.report(w)
    return w


def gradient(push, w):
    """Return the gradient, (d,), given what was pushed for each layer, the last layer first."""
    g = kernels.empty_like(w)
    stop = len(g)
    for layer in push:
        if isinstance(layer, tuple):
            inputs, errors = layer
            rows, columns = inputs.shape[1], errors.shape[1]
            biases = stop - columns
            start = biases - rows * columns
            kernels.dense_backward_weights(g[start:biases].reshape(rows, columns), g[biases:stop], inputs, errors)
        else:
            start = stop - len(layer)
            g[start:stop] = layer
        stop = start
    return g


def len_of(x):
    """Return the number of elements of the matrix x."""
    return x.shape[0] * x.shape[1]


ALGORITHM = parameter_server(
    worker,
    Settings,
    notes=notes,
    equivalences=(
        Equivalence("one worker gives SGD", to="sgd"),
        Equivalence("a model without dense layers gives asynchronous SGD", to="asgd", workers=3),
    ),
)
