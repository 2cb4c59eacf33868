"""Tensor shard: the part of a model that one rank holds if several ranks compute every sample together.

Its numbers are in one vector w, (d_r,): first the sharded parameters, which no other rank has, then the replicated
ones, with those of norms last. Replicas stay equal, since every rank computes the same gradient for them. If experts
are divided among further ranks, those of this rank are at the very beginning, their replicated biases first.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

import kernels
from kernels import to_device
from tracing import COMPUTE
from workloads.blocks import Block
from workloads.experts import SHARED
from workloads.transformer_blocks import ExpertsBlock

_EXPERT_BIAS, _EXPERT, _SHARDED, _REPLICATED, _NORM = KINDS = range(5)


class TensorPiece(NamedTuple):
    """This rank's piece of a tensor. `places` has the index in the whole model of each of its numbers, in the piece's
    shape.
    """

    kind: int
    places: np.ndarray


class TensorShard:
    """The shard of rank `rank` in a model that consists of `blocks`.

    Along a split axis, it has the indices that own(number of the block, size of the axis) returns. `some` selects the
    blocks that it holds, by default all of them, and `chunks` is the number of micro-batches per recorded loss.
    Arrays: w (d_r,), y (rows, outputs); with `outputs_split`, y has only the outputs of this rank, `classes`.
    """

    def __init__(
        self,
        task,
        rank: int,
        blocks: Sequence[Block],
        own: Callable[[int, int], np.ndarray],
        some: slice = slice(None),
        chunks: int = 1,
    ):
        self.task, self.rank, self.model, self.chunks = task, rank, task.workload.model, chunks
        self.assigned: list[Sequence[np.ndarray]] = []  # by layer and rank, if units are assigned
        self._losses: list[float] = []  # of micro-batches whose mini-batch is incomplete
        tensors = iter(self.model.tensors)
        every = [[*_pieces(block, tensors, partial(own, number))] for number, block in enumerate(blocks)]
        here = range(len(blocks))[some]
        pieces = [piece for number in here for piece in every[number]]
        order = sorted(range(len(pieces)), key=lambda i: pieces[i].kind)
        ends = np.cumsum([pieces[i].places.size for i in order]).tolist()
        lies = {i: slice(end - pieces[i].places.size, end) for i, end in zip(order, ends, strict=True)}
        bound = ((lies[i], piece.places.shape) for i, piece in enumerate(pieces))
        self.blocks = [self._shard(number, blocks[number], list(islice(bound, len(every[number])))) for number in here]
        self.where = np.concatenate(
            [pieces[i].places.ravel() for i in order]
        )  # (d_r,): the place of each number in the model
        sizes = np.bincount([p.kind for p in pieces], [p.places.size for p in pieces], len(KINDS)).astype(int)
        self.biases, self.experts, self.sharded, norms = (int(sizes[:kind].sum()) for kind in KINDS[1:])
        self.norms = slice(norms, len(self.where))
        self.outputs_split = not blocks[-1].partial
        classes = self.model.outputs[-1]
        self.classes = own(len(blocks) - 1, classes) if self.outputs_split else np.arange(classes)

    def _shard(self, number: int, block: Block, places: list) -> "BlockShard":
        return BlockShard(self.task, number, block, places)

    def start(self):
        """Return the initial parameters of this shard, (d_r,)."""
        return to_device(self.task.workload.start(self.task.seed)[self.where], self.task.comm.device)

    def report(self, w) -> None:
        """Report the shard that this rank would ship now. Rank 0 also ships the replicated parameters."""
        count = len(w) if self.rank == 0 else self.sharded
        self.task.report(w[:count], self.where[:count])

    # the loss is recorded on rank 0 only, since all ranks compute the same

    def loss(self, y, target) -> tuple:
        """Record the mean loss, and return it and the gradient at y, (loss, dy). y must have all outputs."""
        with self.task.event_log.doing(COMPUTE, "loss"):
            loss, dy = self.model.loss(y, target)
        self._record(loss, target)
        return loss, dy

    def largest(self, z):
        """Return the largest value of each row, (rows,)."""
        with self.task.event_log.doing(COMPUTE, "loss"):
            largest = kernels.empty(len(z), z)
            kernels.row_largest(largest, z)
            return largest

    def sums(self, z, largest, target):
        """Return this rank's sums of exp(z - largest) and of z[target] - largest, (2, rows)."""
        with self.task.event_log.doing(COMPUTE, "loss"):
            sums = kernels.empty((2, len(z)), z)
            kernels.vocabulary_sums(sums, z, largest, target.reshape(-1), int(self.classes[0]))
            return sums

    def cross_entropy(self, z, largest, sums, target) -> tuple:
        """Record the mean loss, and return (loss, dz), with the gradient at z, given the `sums` over all ranks."""
        with self.task.event_log.doing(COMPUTE, "loss"):
            dz = kernels.empty_like(z)
            loss = kernels.vocabulary_cross_entropy(dz, z, largest, sums, target.reshape(-1), int(self.classes[0]))
        self._record(loss, target)
        return loss, dz

    def _record(self, loss: float, target) -> None:
        self._losses.append(loss)
        if len(self._losses) == self.chunks:
            if self.rank == 0:
                self.task.record(sum(self._losses) / self.chunks, len(target) * self.chunks)
            self._losses.clear()


