"""Clip by the global norm, which no single pipeline stage knows, either before or after the update.

    g <- g min(1, max_norm / |g|)        |g|^2 = |g_0|^2 + ... + |g_{S-1}|^2, over all stages

Each stage adds its part and passes the sum on; the last one knows |g|, and sends it back up the pipeline. Waiting for
that before every update puts a barrier between mini-batches, just where zero-bubble schedules have none.

Post-validation (`after`) does not wait. A stage updates as if nothing had to be clipped, keeps a snapshot, and
continues: while |g| is on its way back to it, stage s does S-1-s forwards of the next mini-batch. Nearly always |g| is
small enough. If not, the stage rolls the update back, repeats it with the clipped gradient, and repeats those forwards;
so the weights are the same, bit for bit.

    stage 0   ... W5 U F0 F1 V F2        U: update, V: |g| has come back
    stage 1      ... W5 U F0 V F1
    stage 2         ... W5 U V F0

The price: a copy of the weights and of the state of the update rule; for a rollback, S-1 forwards.

Source: Qi et al., ICLR 2024, arXiv:2401.10241, section 4, who undo the arithmetic of AdamW instead of keeping a copy.
"""

from math import inf, sqrt
from typing import Any, cast

import kernels
from algorithms.parts.optimizers import optimizer
from algorithms.parts.pipeline.executor import Executor, tag
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush
from algorithms.parts.pipeline.stage_state import LatestWeights, StageState


class GlobalNormClipping(Executor):
    """An executor whose stages all receive the gradient's norm before they update; each rank has one stage."""

    plan: Flush

    def __init__(self, comm, task, plan, s):
        super().__init__(comm, task, plan, s, RollbackWeights)
        (self.state,) = self.stages.values()
        self.policy = cast(RollbackWeights, self.state.policy)
        self.max_norm, self.up, self.down = s.max_norm, 2 * plan.stages, 2 * plan.stages + 1  # tags no activations have

    def _step(self, state: StageState, g) -> None:
        squared_norm = self._add_norm(g)
        self._clip(g, squared_norm if state.stage.last else self._receive_norm())
        super()._step(state, g)

    def _add_norm(self, g) -> float:
        """Return |g|^2 of the stages up to this one and send it to the next stage; the last stage sends the
        total back.
        """
        squared_norm = kernels.squared_norm(g)
        if not self.state.stage.first:
            squared_norm += self.comm.recv(self.comm.rank - 1, tag=self.up)
        if not self.state.stage.last:
            self.comm.send(squared_norm, self.comm.rank + 1, tag=self.up)
        elif not self.state.stage.first:
            self.comm.send(squared_norm, self.comm.rank - 1, tag=self.down)
        return squared_norm

    def _receive_norm(self) -> float:
        """Receive |g|^2 of all stages, pass it on to the stage before, and return it."""
        squared_norm = self.comm.recv(self.comm.rank + 1, tag=self.down)
        if not self.state.stage.first:
            self.comm.send(squared_norm, self.comm.rank - 1, tag=self.down)
        return squared_norm

    def _clip(self, g, squared_norm: float) -> bool:
        """Clip g in place; return True if its norm was too large."""
        if clipped := self.max_norm**2 < squared_norm < inf:  # an infinite norm stays: divergence must show
            kernels.scale(g, self.max_norm / sqrt(squared_norm))
        return clipped


class PostValidation(GlobalNormClipping):
    """An executor whose stages update at once, and roll back if the norm turns out to have been too large."""

    def __init__(self, comm, task, plan, s):
        super().__init__(comm, task, plan, s)
        self.ahead = plan.stages - 1 - self.state.stage.index  # forwards of the next mini-batch until |g| is here
        self.g: Any = None  # the gradient of an update that is not validated yet

    def run(self):
        """Train until the budget is spent; return the weights of this rank's stage."""
        for batch in self.task.steps(together=True):
            forwards = 0
            for ops in self.plan.ops_of(self.comm.rank, batch):
                if self.g is not None and forwards == self.ahead:
                    self._validate()
                self._do(ops)
                forwards += ops[0].kind == "F"
        if self.g is not None:
            self._validate(last=True)
        return self._weights()

    def _step(self, state: StageState, g) -> None:
        squared_norm = self._add_norm(g)
        if state.stage.last:
            self.clipped = self._clip(g, squared_norm)
        else:
            self.policy.snapshot(state.weights.w)
            self.task.holds("buffers", (2 + len(self.policy.rule.state)) * g.nbytes)  # the snapshot, and g
        super(GlobalNormClipping, self)._step(state, g)
        self.g, state.spare = g, None

    def _report(self, state: StageState, batches: int) -> None:
        """Report nothing: the update is not validated yet."""

    def _validate(self, last: bool = False) -> None:
        """Receive |g|, correct the last update if |g| was too large, and report the weights.

        After a correction the forwards done since then are repeated, except after the `last` mini-batch.
        """
        state, g, self.g = self.state, self.g, None
        if not state.stage.last:
            self.clipped = self._clip(g, self._receive_norm())
            if self.clipped:
                self.policy.roll_back(state.weights.w)
                self.policy.update(state.weights.w, g)
            self.task.holds("buffers", 0)
        super()._report(state, 1)
        if self.clipped and not last:
            repeated = sorted(state.in_flight)
            if not state.stage.first:  # the stage before was one forward further: its output is outdated
                self.comm.recv(self.comm.rank - 1, tag=tag("F", state.stage.index))
            for chunk in repeated:
                self._do([Op("F", state.stage.index, chunk)])


class RollbackWeights(LatestWeights):
    """Weight policy: the newest weights, with an update rule whose last update can be rolled back."""

    def __init__(self, s, stage, w):
        self.rule = optimizer(s.update, w, s.momentum)
        super().__init__(lambda w, g: self.rule.step(w, g, s.learning_rate))

    def snapshot(self, w) -> None:
        """Copy w and the state of the update rule."""
        self.before = kernels.copy(w), [kernels.copy(vector) for vector in self.rule.state], self.rule.steps

    def roll_back(self, w) -> None:
        """Restore w, in place, and the state of the update rule."""
        old_w, old_state, self.rule.steps = self.before
        w[:] = old_w
        for vector, old in zip(self.rule.state, old_state, strict=True):
            vector[:] = old
