"""A row of modules: features go up from rank to rank, and whatever stands for an error comes down.

Module 0 asks the budget before each mini-batch, and when it is spent sends None up instead of features. The target loss
is seen on the last module; there, an error that comes down wrapped in a tuple says that it is reached.
"""

from itertools import count

from kernels.arrays import extents


class Row:
    """Module `comm.rank` of `comm.size`, and its neighbours. With `labels` the targets go up with the features."""

    def __init__(self, comm, task, labels=False):
        self.comm, self.task, self.labels = comm, task, labels
        self.module = task.module(comm.rank, comm.size)
        self.steps, self.enough = task.steps(), False

    @property
    def above(self) -> int:
        """How many modules come after this one."""
        return self.comm.size - 1 - self.comm.rank

    def batches(self, more=0):
        """Yield (t, x, target): mini-batch t as it arrives from below, until the budget is spent.

        Then (t, None, None) for `more` steps, in which errors are still on their way. Where labels do not go up, the
        last module looks its targets up, and the others have none.
        """
        for t in count():
            self.task.at(t)
            x, target = self._arriving(t)
            if x is None:
                break
            yield t, x, target
        if self.above:
            self.comm.send(None, self.comm.rank + 1)
        yield from ((t + extra, None, None) for extra in range(more))

    def _arriving(self, t):
        if self.module.first:
            over = self.enough or next(self.steps, None) is None
            return (None, None) if over else self.module.chunk(t)
        x = self.comm.recv(self.comm.rank - 1)
        if x is None or self.labels:
            return x or (None, None)
        return x, None if self.above else self.module.chunk(t)[1]

    def onward(self, y, target, t):
        """Hand features up; the last module compares them with the target instead, and has its error, dy."""
        if self.above:
            return self.comm.send((y, target) if self.labels else y, self.comm.rank + 1)
        _, dy = self.module.loss(y, target, t)
        self.enough = self.enough or self.task.spent()
        return dy

    def back(self, dx):
        """Hand `dx` down."""
        if self.comm.rank:
            self.comm.send((dx,) if self.enough else dx, self.comm.rank - 1)

    def error(self):
        """What the module above has handed down."""
        return self._heard(self.comm.recv(self.comm.rank + 1))

    def everywhere(self, e):
        """The error of the last module, on all."""
        return self._heard(self.comm.broadcast((e,) if self.enough else e, src=self.comm.size - 1))

    def holds(self, weights, g, saved):
        """Say what this rank holds: `weights` of its module and others, a gradient, and what forward passes saved."""
        self.task.holds("parameters", sum(extents(weights).values()))
        self.task.holds("gradients", g.nbytes)
        self.task.holds("activations", sum(extents(saved).values()))

    def _heard(self, dy):
        if isinstance(dy, tuple):
            self.enough, (dy,) = True, dy
        return dy
