"""Execute the list of ops of one rank, in any pipeline with a flush; and declare such pipelines.

Waiting is left to the messages: a forward needs the activations of the stage before, a backward the gradient of the
stage after, and each arrives once it has been computed. So the list of ops is all there is to a schedule. Which weights
the passes read is left to a weight policy (`stage_state.py`), one for each stage that this rank holds.

Overlapped ops begin when the inputs of all of them have arrived, and send their outputs when all are done. An update
takes the gradients since the last one, summed in the order in which they were computed; ranks that hold the same stage
all-reduce theirs first.

Ranks stop together, after the same number of mini-batches; how an endless stream ends is in `stream_executor.py`.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import kernels
from algorithms.algorithm import EIGHT_LAYERS, Algorithm, one_model, shared_by_all
from algorithms.parts.pipeline import settings
from algorithms.parts.pipeline.ops import Op
from algorithms.parts.pipeline.plan import Flush, Stream
from algorithms.parts.pipeline.stage_state import InFlight, Policy, StageState
from knobs import Knobs


def pipeline(
    schedule: Callable, Settings: type[Knobs], policy: Callable | None = settings.optimizer_weights, **facts: Any
) -> Algorithm:
    """Return the declaration of the pipeline that executes `schedule(rank, ranks, chunks)` for each mini-batch of
    `s.chunks`.

    `policy(s, stage, w)` makes the weight policy of a stage that starts with w. `facts` are further fields of
    `Algorithm`, and override those derived from the schedule. An `executor` among them replaces `Executor`.
    """
    plan = facts.setdefault("plan", lambda workers, s: Flush.of(schedule, workers, s.chunks))
    executor = facts.pop("executor", Executor)

    def worker(comm, task, s):
        return executor(comm, task, plan(comm.size, s), s, policy).run()

    def split(workers, s):
        cut = plan(workers, s)
        copies = sum(len(cut.stages_of(rank)) for rank in range(workers)) / cut.stages  # 2 in two directions
        return one_model(workers / copies, s)

    derived = {
        "worker": worker,
        "split": split,
        "data_shards": shared_by_all,
        "stages": lambda workers, s: plan(workers, s).stages,
        "check": lambda workers, batch, workload, s: settings.check(batch, workload, plan(workers, s), s.cuts),
        "elements_sent": lambda shape, s: plan(shape.workers, s).elements_sent(shape),
        "counts_staleness": True,
        "skips_overflow": executor is Executor,  # the others do not wait for all ranks before an update
        "model_defaults": EIGHT_LAYERS,
    }
    return Algorithm(**{"Settings": Settings, **derived, **facts})


class Executor:
    """The executor of rank `comm.rank` of `plan`. Stages are cut by `s.cuts`, or balanced by work."""

    def __init__(self, comm, task, plan: Flush | Stream, s, policy: Callable[..., Policy] = settings.optimizer_weights):
        self.comm, self.task, self.plan = comm, task, plan
        self.recomputed = plan.recomputed_forwards(comm.rank)  # micro-batches that store inputs only
        self.stages: dict[int, StageState] = {}  # those of this rank
        for index in plan.stages_of(comm.rank):
            stage = task.stage(index, plan.stages, cuts=s.cuts)
            self.stages[index] = StageState(stage, partial(policy, s))
        for index in plan.shared_stages:
            group = comm.split(0 if index in self.stages else None)
            if group:
                self.stages[index].group = group
        self.local: dict[tuple[str, int, int], Any] = {}  # messages between stages of this rank
        self.target_reached = False  # whether the target loss was seen, in an endless stream
        self.usable: bool | None = None  # whether to take the step of this mini-batch; None before its first update

    def run(self):
        """Train until the budget is spent; return the weights of this rank's stages, concatenated."""
        for batch in self.task.steps(together=True):
            self.usable = None
            for ops in self.plan.ops_of(self.comm.rank, batch):
                self._do(ops)
        return self._weights()

    def _weights(self):
        parts = [state.weights.w for state in self.stages.values()]
        w, at = kernels.empty(sum(map(len, parts)), parts[0]), 0
        for part in parts:
            w[at : at + len(part)] = part
            at += len(part)
        return w

    def _do(self, ops: list[Op]) -> None:
        """Execute a group of overlapped ops, usually a single op."""
        inputs = [self._input(*op) for op in ops]
        outputs = [self._compute(op, x) for op, x in zip(ops, inputs, strict=True)]
        for op, y in zip(ops, outputs, strict=True):
            if y is not None:
                self._output(op, y)
        for op in ops:
            if op.kind in "BW":
                self.stages[op.stage].accumulate(op.chunk)
        self._record_memory()

    def _input(self, kind: str, stage: int, chunk: int):
        """Return the input of this op, from a neighbouring stage or the data, or None if it needs none."""
        state = self.stages[stage]
        if kind == "F":
            if state.stage.first:
                return state.stage.chunk(*divmod(chunk, self.plan.chunks), self.plan.chunks)[0]
            return self._receive("F", stage - 1, stage, chunk)
        if kind in "BI" and not state.stage.last:
            dy = self._receive("B", stage + 1, stage, chunk)
            if isinstance(dy, tuple):  # a gradient in a tuple says that the target loss was reached
                self.target_reached, (dy,) = True, dy
            return dy
        return None

    def _compute(self, op: Op, x):
        """Execute an op. Return the output that a neighbouring stage waits for, or None if no stage does."""
        kind, stage, chunk = op
        state = self.stages[stage]
        if kind == "U":
            return self._update(state)
        self.task.at(chunk // self.plan.chunks)
        if kind == "F":
            return self._forward(state, chunk, x)
        flight, label = state.in_flight[chunk], self._label(op)
        if kind == "R":
            w = state.policy.backward(state.weights, flight)[1]
            flight.saved = flight.store(state.stage.forward(w, flight.saved, label)[1], self.task.workload)
        elif kind == "W":
            state.g = state.stage.backward_weights(flight.pending, label, *state.sum())
        else:
            return self._backward(state, op, flight.dy if x is None else x, label)
        return None

    def _forward(self, state: StageState, chunk: int, x):
        stage, (batch, part) = state.stage, divmod(chunk, self.plan.chunks)
        version, w = state.policy.forward(state.weights, chunk)
        y, saved = stage.forward(w, x, self._label(Op("F", stage.index, chunk)))
        flight = state.in_flight[chunk] = InFlight(version, w if state.policy.stash else None)
        flight.saved = flight.store(x if (stage.index, part) in self.recomputed else saved, self.task.workload)
        if not stage.last:
            return y
        _, target = stage.chunk(batch, part, self.plan.chunks)
        _, flight.dy = stage.loss(y, target, batch, self.plan.losses_of(self.comm.rank))
        self._after_loss()
        return None

    def _backward(self, state: StageState, op: Op, dy, label: str):
        flight = state.in_flight[op.chunk]
        version, w = state.policy.backward(state.weights, flight)
        flight.gap = version - flight.version
        if again := self.task.repeats(state.stage.part, len(dy)):
            self.task.holds("activations", self._activations() + again)
        if op.kind == "B":
            dx, state.g = state.stage.backward(w, flight.saved, dy, label, *state.sum())
        else:
            dx, flight.pending = state.stage.backward_input(w, flight.saved, dy, label)
        flight.store(flight.pending, self.task.workload)
        flight.w = flight.saved = flight.dy = None
        return None if state.stage.first else dx

    def _update(self, state: StageState) -> None:
        if self.usable is None:  # updates come last in a mini-batch, so the gradients of all stages are complete
            gradients = [each.g for each in self.stages.values() if each.g is not None]
            self.usable = self.task.is_usable(*gradients, agree=self.comm)
        if not self.usable:
            state.spare = state.take_gradient()
            return
        own, g = state.g is not None, state.take_gradient()
        if state.group:
            state.group.all_reduce(g)
        batches = self._batches(state)
        if batches * self.plan.chunks > 1:
            kernels.scale(g, 1 / (batches * self.plan.chunks))
        if own:
            self.task.applied(state.delay)
            if state.gap:
                self.task.measure("version gap", state.gap)
        self._step(state, g)
        self._report(state, batches)

    def _step(self, state: StageState, g) -> None:
        """Make the next version of the weights. The next gradient reuses the memory of g."""
        state.weights.step(state.policy, g)
        state.spare = g

    def _report(self, state: StageState, batches: int) -> None:
        """Report once per mini-batch, so that all stages make equally many reports."""
        for number in range(batches):
            self.task.report(state.weights.w, state.stage.where, new=number == 0)

    def _after_loss(self) -> None:
        """Called after the last stage has computed a loss. Does nothing; a stream checks here whether to end."""

    def _batches(self, state: StageState) -> int:
        return 1

    def _output(self, op: Op, y) -> None:
        if op.kind == "F":
            self._send(y, "F", op.stage + 1, op.chunk)
        else:
            self._send((y,) if self.target_reached else y, "B", op.stage - 1, op.chunk)

    def _send(self, x, kind: str, stage: int, chunk: int) -> None:
        """Send `x` to the rank that executes the op `kind` of `stage` for this micro-batch."""
        rank = self.plan.rank_of(stage, chunk)
        if rank == self.comm.rank:
            self.local[kind, stage, chunk] = x
        else:
            self.comm.send(x, rank, tag=tag(kind, stage))

    def _receive(self, kind: str, source: int, stage: int, chunk: int):
        rank = self.plan.rank_of(source, chunk)
        if rank == self.comm.rank:
            return self.local.pop((kind, stage, chunk))
        return self.comm.recv(rank, tag=tag(kind, stage))

    def _record_memory(self) -> None:
        states = self.stages.values()
        self.task.holds("parameters", sum(state.versions_held * state.weights.w.nbytes for state in states))
        self.task.holds("gradients", sum(state.g.nbytes for state in states if state.g is not None))
        self.task.holds("activations", self._activations())

    def _activations(self) -> int:
        """Return the bytes of activations that this rank stores."""
        return sum(flight.nbytes for state in self.stages.values() for flight in state.in_flight.values())

    def _label(self, op: Op) -> str:
        """Return a label such as F3, for micro-batch 3 of its mini-batch, or 2F3 if the rank has several stages."""
        kind, stage, chunk = op
        number = chunk % self.plan.chunks if self.plan.chunks > 1 else chunk
        return f"{kind}{number}" if len(self.stages) == 1 else f"{stage}{kind}{number}"


def tag(kind: str, stage: int) -> int:
    """Return the tag of messages for `kind` of `stage`; they arrive in the order in which the stage processes them."""
    return 2 * stage + (kind == "B")
