"""Endless: the executor of a stream without a flush, and how it ends.

A budget of steps is known to all ranks. One in seconds or with a target loss is asked by rank 0 before each round (a
mini-batch; where stages have replicas, so many that each has its turns), and it tells the others. Each rank then
brings home what it has in flight. The target loss is seen on the last stage; a gradient that travels up wrapped in a
tuple says that it is reached.

Replicas that have no mini-batch in the last turn of their stage update with the others all the same.
"""

from __future__ import annotations

from algorithms.parts.pipeline.executor import Executor
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.stage_state import StageState


class StreamExecutor(Executor):
    """Rank `comm.rank` of a stream; see `Executor`."""

    def __init__(self, comm, task, plan: Stream, policy, cuts=()):
        super().__init__(comm, task, plan, policy, cuts)
        self.limit = task.budget.limit(task.per_epoch)
        self.asked, self.end = -1, None  # the round that was asked for last; mini-batches in all, once it is known

    def run(self):
        """Train until the budget is spent; gives the weights of this rank's stage."""
        (held,) = self.held.values()
        for op in self.plan.of_rank(self.comm.rank):
            if op.kind == "F":
                if self.end is None and self._goes_on(op.chunk):
                    self._do([op])
            elif op.kind == "U":
                if held.g is not None or self._owes(held):
                    self._do([op])
            elif op.chunk in held.flying:
                self._do([op])
            if self.end is not None and not held.flying and held.g is None and not self._owes(held):
                break
        return held.weights.w

    def _goes_on(self, chunk: int) -> bool:
        """Whether the mini-batch of this micro-batch is still within the budget; if not, `end` says how many were."""
        batch, part = divmod(chunk, self.plan.chunks)
        first = batch - batch % self.plan.round
        if part == 0 and self.limit is not None and batch >= self.limit:
            self.end = self.limit
        elif part == 0 and self.task.open_ended and first > self.asked:
            self.asked = first
            if not self._another():
                self.end = first
        return self.end is None

    def _another(self) -> bool:
        """Whether there is another round: rank 0 decides, and tells the others."""
        if self.comm.rank:
            return self.comm.recv(0, tag=0) is not None
        over = self.enough or self.task.spent()
        for rank in range(1, self.comm.size):
            self.comm.send(None if over else 1, rank, tag=0)
        return not over

    def _owes(self, held: StageState) -> bool:
        """Whether the other replicas wait for this one to update, though it has no mini-batch in the last turn."""
        replicas = self.plan.replicas[held.stage.index]
        over = self.end is not None and not held.flying and held.g is None
        return over and held.group is not None and held.weights.version < -(-self.end // replicas)

    def _compared(self) -> None:
        self.enough = self.enough or self.task.spent()

    def _batches(self, held: StageState) -> int:
        replicas = self.plan.replicas[held.stage.index]
        return replicas if self.limit is None else min(replicas, self.limit - held.weights.version * replicas)
