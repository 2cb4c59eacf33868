"""Execute a rank's endless stream of ops until the budget is spent; declare pipelines without a flush.

All ranks know a budget in steps. If the budget is in seconds or has a target loss, rank 0 decides before each round
whether there is another, and tells the other ranks. (A round is one mini-batch or, if stages have replicas, enough for
the turns of all replicas.) Each rank then completes what it has in flight. The last stage notices when the target loss
is reached, and says so by sending a gradient up wrapped in a tuple.

Replicas without a mini-batch in the last turn of their stage still take part in its update.
"""

from collections.abc import Callable
from typing import Any

from algorithms.algorithm import Algorithm
from algorithms.parts.pipeline.executor import Executor, pipeline
from algorithms.parts.pipeline.plan import Stream
from algorithms.parts.pipeline.stage_state import Policy, StageState
from knobs import Knobs


def stream(schedule: Callable, Settings: type[Knobs], policy: Callable | None = None, **facts: Any) -> Algorithm:
    """Return the declaration of the pipeline that executes `schedule(rank, ranks, inf)`, one stage per rank, with stale
    gradients.

    The schedule alone determines their staleness: the network changes the time of an update, not its result. See
    `pipeline`.
    """
    facts.setdefault("plan", lambda workers, s: Stream.of(schedule, workers))
    return pipeline(schedule, Settings, policy, executor=StreamExecutor, **facts)


class StreamExecutor(Executor):
    """The executor of rank `comm.rank` of a stream; see `Executor`."""

    plan: Stream

    def __init__(self, comm, task, plan: Stream, s, policy: Callable[..., Policy]):
        super().__init__(comm, task, plan, s, policy)
        self.limit = task.budget.limit(task.per_epoch)
        self.agreed = -1  # the newest round agreed on
        self.end: int | None = None  # the number of mini-batches, once it is known

    def run(self):
        """Train until the budget is spent; return the weights of this rank's stage."""
        (state,) = self.stages.values()
        for op in self.plan.endless_ops_of(self.comm.rank):
            if op.kind == "F":
                if self.end is None and self._within_budget(op.chunk):
                    self._do([op])
            elif op.kind == "U":
                if state.g is not None or self._others_update(state):
                    self._do([op])
            elif op.chunk in state.in_flight:
                self._do([op])
            if self.end is not None and not state.in_flight and state.g is None and not self._others_update(state):
                break
        return state.weights.w

    def _within_budget(self, chunk: int) -> bool:
        """Return True if the mini-batch of this micro-batch is within the budget; if not, set `end`."""
        batch, part = divmod(chunk, self.plan.chunks)
        first = batch - batch % self.plan.round
        if part == 0 and self.limit is not None and batch >= self.limit:
            self.end = self.limit
        elif part == 0 and self.task.open_ended and first > self.agreed:
            self.agreed = first
            if not self._another_round():
                self.end = first
        return self.end is None

    def _another_round(self) -> bool:
        """Return True if there is another round; rank 0 decides and sends its decision to the other ranks."""
        if self.comm.rank:
            return self.comm.recv(0, tag=0) is not None
        over = self.target_reached or self.task.spent()
        for rank in range(1, self.comm.size):
            self.comm.send(None if over else 1, rank, tag=0)
        return not over

    def _others_update(self, state: StageState) -> bool:
        """Return True if the other replicas wait for this replica to update, although no mini-batch is left for it."""
        if self.end is None or state.in_flight or state.g is not None:
            return False
        replicas = self.plan.replicas[state.stage.index]
        return state.group is not None and state.weights.version < -(-self.end // replicas)

    def _after_loss(self) -> None:
        self.target_reached = self.target_reached or self.task.spent()

    def _batches(self, state: StageState) -> int:
        replicas = self.plan.replicas[state.stage.index]
        return replicas if self.limit is None else min(replicas, self.limit - state.weights.version * replicas)
