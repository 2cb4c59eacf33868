"""Train a module that waits for no error.

A model is cut into modules. `module(comm, task, s)` runs on every rank of a simulated cluster, and rank k holds
module k of `comm.size`. The layers are done for you:

- `task.start()` returns the weights w of this module, a NumPy vector; `list(task.steps())` lists all mini-batches.
- `y = task.forward(w, x, batch)` takes a mini-batch through this module. x is what the previous module sent; the first
  module has the data, and takes `None`. The activations are kept for you until the backward pass.
- `dx, g = task.backward(w, dy, batch)` is the backward pass: dy is an error for y, an array of the same shape; g is the
  gradient of the weights, and dx the error for x. The last module has the loss, and takes `None`. On the first module
  dx is `None`.
- `a = task.head()` returns the weights of a small classifier that can be put on top of this module, and
  `dy, ga = task.classify(a, y, batch)` compares its prediction from y with the labels: dy is the gradient of its loss
  with respect to y, ga with respect to a. It learns by `a - s.learning_rate * ga`. Every rank knows the labels. The
  last module needs none.
- Call `task.report(w)` after each update, `w - s.learning_rate * g`: one update per mini-batch, in order.
- `comm.send(x, rank)` does not wait; `comm.recv(rank)` waits for the next message from that rank. A module communicates
  with its neighbours only.

The module below back-propagates. It is correct but slow: while a mini-batch travels to the last module and back, all
modules but one wait. Make it faster, with every module learning. It is graded on

- whether each module makes its update for every mini-batch;
- whether it learns from each: its error is the gradient of a loss, that of its classifier or that of the model, and the
  classifier learns, too;
- the accuracy: a model of eight layers, in four modules, tells three spirals apart. In this many steps a model in which
  only the last module learns does not get there; nor does back-propagation at this rate.

What follows is judged only when all modules learn:

- the time, compared with back-propagation's: no module should wait for anything from the module above;
- activations: every module should keep those of one mini-batch at a time;
- bytes: what has to be sent?

NumPy and the standard library may be imported. Every rank is its own process.
"""

TARGETS = {
    "time": 0.6,  # times the time of back-propagation
    "traffic": 0.55,  # times the bytes of back-propagation
    "activations": 1,  # mini-batches on a module
    "accuracy": 85,  # percent of held-out points, at least
}


def module(comm, task, s):
    """Train one module and return its final weights."""
    first, last = comm.rank == 0, comm.rank == comm.size - 1
    w = task.start()  # (d_k,)
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
