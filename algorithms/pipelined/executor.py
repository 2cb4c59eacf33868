"""The executor: one rank of any pipeline carries out its list of ops.

Waiting is left to the messages: a forward needs the activations of the stage before, a backward the gradient of the
stage after, and each arrives when it has been computed. So the list of ops is all there is to a schedule.

Weights are versions: update number v makes version v. A forward reads the newest version, or one `lag` versions
older; its backward reads the same again, or with `stash` off whatever is newest then.

The end: stage 0 asks the budget before each mini-batch, and when it is spent sends None down instead of activations.
Each stage then brings home what it has in flight. The target loss is seen on the last stage; a gradient that travels
up wrapped in a tuple says that it is reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

import kernels
from algorithms.pipelined.schedule import Op


class Executor:
    """Stage `comm.rank` of `comm.size`, with `chunks` micro-batches per mini-batch and update."""

    def __init__(self, comm, task, chunks: int = 1, lag: int = 0, stash: bool = True, recompute: bool = False):
        self.comm, self.task = comm, task
        self.chunks, self.stash, self.recompute = chunks, stash, recompute
        self.stage = task.stage(comm.rank, comm.size)
        self.steps = task.steps()
        self.history = deque([(0, self.stage.start())], maxlen=lag + 1)  # (version, w), oldest first
        self.flying: dict[int, tuple] = {}  # micro-batch -> (version, w, what backward needs, dy on the last stage)
        self.gradients: dict[int, tuple] = {}  # micro-batch -> (version, g), until its mini-batch is complete
        self.ended = self.enough = False

    @property
    def w(self):
        """The newest weights of this stage, (d_s,)."""
        return self.history[-1][1]

    def run(self, ops: Iterable[Op], update: Callable):
        """Carry out `ops`, an endless stream, until the budget is spent; `update(w, g)` changes w in place."""
        for kind, _, chunk in ops:
            if kind == "U":
                if chunk * self.chunks in self.gradients:
                    self.apply(chunk, update)
            elif kind == "F":
                if not self.ended:
                    self.forward(chunk)
            elif chunk in self.flying:
                self.again(chunk) if kind == "R" else self.backward(chunk)
            if self.ended and not self.flying and not self.gradients:
                break
        return self.w

    def forward(self, chunk: int) -> None:
        batch, part = divmod(chunk, self.chunks)
        x = self.inputs(batch, part)  # (samples of a micro-batch, ...), None at the end
        if x is None:
            self.ended = True
        version, w = self.history[0]
        dy = None
        if x is not None:
            self.task.at(batch)
            y, saved = self.stage.forward(w, x, self.label("F", chunk))
            if self.stage.last:
                _, target = self.stage.chunk(batch, part, self.chunks)
                _, dy = self.stage.loss(y, target, batch, self.chunks)
                self.enough = self.enough or self.task.spent()
            self.flying[chunk] = version, w, x if self.recompute else saved, dy
        if not self.stage.last:
            self.comm.send(None if x is None else y, self.comm.rank + 1)

    def inputs(self, batch: int, part: int):
        if not self.stage.first:
            return self.comm.recv(self.comm.rank - 1)
        if part == 0 and (self.enough or next(self.steps, None) is None):
            return None
        return self.stage.chunk(batch, part, self.chunks)[0]

    def again(self, chunk: int) -> None:
        version, w, x, dy = self.flying[chunk]
        _, saved = self.stage.forward(w, x, self.label("R", chunk))
        self.flying[chunk] = version, w, saved, dy

    def backward(self, chunk: int) -> None:
        version, w, saved, dy = self.flying.pop(chunk)
        if not self.stage.last:
            dy = self.comm.recv(self.comm.rank + 1)
            if isinstance(dy, tuple):
                self.enough, (dy,) = True, dy
        self.task.at(chunk // self.chunks)
        dx, g = self.stage.backward(w if self.stash else self.w, saved, dy, self.label("B", chunk))
        if not self.stage.first:
            self.comm.send((dx,) if self.enough else dx, self.comm.rank - 1)
        self.gradients[chunk] = version, g

    def apply(self, batch: int, update: Callable) -> None:
        parts = [self.gradients.pop(batch * self.chunks + part) for part in range(self.chunks)]
        (read, g), newest = parts[0], self.history[-1][0]
        for _, more in parts[1:]:  # in the order of micro-batches, whatever order they came back in
            kernels.add(g, more)
        if self.chunks > 1:
            g /= self.chunks
        w = kernels.copy(self.w)
        update(w, g)
        self.history.append((newest + 1, w))
        self.task.applied(newest - read)
        self.task.report(w, self.stage.where)

    def label(self, kind: str, chunk: int) -> str:
        """F3 is micro-batch 3 of its mini-batch; where a mini-batch is not cut, the mini-batch itself."""
        return f"{kind}{chunk % self.chunks if self.chunks > 1 else chunk}"
