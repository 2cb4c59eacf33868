"""A shard: what one of several ranks holds of a model of which they compute every sample together.

Its numbers lie in one vector w, (d_r,): first those that no other rank has, then those that all have alike, and the
norms' last of these. Alike they stay, since every rank finds the same gradient for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import NamedTuple

import numpy as np

import kernels
from kernels import to_device
from workloads.blocks import Block

_COMPUTE = 0
_ALONE, _ALIKE, _NORM = range(3)


class TensorPiece(NamedTuple):
    """This rank's piece of a parameter: its places in the whole model, in the piece's own shape."""

    kind: int
    places: np.ndarray


class TensorShard:
    """The shard of rank `rank`: `blocks`, of which it has those places along a cut axis that `own(block, size)` gives.

    `some` are the blocks that it holds, if not all, and `chunks` the micro-batches whose mean loss is one record.
    Arrays: w (d_r,), y (rows, outputs); where outputs are `dealt`, those of this rank, `classes`.
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
        self.task, self.rank, self.chain, self.chunks = task, rank, task.workload.chain, chunks
        self.assigned: list[Sequence[np.ndarray]] = []  # by layer and rank, where units are dealt out
        self._losses: list[float] = []  # of micro-batches whose mini-batch is not complete
        tensors = iter(self.chain.tensors)
        every = [[*_pieces(block, tensors, partial(own, number))] for number, block in enumerate(blocks)]
        here = range(len(blocks))[some]
        pieces = [piece for number in here for piece in every[number]]
        order = sorted(range(len(pieces)), key=lambda i: pieces[i].kind)
        ends = np.cumsum([pieces[i].places.size for i in order]).tolist()
        lies = {i: slice(end - pieces[i].places.size, end) for i, end in zip(order, ends, strict=True)}
        bound = ((lies[i], piece.places.shape) for i, piece in enumerate(pieces))
        self.blocks = [
            BlockHere(task, number, blocks[number], list(islice(bound, len(blocks[number].axes)))) for number in here
        ]
        self.where = np.concatenate([pieces[i].places.ravel() for i in order])  # (d_r,), of each number in the model
        sizes = np.bincount([p.kind for p in pieces], [p.places.size for p in pieces], 3).astype(int)
        self.alone, self.norms = int(sizes[_ALONE]), slice(int(sizes[:_NORM].sum()), len(self.where))
        self.dealt = not blocks[-1].partial
        classes = self.chain.outputs[-1]
        self.classes = own(len(blocks) - 1, classes) if self.dealt else np.arange(classes)

    def start(self):
        """The first parameters of this shard, (d_r,)."""
        return to_device(self.task.workload.start(self.task.seed)[self.where], self.task.comm.device)

    def report(self, w) -> None:
        """The shard that this rank would ship now; rank 0 also ships what all have alike."""
        count = len(w) if self.rank == 0 else self.alone
        self.task.report(w[:count], self.where[:count])

    # the loss; it is recorded on rank 0, since all find the same

    def loss(self, y, target) -> tuple:
        """(loss, dy) where y is whole."""
        with self.task.event_log.doing(_COMPUTE, "loss"):
            loss, dy = self.chain.loss(y, target)
        self._record(loss, target)
        return loss, dy

    def largest(self, z):
        """(rows,): the largest of each row."""
        with self.task.event_log.doing(_COMPUTE, "loss"):
            largest = kernels.empty(len(z), z)
            kernels.row_largest(largest, z)
            return largest

    def sums(self, z, largest, target):
        """(2, rows): this rank's sums of exp(z - largest), and of z[target] - largest."""
        with self.task.event_log.doing(_COMPUTE, "loss"):
            sums = kernels.empty((2, len(z)), z)
            kernels.vocabulary_sums(sums, z, largest, target.reshape(-1), int(self.classes[0]))
            return sums

    def cross_entropy(self, z, largest, sums, target) -> tuple:
        """(loss, dz) from the sums over all ranks."""
        with self.task.event_log.doing(_COMPUTE, "loss"):
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


class BlockHere:
    """A block of a shard, on the shard's vectors w and g; each of its parts takes the rank's time."""

    def __init__(self, task, number: int, block: Block, places: list[tuple[slice, tuple[int, ...]]]):
        self.event_log, self.block, self.places = task.event_log, block, places
        self.first, self.partial = number == 0, block.partial
        self._forward, self._backward = f"F{number}", f"B{number}"

    def enter(self, w, x) -> tuple:
        """(h, saved): what every rank computes alike before the middle."""
        with self.event_log.doing(_COMPUTE, self._forward):
            return self.block.enter(self._cut(w), x)

    def inner(self, w, h) -> tuple:
        """(z, saved): this rank's share of the middle."""
        with self.event_log.doing(_COMPUTE, self._forward):
            return self.block.inner(self._cut(w), h)

    def leave(self, w, z, x) -> tuple:
        """(y, saved): what every rank computes alike after it."""
        with self.event_log.doing(_COMPUTE, self._forward):
            return self.block.leave(self._cut(w), z, x)

    def leave_back(self, saved, dy) -> tuple:
        """(dz, past): the gradient for the middle, and the one that goes past it."""
        with self.event_log.doing(_COMPUTE, self._backward):
            return self.block.leave_back(saved, dy)

    def inner_back(self, w, saved, dz, g):
        """dh, this rank's summand; None in the first block."""
        with self.event_log.doing(_COMPUTE, self._backward):
            return self.block.inner_back(self._cut(w), saved, dz, self._cut(g), not self.first)

    def enter_back(self, w, saved, dh, past, g):
        """dx."""
        with self.event_log.doing(_COMPUTE, self._backward):
            return self.block.enter_back(self._cut(w), saved, dh, past, self._cut(g))

    def _cut(self, vector) -> list:
        return [vector[place].reshape(shape) for place, shape in self.places]


def _pieces(block: Block, tensors: Iterator, own: Callable[[int], np.ndarray]) -> Iterator[TensorPiece]:
    for number, (axis, (place, shape)) in enumerate(zip(block.axes, tensors, strict=False)):  # tensors go on
        places = np.arange(place.start, place.stop).reshape(shape)
        if axis is None:
            yield TensorPiece(_NORM if number < block.norms else _ALIKE, places)
        else:
            yield TensorPiece(_ALONE, places.take(own(shape[axis]), axis))
