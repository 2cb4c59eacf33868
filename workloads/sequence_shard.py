"""Sequence shard: the positions that one rank computes of every sequence, if several ranks share each sample.

All layers but attention treat each position by itself, so a rank computes them for its own positions only. Attention
involves positions of other ranks. It is passed in as an argument, which exchanges what it needs:

    attention.forward(q, k, v)     -> (a, saved)      of this rank's positions, (n, positions, width)
    attention.backward(da, saved)  -> (dq, dk, dv)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import kernels
from kernels import to_device
from kernels.arrays import shares, take
from workloads.interrupted_pass import InterruptedPass
from workloads.transformer import AttentionBlock, Embedding


class SequenceShard(InterruptedPass):
    """The model of `task` at the positions in `pieces`: ascending slices of equal length.

    Every rank has all parameters, w (d,). gradient(w, batch, attention) returns the mean loss over these positions, and
    this rank's contribution to the gradient: the mean of g over all ranks is the gradient of the mean loss over all
    positions. What attention returns for the keys and values of other ranks is part of their g.
    """

    interrupted = AttentionBlock

    def __init__(self, task, pieces: Sequence[slice]):
        self.pieces = tuple(pieces)
        first, *others = task.workload.model.layers
        if isinstance(first, Embedding):
            first = EmbeddingAt(first.tokens, first.time, first.width, self.pieces)
        super().__init__(task, [first, *others])

    def next_batch(self) -> tuple:
        """Return (x, target) of the next mini-batch at these positions, (n, positions, ...) each."""
        task = self.task
        parts = task.workload.batch(next(task.batches))
        return tuple(to_device(take(part, self.pieces, axis=1), task.comm.device) for part in parts)

    def cut(self, vector):
        return self.model.cut(vector)

    def forward(self, label, layer, parts, x, exchange):
        computing = self.task.computing
        with computing(label):
            queries, entered = layer.enter(parts, x)
        a, kept = exchange.forward(*queries)
        with computing(label):
            return layer.leave(parts, a, x), (entered, a, kept)

    def backward(self, label, layer, parts, gradients, saved, dy, exchange):
        computing = self.task.computing
        entered, a, kept = saved
        with computing(label):
            da = layer.leave_back(parts, dy)
        dqkv = exchange.backward(da, kept)
        with computing(label):
            dx, before = layer.enter_back(parts, entered, dqkv, dy)
            layer.backward_weights(gradients, (*before, *dqkv, a, dy))
        return dx


@dataclass(frozen=True)
class EmbeddingAt(Embedding):
    """The embedding of the positions in `pieces`."""

    pieces: tuple[slice, ...] = ()

    def forward(self, parts, x):
        table, places = parts
        return super().forward((table, take(places, self.pieces)), x)

    def backward_weights(self, gradients, pending):
        table, places = gradients
        own = kernels.empty_like(take(places, self.pieces))
        super().backward_weights((table, own), pending)
        places[:] = 0
        for piece, part in zip(self.pieces, shares(len(own), len(self.pieces)), strict=True):
            places[piece] = own[part]
