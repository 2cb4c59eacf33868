"""A chain of modules: features travel up from rank to rank, and errors, or a method's substitute for them, down.

Module 0 checks the budget before each mini-batch; when it is spent, it sends None up instead of features. Only the last
module sees losses: when the target loss is reached, it says so by wrapping the error that it sends down in a tuple.
"""

from itertools import count

from kernels.arrays import extents


class ModuleChain:
    """Module `comm.rank` of `comm.size`, and its neighbours. With `labels`, features travel up together with their
    targets.
    """

    def __init__(self, comm, task, labels=False):
        self.comm, self.task, self.labels = comm, task, labels
        self.module = task.module(comm.rank, comm.size)
        self.steps, self.enough = task.steps(), False

    @property
    def modules_above(self) -> int:
        """The number of modules after this one."""
        return self.comm.size - 1 - self.comm.rank

    def batches(self, more=0):
        """Yield (t, x, target) for each mini-batch t as it arrives from below, until the budget is spent.

        Then yield (t, None, None) for `more` steps, in which errors are still in flight. Without labels, the last
        module looks its targets up, and those in between have none.
        """
        for t in count():
            self.task.at(t)
            x, target = self._arriving(t)
            if x is None:
                break
            yield t, x, target
        if self.modules_above:
            self.comm.send(None, self.comm.rank + 1)
        yield from ((t + extra, None, None) for extra in range(more))

    def _arriving(self, t):
        if self.module.first:
            over = self.enough or next(self.steps, None) is None
            return (None, None) if over else self.module.chunk(t)
        x = self.comm.recv(self.comm.rank - 1)
        if x is None or self.labels:
            return x or (None, None)
        return x, None if self.modules_above else self.module.chunk(t)[1]

    def send_up(self, y, target, t):
        """Send features up, and return None.

        The last module instead compares them with the target, and returns the error, dy.
        """
        if self.modules_above:
            return self.comm.send((y, target) if self.labels else y, self.comm.rank + 1)
        _, dy = self.module.loss(y, target, t)
        self.enough = self.enough or self.task.spent()
        return dy

    def send_down(self, dx):
        """Send the error `dx` down, if there is a module below."""
        if self.comm.rank:
            self.comm.send((dx,) if self.enough else dx, self.comm.rank - 1)

    def recv_error(self):
        """Return the error that the module above sent."""
        return self._unwrap(self.comm.recv(self.comm.rank + 1))

    def broadcast_error(self, e):
        """Return the last module's error e, on every rank."""
        return self._unwrap(self.comm.broadcast((e,) if self.enough else e, src=self.comm.size - 1))

    def holds(self, weights, g, saved):
        """Account for this rank's memory: all `weights` that it stores, a gradient, and saved activations."""
        self.task.holds("parameters", sum(extents(weights).values()))
        self.task.holds("gradients", g.nbytes)
        self.task.holds("activations", sum(self.task.workload.extents(saved).values()))

    def _unwrap(self, dy):
        if isinstance(dy, tuple):
            self.enough, (dy,) = True, dy
        return dy