class BlockShard:
    """A block of a shard, on the shard's vectors w and g. Each method is recorded as a compute span of the rank."""

    def __init__(self, task, number: int, block: Block, places: list[tuple[slice, tuple[int, ...]]]):
        self.event_log, self.block, self.places = task.event_log, block, places
        self.first, self.partial = number == 0, block.partial
        self._forward, self._backward = f"F{number}", f"B{number}"

    def enter(self, w, x) -> tuple:
        """Return (h, saved), the input of the block's middle, which every rank computes."""
        with self.event_log.doing(COMPUTE, self._forward):
            return self.block.enter(self._cut(w), x)

    def inner(self, w, h) -> tuple:
        """Return (z, saved), this rank's share of the middle's outputs."""
        with self.event_log.doing(COMPUTE, self._forward):
            return self.block.inner(self._cut(w), h)

    def leave(self, w, z, x, entered) -> tuple:
        """Return (y, saved), the block's outputs, which every rank computes from the whole z.

        `entered` is what `enter` saved.
        """
        with self.event_log.doing(COMPUTE, self._forward):
            return self.block.leave(self._cut(w), z, x)

    def leave_back(self, saved, dy) -> tuple:
        """Return (dz, past): the gradients for the middle and on the residual path."""
        with self.event_log.doing(COMPUTE, self._backward):
            return self.block.leave_back(saved, dy)

    def inner_back(self, w, saved, dz, g):
        """Write the gradients of all parameters except those of `enter` to g. Return this rank's contribution to dh, or
        None in the first block.
        """
        with self.event_log.doing(COMPUTE, self._backward):
            return self.block.inner_back(self._cut(w), saved, dz, self._cut(g), not self.first)

    def enter_back(self, w, saved, dh, past, g):
        with self.event_log.doing(COMPUTE, self._backward):
            return self.block.enter_back(self._cut(w), saved, dh, past, self._cut(g))

    def _cut(self, vector) -> list:
        return [vector[place].reshape(shape) for place, shape in self.places]


def _pieces(block: Block, tensors: Iterator, own: Callable[[int], np.ndarray]) -> Iterator[TensorPiece]:
    for number, (axis, (place, shape)) in enumerate(
        zip(block.axes, tensors, strict=False)
    ):  # tensors continue in the next block
        places = np.arange(place.start, place.stop).reshape(shape)
        own_part = places if axis is None else places.take(own(shape[axis]), axis)
        if isinstance(block, ExpertsBlock) and number >= SHARED:
            if block.holds(number):
                yield TensorPiece(_EXPERT_BIAS if axis is None else _EXPERT, own_part)
        elif axis is None:
            yield TensorPiece(_NORM if number < block.norms else _REPLICATED, own_part)
        else:
            yield TensorPiece(_SHARDED, own_part)
