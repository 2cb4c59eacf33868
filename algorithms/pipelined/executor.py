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
from dataclasses import dataclass
from typing import Any

import kernels
from algorithms.pipelined.schedule import Op


@dataclass
class Flight:
    """A micro-batch between its forward and its update."""

    version: int  # of the weights that its forward read
    w: Any  # these weights, if its backward is to read them again
    saved: Any  # what backward needs of the forward; with `recompute` the input alone
    dy: Any = None  # gradient of the outputs, on the last stage
    g: Any = None  # gradient of the weights, once it is back


class Executor:
    """Stage `comm.rank` of `comm.size`, with `chunks` micro-batches per mini-batch and update."""

    def __init__(self, comm, task, chunks: int = 1, lag: int = 0, stash: bool = True, recompute: bool = False):
        self.comm, self.task = comm, task
        self.chunks, self.stash, self.recompute = chunks, stash, recompute
        self.stage = task.stage(comm.rank, comm.size)
        self.steps = task.steps()
        self.history = deque([(0, self.stage.start())], maxlen=lag + 1)  # (version, w), oldest first
        self.flying: dict[int, Flight] = {}  # by micro-batch
        self.ended = self.enough = False

    @property
    def w(self):
        """The newest weights of this stage, (d_s,)."""
        return self.history[-1][1]

    @property
    def versions(self) -> int:
        """How many versions of its weights this stage holds now."""
        stashed = (flight.version for flight in self.flying.values() if flight.w is not None)
        return len({version for version, _ in self.history}.union(stashed))

    def run(self, ops: Iterable[Op], update: Callable):
        """Carry out `ops`, an endless stream, until the budget is spent; `update(w, g)` changes w in place."""
        for kind, _, chunk in ops:
            if kind == "F":
                if not self.ended:
                    self.forward(chunk)
            elif kind == "U":
                if chunk * self.chunks in self.flying:
                    self.update(chunk, update)
            elif chunk in self.flying:
                self.again(chunk) if kind == "R" else self.backward(chunk)
            if self.ended and not self.flying:
                return self.w

    def forward(self, chunk: int) -> None:
        stage, (batch, part) = self.stage, divmod(chunk, self.chunks)
        x = self.inputs(batch, part)  # (samples of a micro-batch, ...)
        if x is None:
            self.ended = True
            if not stage.last:
                self.comm.send(None, self.comm.rank + 1)
            return
        self.task.at(batch)
        version, w = self.history[0]
        y, saved = stage.forward(w, x, self.label("F", chunk))
        flight = Flight(version, w if self.stash else None, x if self.recompute else saved)
        if stage.last:
            _, target = stage.chunk(batch, part, self.chunks)
            _, flight.dy = stage.loss(y, target, batch, self.chunks)
            self.enough = self.enough or self.task.spent()
        else:
            self.comm.send(y, self.comm.rank + 1)
        self.flying[chunk] = flight

    def inputs(self, batch: int, part: int):
        if not self.stage.first:
            return self.comm.recv(self.comm.rank - 1)
        if part == 0 and (self.enough or next(self.steps, None) is None):
            return None
        return self.stage.chunk(batch, part, self.chunks)[0]

    def again(self, chunk: int) -> None:
        flight = self.flying[chunk]
        w = self.w if flight.w is None else flight.w
        _, flight.saved = self.stage.forward(w, flight.saved, self.label("R", chunk))

    def backward(self, chunk: int) -> None:
        flight = self.flying[chunk]
        dy = flight.dy
        if not self.stage.last:
            dy = self.comm.recv(self.comm.rank + 1)
            if isinstance(dy, tuple):
                self.enough, (dy,) = True, dy
        self.task.at(chunk // self.chunks)
        w = self.w if flight.w is None else flight.w
        dx, flight.g = self.stage.backward(w, flight.saved, dy, self.label("B", chunk))
        flight.w = flight.saved = flight.dy = None
        if not self.stage.first:
            self.comm.send((dx,) if self.enough else dx, self.comm.rank - 1)

    def update(self, batch: int, update: Callable) -> None:
        first, *others = (self.flying.pop(batch * self.chunks + part) for part in range(self.chunks))
        for other in others:  # in the order of micro-batches, whatever order they came back in
            kernels.add(first.g, other.g)
        if others:
            kernels.scale(first.g, 1 / self.chunks)
        newest, w = self.history[-1][0], kernels.copy(self.w)
        update(w, first.g)
        self.history.append((newest + 1, w))
        self.task.applied(newest - first.version)
        self.task.report(w, self.stage.where)

    def label(self, kind: str, chunk: int) -> str:
        """F3 is micro-batch 3 of its mini-batch; where a mini-batch is not cut, the mini-batch itself."""
        return f"{kind}{chunk % self.chunks if self.chunks > 1 else chunk}"
