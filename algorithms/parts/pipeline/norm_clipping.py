"""Clipping by the norm of the whole gradient, which no stage of a pipeline knows: before the update, or after it.

    g <- g min(1, max_norm / |g|)        |g|^2 = |g_0|^2 + ... + |g_{S-1}|^2, over all stages

Each stage adds its part and passes the sum on; the last one knows |g|, and tells the others, back up the pipeline.
Waiting for that before every update puts a barrier between mini-batches, just where zero-bubble schedules have none.

Post-validation (`after`) does not wait. A stage updates as if nothing had to be clipped, keeps what it had, and goes
on: while |g| is on its way back to it, stage s does S-1-s forwards of the next mini-batch. Nearly always |g| is small
enough, and all is well. If not, it takes the update back, makes it again with the clipped gradient, and does those
forwards again; so all that is learned is the same, bit for bit.

    stage 0   ... W5 U F0 F1 V F2        U: update, V: |g| has come back
    stage 1      ... W5 U F0 V F1
    stage 2         ... W5 U V F0

The price: a copy of the weights and of what the update rule remembers; for a step that is taken back, S-1 forwards.

Source: Qi et al., ICLR 2024, arXiv:2401.10241, section 4, who undo the arithmetic of AdamW instead of keeping a copy.
"""

from __future__ import annotations

from math import inf, sqrt

import kernels
from algorithms.parts.optimizers import optimizer
from algorithms.parts.pipeline.executor import Executor, tag
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.stage_state import StageState
from algorithms.parts.pipeline.weight_policies import LatestWeights


class GlobalNormClipping(Executor):
    """All stages learn the norm before they update. One stage for each rank."""

    def __init__(self, comm, task, plan, s, cuts=()):
        super().__init__(comm, task, plan, lambda stage, w: Undone(s, w), cuts)
        (self.mine,) = self.held.values()
        self.max_norm, self.up, self.down = s.max_norm, 2 * plan.stages, 2 * plan.stages + 1  # tags no activations have

    def _step(self, held: StageState, g) -> None:
        squares = self._add(g)
        self._clip(g, squares if held.stage.last else self._hear())
        super()._step(held, g)

    def _add(self, g) -> float:
        """|g|^2 of the stages up to this one, which the next one is told; the last one tells those before it."""
        squares = kernels.squared_norm(g)
        if not self.mine.stage.first:
            squares += self.comm.recv(self.comm.rank - 1, tag=self.up)
        if not self.mine.stage.last:
            self.comm.send(squares, self.comm.rank + 1, tag=self.up)
        elif not self.mine.stage.first:
            self.comm.send(squares, self.comm.rank - 1, tag=self.down)
        return squares

    def _hear(self) -> float:
        """|g|^2 of all stages."""
        squares = self.comm.recv(self.comm.rank + 1, tag=self.down)
        if not self.mine.stage.first:
            self.comm.send(squares, self.comm.rank - 1, tag=self.down)
        return squares

    def _clip(self, g, squares: float) -> bool:
        if too_long := self.max_norm**2 < squares < inf:  # what diverges shall be seen
            kernels.scale(g, self.max_norm / sqrt(squares))
        return too_long


class PostValidation(GlobalNormClipping):
    """Stages update at once, and take it back if the norm turns out to have been too large."""

    def __init__(self, comm, task, plan, s, cuts=()):
        super().__init__(comm, task, plan, s, cuts)
        self.ahead = plan.stages - 1 - self.mine.stage.index  # forwards of the next mini-batch until |g| is here
        self.g = None  # the gradient of an update that is not valid yet

    def run(self):
        for batch in self.task.steps(together=True):
            forwards = 0
            for ops in self.plan.of_batch(self.comm.rank, batch):
                if self.g is not None and forwards == self.ahead:
                    self._validate()
                self._do(ops)
                forwards += ops[0].kind == "F"
        if self.g is not None:
            self._validate(last=True)
        return self._together()

    def _step(self, held: StageState, g) -> None:
        squares = self._add(g)
        if held.stage.last:
            self.too_long = self._clip(g, squares)
        else:
            held.policy.remember(held.weights.w)
            self.task.holds("buffers", (2 + len(held.policy.rule.state)) * g.nbytes)  # what was, and g
        super(GlobalNormClipping, self)._step(held, g)
        self.g = g

    def _show(self, held: StageState, batches: int) -> None:
        """Nothing yet."""

    def _validate(self, last: bool = False) -> None:
        """|g| has come back. After the `last` mini-batch there are no forwards to be done again."""
        held, g, self.g = self.mine, self.g, None
        if not held.stage.last:
            self.too_long = self._clip(g, self._hear())
            if self.too_long:
                held.policy.undo(held.weights.w)
                held.policy.update(held.weights.w, g)
            self.task.holds("buffers", 0)
        super()._show(held, 1)
        if self.too_long and not last:
            again = sorted(held.flying)
            if not held.stage.first:  # the stage before was one forward further: that one is not wanted any more
                self.comm.recv(self.comm.rank - 1, tag=tag("F", held.stage.index))
            for chunk in again:
                self._do([Op("F", held.stage.index, chunk)])


class Undone(LatestWeights):
    """The newest weights, by an update rule that can be taken back once."""

    def __init__(self, s, w):
        self.rule = optimizer(s.update, w, s.momentum)
        super().__init__(lambda w, g: self.rule.step(w, g, s.learning_rate))

    def remember(self, w) -> None:
        self.old = kernels.copy(w), [kernels.copy(memory) for memory in self.rule.state], self.rule.steps

    def undo(self, w) -> None:
        before, memories, self.rule.steps = self.old
        w[:] = before
        for memory, old in zip(self.rule.state, memories, strict=True):
            memory[:] = old
