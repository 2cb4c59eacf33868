"""Task: one rank's part of the training, as an algorithm uses it; the same for every algorithm and cluster.

An algorithm asks for initial parameters, steps and gradients, and reports the model that it would ship now. The task
ends the training when the budget is spent, and records losses, samples, staleness, memory and reports, so that every
algorithm stops, fails and is measured in the same way.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np

import kernels
from kernels import meter_kernels, to_device
from kernels.arrays import shares
from kernels.graph import ReplayedGradient
from tracing import COMPUTE
from workloads.batch_statistics import use_gather
from workloads.batches import Batches
from workloads.budget import Budget
from workloads.checkpoints import Checkpoint
from workloads.layerwise import LayerwisePass, places
from workloads.loss_scale import LossScale, use_scale
from workloads.mixed_precision import ShortWeights
from workloads.recorder import Recorder
from workloads.shared_memory import Descent
from workloads.workload import Workload


class Task:
    """One rank's part of the training of a workload.

    `data_shard` of `data_shards` is the rank's part of the data, or None on a server, which does not train. An update
    takes `per_update` mini-batches of a rank. With `sync_batch_norm`, batch norms compute their statistics over the
    mini-batches of all ranks, so every rank must compute the same number of gradients. `loss_scale` is this rank's in
    mixed precision with fp16, and `short_weights` keeps weights in 16 bits. With `cuda_graph`, gradients of the whole
    model are replayed from CUDA graphs where that is possible; a remark says where it is not. `report_every`, `keep`
    and `memory` are explained at `Recorder`.

    A rank that restarts after a failure begins with the newest model of `checkpoints`, and continues its budget and
    its data after the last loss that it had recorded.
    """

    def __init__(
        self,
        workload: Workload,
        comm,
        *,
        budget: Budget,
        batch: int = 32,
        data_shard: int | None = 0,
        data_shards: int = 1,
        per_update: int = 1,
        seed: int = 0,
        report_every: int = 1,
        keep: int | None = None,
        memory: float | None = None,
        checkpoints: Checkpoint | None = None,
        sync_batch_norm: bool = False,
        loss_scale: LossScale | None = None,
        short_weights: ShortWeights | None = None,
        cuda_graph: bool = False,
    ):
        self.workload, self.comm, self.budget, self.batch, self.seed = workload, comm, budget, batch, seed
        self.event_log = comm.event_log
        self.serves = data_shard is None
        self.loss_scale, self.short_weights = loss_scale, short_weights
        self._synchronised = sync_batch_norm and comm.size > 1
        self._replayed = self._replay_if_possible() if cuda_graph else None
        self._restart = checkpoints.read(self.event_log.clock()) if checkpoints else None
        self.recorder = Recorder(
            self.event_log,
            workload.parameters,
            report_every=report_every,
            keep=keep,
            memory=memory,
            checkpoints=checkpoints,
            before=() if self._restart is None else checkpoints.losses(self.event_log),
        )
        self._first, taken = self.recorder.steps, self.recorder.batches
        samples, shuffle = workload.samples, workload.shuffle
        self.batches = Batches(samples, batch, data_shard or 0, data_shards, seed, shuffle, taken, per_update)

    @property
    def tensors(self) -> tuple[tuple[slice, tuple[int, ...]], ...]:
        """The slice of w and the shape of each tensor of the model, such as a weight matrix or a bias vector."""
        return self.workload.tensors

    @property
    def layers(self) -> tuple[slice, ...]:
        """The slice of w of each layer in a layerwise pass; one slice if the model does not consist of layers."""
        return places(self.workload)

    @property
    def per_epoch(self) -> int:
        """The number of mini-batches of a training rank in one pass over the data."""
        return self.batches.per_epoch

    def start(self) -> np.ndarray:
        """Return the initial parameters, (d,), which are the same on every rank. On a restarted rank, return its
        checkpoint.
        """
        w = self.workload.start(self.seed) if self._restart is None else self._restart.copy()
        w = to_device(w, self.comm.device)
        self.store(w)
        return w

    # steps and budget

    @property
    def open_ended(self) -> bool:
        """True if the budget has a time limit or a target loss, so that the run may end before its steps are done."""
        return self.budget.open_ended

    def steps(self, together: bool = False) -> Iterator[int]:
        """Yield the steps of this rank until the budget is spent. On a server, these are its updates.

        With `together`, all ranks of the run stop at the same step, as collective communication requires. A budget of
        steps or epochs ensures this. For a budget in seconds or with a target loss, the ranks reduce one number in
        every step to agree.
        """
        limit = self.budget.limit(self.per_epoch)
        step = self._first
        while limit is None or step < limit:
            if self.open_ended and self._spent(together):
                break
            self.at(step)
            yield step
            step += 1

    def at(self, step: int) -> None:
        """Set this rank's current step, if it follows the steps of another rank, as stages of a pipeline do."""
        self.event_log.step = step

    def spent(self) -> bool:
        """Return whether the time budget is spent or the target loss is reached, as far as this rank knows."""
        return self._spent(together=False)

    # gradients

    def next_batch(self) -> tuple:
        """Return the next mini-batch of this rank's data shard. Raise ValueError on a server."""
        if self.serves:
            raise ValueError(f"rank {self.comm.rank} is a server, so it has no data; call next_batch on workers only.")
        return self._fetch(next(self.batches))

    def gradient(self, w: np.ndarray, batch: tuple | None = None) -> tuple[float, np.ndarray]:
        """Return (loss, g) at w on `batch`, by default the next mini-batch: the mean loss, and a new array, (d,). The
        loss is recorded.
        """
        batch = self.next_batch() if batch is None else batch
        loss, g = self._gradient(w, batch, "gradient")
        self.record(loss, len(batch[0]))
        return loss, g

    def is_usable(self, *pieces: np.ndarray, agree=None) -> bool:
        """Update a dynamic loss scale, and return whether the gradient that this rank holds in `pieces` is fit for a
        step. `pieces` are one or more vectors.

        With a dynamic loss scale a step is skipped if the gradient is not finite, because it has overflowed; the scale
        is then halved. Otherwise this is True and costs nothing. If ranks hold different parts of the gradient, all
        ranks of the communicator `agree` skip a step if one of them has to: they all-reduce one number.
        """
        scale = self.loss_scale
        if scale is None or not scale.is_dynamic:
            return True
        usable = math.isfinite(sum(map(kernels.squared_norm, pieces)))
        if agree is not None:
            flag = kernels.beside(np.array([not usable], np.float32), pieces[0])
            usable = not agree.all_reduce(flag)[0]
        self.measure("loss scale", scale.value)
        scale.update(usable)
        self.measure("skipped steps", scale.skipped)
        return usable

    def store(self, w: np.ndarray) -> None:
        """End an update of w, (d,): if weights are kept in 16 bits, round them, in place, equally on all ranks."""
        if self.short_weights:
            self.short_weights.store(w, self.event_log.step)

    def portion(self, w: np.ndarray, indices: np.ndarray) -> tuple[float, np.ndarray]:
        """Return (loss, g) at w: means over the training samples at `indices`. The loss is not recorded."""
        return self._gradient(w, self._fetch(indices), "portion")

    def descend(
        self,
        shared,
        step: Callable,
        *args,
        compiled: Callable,
        per_step: int = 1,
        dense: bool = False,
        gradients: int = 1,
    ) -> None:
        """Take the steps of the next mini-batch in shared memory (`comm.shared`), `per_step` samples per step.

        A step is `step(w, samples, *args)`; many steps on sparse rows are `compiled(w, indices, rows, *args, atomic)`:
        see `workloads.shared_memory`. With `dense`, a step accesses all coordinates, however sparse the samples are.
        Each sample's gradient is computed, and counted, `gradients` times. Where this can be observed, record the
        staleness, and measure the coordinates "written" per sample and the fractions of these writes that were
        "conflicts" and "lost" additions of others.
        """
        indices = next(self.batches)
        with self.computing("descend"):
            loss, tally = shared.walk(Descent(self.workload, indices, step, compiled, args, per_step, dense))
        self.record(loss / len(indices), gradients * len(indices))
        self.recorder.shared_updates(-(-len(indices) // per_step))
        if tally:
            for staleness in tally.staleness:
                self.applied(staleness)
            self.measure("written", tally.written / len(indices))
            self.measure("conflicts", tally.conflicts / tally.written)
            self.measure("lost", tally.lost / tally.written)

    def layerwise(self, batch: tuple | None = None) -> LayerwisePass:
        """Return the pass of `batch`, by default the next mini-batch, through the model layer by layer."""
        self._check_recomputation(whole_layers=True)
        return LayerwisePass(self, self.next_batch() if batch is None else batch)

    # parts of the model

    def stage(self, index: int, count: int, replica: int = 0, replicas: int = 1, cuts: Sequence[int] = ()):
        """Return stage `index` of the model cut into `count` stages. The `replicas` of a stage share the data.

        `cuts` gives the number of layers of each stage; by default, stages are balanced by work.
        """
        from workloads.stage import Stage

        self._check_recomputation(whole_layers=True)
        return Stage(self, index, count, replica, replicas, cuts)

    def module(self, index: int, count: int):
        """Return stage `index` of `count` for decoupled learning: it learns without the error of the next stage."""
        from workloads.decoupled import Module

        self._check_recomputation()
        return Module(self, index, count)

    def tensor_shard(self, rank: int, ranks: int, stage: int = 0, stages: int = 1, chunks: int = 1):
        """Return shard `rank` of the model, split by columns and rows over `ranks` ranks that share every sample.

        In a pipeline, the shard contains only the blocks of `stage`, and mini-batches come in `chunks` equal parts.
        """
        from workloads.tensor_shard import TensorShard

        self._check_recomputation()
        blocks = self.workload.blocks(rank, ranks)
        some = shares(len(blocks), stages)[stage]
        return TensorShard(self, rank, blocks, lambda _, size: np.arange(size)[shares(size, ranks)[rank]], some, chunks)

    def grid_shard(
        self,
        rank: int,
        ranks: int,
        stage: int,
        stages: int,
        chunks: int = 1,
        pieces: Sequence[slice] = (),
        attention=None,
        holder: tuple[int, int] = (0, 1),
        exchange=None,
    ):
        """Return a tensor shard at the positions in `pieces`, whose experts are divided among further ranks.

        Without `pieces` it has all positions. `holder` is (holder, holders): which part of the experts it has.
        `attention` and `exchange` reach the other ranks: see `grid_shard.py`.
        """
        from workloads.grid_shard import GridShard

        self._check_recomputation()
        some = shares(len(self.workload.blocks(rank, ranks, holder)), stages)[stage]
        return GridShard(self, rank, ranks, some, chunks, pieces, attention, holder, exchange)

    def sequence_shard(self, pieces: Sequence[slice]):
        """Return the transformer on some positions of every sequence: those in `pieces`, ascending slices."""
        from workloads.sequence_shard import SequenceShard

        self._check_recomputation()
        return SequenceShard(self, pieces)

    def expert_shard(self, rank: int, ranks: int):
        """Return shard `rank` of a model whose experts are divided evenly among `ranks` ranks."""
        from workloads.expert_shard import ExpertShard

        self._check_recomputation()
        return ExpertShard(self, rank, ranks)

    def unit_shard(self, rank: int, assign: Callable[[int], Sequence[np.ndarray]]):
        """Return the shard of `rank` in a model split by units.

        assign(n), called for each layer, returns an array of units for each rank, out of the layer's n. The shard's
        `assigned` has the assignment, by layer and rank.
        """
        from workloads.tensor_shard import TensorShard

        self._check_recomputation()
        assigned = [assign(units) for units in self.workload.units]
        mine = [ranks[rank] for ranks in assigned]
        shard = TensorShard(self, rank, self.workload.unit_blocks([*map(len, mine)]), lambda layer, _: mine[layer])
        shard.assigned = assigned
        return shard

    # records

    def needs(self, w, g, saved, scratch: int = 0) -> None:
        """Record what this rank holds: w, the gradient g, the arrays nested in `saved` for backward, and `scratch`
        bytes that backward computes again.
        """
        self.event_log.hold("parameters", self._with_copies(w.nbytes))
        self.event_log.hold("gradients", g.nbytes)
        self.holds("activations", scratch + sum(self.workload.extents(saved).values()))

    def repeats(self, part, samples: int) -> int:
        """Return the size in bytes of the attention weights that a backward pass through the model `part` recomputes
        and holds.
        """
        return part.scratch(samples) if self.workload.recomputes == "selective" else 0

    def computing(self, label: str) -> AbstractContextManager[None]:
        """Return a context that records its block as a compute span.

        If layers exchange statistics in between, the block is recorded as several spans.
        """
        doing = self.event_log.doing(COMPUTE, label)
        if self.loss_scale:
            return self._scaling(self._exchanging(doing) if self._synchronised else doing)
        return self._exchanging(doing) if self._synchronised else doing

    def applied(self, staleness: int) -> None:
        """Record an update of the shared model, computed from parameters `staleness` updates old."""
        self.recorder.record_update(staleness)

    def holds(self, kind: str, nbytes: int, stored: int = 0) -> None:
        """Set the number of bytes of `kind` (one of `tracing.HELD`) that this rank holds to `nbytes` + `stored`.

        Raise OutOfMemory if the total exceeds the rank's memory. Computing a gradient already records parameters,
        gradients and activations; optimizers record their state, and `kernels.keep` its argument. In mixed precision,
        the 16-bit copy with which a training rank computes is added to its parameters. Those `stored` have no copy,
        because the rank does not compute with them.
        """
        self.recorder.holds(kind, stored + (self._with_copies(nbytes) if kind == "parameters" else nbytes))

    def measure(self, quantity: str, value: float) -> None:
        """Record the value of a quantity that the algorithm measures, such as "noise scale" or "spread"."""
        self.recorder.measure(quantity, value)

    def report(self, w: np.ndarray, where: slice | np.ndarray = slice(None), new: bool = True) -> None:
        """Record the model that this rank would ship now, or only the part of it at `where`, a slice or an index array.

        The model is evaluated outside the run's clock. The report counts as an update if it is `new`; steps in shared
        memory are counted separately.
        """
        if self.serves:  # a training rank has recorded them with its gradient
            self.holds("parameters", w.nbytes)
        self.recorder.report(w, where, new)

    def record(self, loss: float, samples: int) -> None:
        """Record the mean loss of a mini-batch; `samples` is its size. Raise Diverged if the loss is not finite."""
        self.recorder.loss(loss, samples)

    def _check_recomputation(self, whole_layers: bool = False) -> None:
        """Raise ValueError if activations are to be recomputed, which a pass through parts of the model cannot do.

        It can recompute attention weights if it runs `whole_layers`.
        """
        how = self.workload.recomputes
        if how == "full":
            raise ValueError(
                "recompute_activations: this method passes through parts of the model, and only gradients of the whole "
                "model recompute all activations; remove it, or use a method such as sync_sgd or local_sgd. Pipelines "
                "have a setting of their own, recompute."
            )
        if how == "selective" and not whole_layers:
            raise ValueError(
                "recompute_activations: selective is for methods that compute gradients of the whole model, layer by "
                "layer or in a pipeline, and this is none of them; remove it, or use one: sync_sgd, zero3 or gpipe."
            )

    def _with_copies(self, nbytes: int) -> int:
        """Return the size in bytes of parameters that take `nbytes` in float32, including their 16-bit copy if there is
        one.
        """
        if self.short_weights:
            return nbytes // 2
        return nbytes + nbytes // 2 if self.workload.in_16_bits and not self.serves else nbytes

    def _fetch(self, indices: np.ndarray) -> tuple:
        return tuple(to_device(part, self.comm.device) for part in self.workload.batch(indices))

    def _gradient(self, w, batch: tuple, label: str) -> tuple:
        """Return (loss, g), and record the least memory that a gradient of the whole model needs."""
        with self.computing(label):
            loss, g = self._replayed(w, *batch) if self._replayed else self.workload.gradient(w, batch)
        self.event_log.hold("parameters", self._with_copies(w.nbytes))
        self.event_log.hold("gradients", g.nbytes)
        self.holds("activations", self.workload.activations.get(len(batch[0]), 0))
        if self._replayed:
            self.event_log.replays = self._replayed.replays
        return loss, g

    def _replay_if_possible(self) -> ReplayedGradient | None:
        """Return the workload's gradient, replayed from CUDA graphs.

        If it cannot be replayed, add a remark that says why, and return None.
        """
        workload, refuse = self.workload, self.event_log.remarks.append
        obstacles = {
            "the ranks computed on the CPU": self.comm.device == "cpu",
            f"what {workload.name} launches depends on the batch": not workload.launches_by_shape,
            "a replay would reuse the captured loss scale and the captured costs of 16-bit layers": workload.in_16_bits,
            "batch norms exchange statistics in the middle of a gradient": self._synchronised,
        }
        if why := next((why for why, is_met in obstacles.items() if is_met), ""):
            refuse(why)
            return None
        return ReplayedGradient(lambda w, *batch: workload.gradient(w, batch), refuse)

    @contextmanager
    def _exchanging(self, doing: AbstractContextManager) -> Iterator[None]:
        """Let batch norms in the block exchange statistics with all ranks. The recorded span does not contain the
        exchange.
        """

        def gather(x: Any) -> list:
            doing.__exit__(None, None, None)
            try:
                return self.comm.all_gather(x)
            finally:
                doing.__enter__()

        with doing, use_gather(gather):
            yield

    @contextmanager
    def _scaling(self, doing: AbstractContextManager) -> Iterator[None]:
        """Let layers in the block multiply and divide by this rank's loss scale."""
        with doing, use_scale(self.loss_scale):
            yield

    def _spent(self, together: bool) -> bool:
        spent = self.budget.is_reached(self.event_log.clock(), self.recorder.recent)
        if not together or self.comm.size == 1:
            return spent
        with meter_kernels(None):
            return bool(self.comm.all_reduce(np.array([spent], np.float32))[0])
