"""The executor: one rank of any pipeline carries out its list of ops.

Waiting is left to the messages: a forward needs the activations of the stage before, a backward the gradient of the
stage after, and each arrives when it has been computed. So the list of ops is all there is to a schedule, and which
weights its passes read is left to a policy (`weights.py`), one for each stage that this rank holds.

Ops that are joined begin when all has come that they need, and what they make is sent when all are done. An update
takes the gradients that have come back since the last one, added up in the order in which they did; where several ranks
hold a stage, they sum theirs first.

Ranks stop together, after the same number of mini-batches; how an endless stream ends is in `endless.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import kernels
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush, Stream
from algorithms.parts.pipeline.stage_state import InFlight, StageState
from algorithms.parts.pipeline.weight_policies import Policy


class Executor:
    """Rank `comm.rank` of a plan; `policy(stage, w)` makes the weight policy of a stage that starts with w.

    `cuts` are the layers of each stage; () for stages that are balanced by work.
    """

    def __init__(self, comm, task, plan: Flush | Stream, policy: Callable[[Any, Any], Policy], cuts=()):
        self.comm, self.task, self.plan = comm, task, plan
        self.recomputed = plan.recomputed(comm.rank)  # micro-batches whose inputs only are stored
        self.held: dict[int, StageState] = {}
        for index in plan.stages_of(comm.rank):
            self.held[index] = StageState(task.stage(index, plan.stages, cuts=cuts), policy)
        for index in plan.shared:
            group = comm.split(0 if index in self.held else None)
            if group:
                self.held[index].group = group
        self.here: dict[tuple[str, int, int], Any] = {}  # what goes from one stage of this rank to another
        self.enough = False  # whether the target loss was seen, in an endless stream

    def run(self):
        """Train until the budget is spent; gives the weights of this rank's stages, one after the other."""
        for batch in self.task.steps(together=True):
            for ops in self.plan.of_batch(self.comm.rank, batch):
                self._do(ops)
        return self._together()

    def _together(self):
        parts = [held.weights.w for held in self.held.values()]
        w, at = kernels.empty(sum(map(len, parts)), parts[0]), 0
        for part in parts:
            w[at : at + len(part)] = part
            at += len(part)
        return w

    def _do(self, ops) -> None:
        """Carry out ops that are joined, mostly a single one."""
        inputs = [self._take(*op) for op in ops]
        outputs = [self._work(op, x) for op, x in zip(ops, inputs, strict=True)]
        for op, y in zip(ops, outputs, strict=True):
            if y is not None:
                self._give(op, y)
        for op in ops:
            if op.kind in "BW":
                self.held[op.stage].lands(op.chunk)
        self._account()

    def _account(self) -> None:
        """Say what this rank holds now."""
        held = self.held.values()
        flights = [flight for one in held for flight in one.flying.values()]
        self.task.holds("parameters", sum(one.versions * one.weights.w.nbytes for one in held))
        self.task.holds("gradients", sum(one.g.nbytes for one in held if one.g is not None))
        self.task.holds("activations", sum(flight.kept for flight in flights))

    def _take(self, kind: str, stage: int, chunk: int):
        """What `stage` needs for this op, from its neighbours or from the data."""
        held = self.held[stage]
        if kind == "F":
            if held.stage.first:
                return held.stage.chunk(*divmod(chunk, self.plan.chunks), self.plan.chunks)[0]
            return self._receive("F", stage - 1, stage, chunk)
        if kind in "BI" and not held.stage.last:
            dy = self._receive("B", stage + 1, stage, chunk)
            if isinstance(dy, tuple):
                self.enough, (dy,) = True, dy
            return dy
        return None

    def _work(self, op: Op, x):
        """Compute; gives what a neighbour waits for, or None."""
        kind, stage, chunk = op
        held = self.held[stage]
        if kind == "U":
            return self._update(held)
        self.task.at(chunk // self.plan.chunks)
        if kind == "F":
            return self._forward(held, chunk, x)
        flight, label = held.flying[chunk], self._label(op)
        if kind == "R":
            w = held.policy.backward(held.weights, flight)[1]
            flight.saved = flight.keeps(held.stage.forward(w, flight.saved, label)[1])
        elif kind == "W":
            flight.g = held.stage.backward_weights(flight.pending, label)
        else:
            return self._backward(held, op, flight.dy if x is None else x, label)
        return None

    def _forward(self, held: StageState, chunk: int, x):
        stage, (batch, part) = held.stage, divmod(chunk, self.plan.chunks)
        version, w = held.policy.forward(held.weights, chunk)
        y, saved = stage.forward(w, x, self._label(Op("F", stage.index, chunk)))
        flight = held.flying[chunk] = InFlight(version, w if held.policy.stash else None)
        flight.saved = flight.keeps(x if (stage.index, part) in self.recomputed else saved)
        if not stage.last:
            return y
        _, target = stage.chunk(batch, part, self.plan.chunks)
        _, flight.dy = stage.loss(y, target, batch, self.plan.compared(self.comm.rank))
        self._compared()
        return None

    def _backward(self, held: StageState, op: Op, dy, label: str):
        flight = held.flying[op.chunk]
        version, w = held.policy.backward(held.weights, flight)
        flight.gap = version - flight.version
        if op.kind == "B":
            dx, flight.g = held.stage.backward(w, flight.saved, dy, label)
        else:
            dx, flight.pending = held.stage.backward_input(w, flight.saved, dy, label)
        flight.keeps(flight.pending)
        flight.w = flight.saved = flight.dy = None
        return None if held.stage.first else dx

    def _update(self, held: StageState) -> None:
        mine, g = held.g is not None, held.gradient()
        if held.group:
            held.group.all_reduce(g)
        batches = self._batches(held)
        if batches * self.plan.chunks > 1:
            kernels.scale(g, 1 / (batches * self.plan.chunks))
        if mine:
            self.task.applied(held.delay)
            if held.gap:
                self.task.measure("version gap", held.gap)
        self._step(held, g)
        self._show(held, batches)

    def _step(self, held: StageState, g) -> None:
        """The next version of the weights."""
        held.weights.step(held.policy, g)

    def _show(self, held: StageState, batches: int) -> None:
        """A report for each mini-batch, so that those of all stages go together."""
        for _ in range(batches):
            self.task.report(held.weights.w, held.stage.where)

    def _compared(self) -> None:
        """A loss was seen here."""

    def _batches(self, held: StageState) -> int:
        """How many mini-batches are in this update."""
        return 1

    def _give(self, op: Op, y) -> None:
        if op.kind == "F":
            self._send(y, "F", op.stage + 1, op.chunk)
        else:
            self._send((y,) if self.enough else y, "B", op.stage - 1, op.chunk)

    def _send(self, x, kind: str, stage: int, chunk: int) -> None:
        """Hand `x` to whoever does `kind` of `stage` with this micro-batch."""
        rank = self.plan.rank_of(stage, chunk)
        if rank == self.comm.rank:
            self.here[kind, stage, chunk] = x
        else:
            self.comm.send(x, rank, tag=tag(kind, stage))

    def _receive(self, kind: str, source: int, stage: int, chunk: int):
        rank = self.plan.rank_of(source, chunk)
        if rank == self.comm.rank:
            return self.here.pop((kind, stage, chunk))
        return self.comm.recv(rank, tag=tag(kind, stage))

    def _label(self, op: Op) -> str:
        """F3 is micro-batch 3 of its mini-batch, where mini-batches are cut; 2F3 on stage 2, where a rank has many."""
        kind, stage, chunk = op
        number = chunk % self.plan.chunks if self.plan.chunks > 1 else chunk
        return f"{kind}{number}" if len(self.held) == 1 else f"{stage}{kind}{number}"


def tag(kind: str, stage: int) -> int:
    """Messages of one kind to one stage come in the order in which it takes them; of others, in any order."""
    return 2 * stage + (kind == "B")
