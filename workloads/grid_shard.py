"""Grid shard: a tensor shard of some blocks at some positions of every sequence, with some of the experts.

Besides sums, a block may need two exchanges with other ranks, which are passed in: attention reads the keys of other
positions, and rows of tokens travel to the experts that they choose:

    attention.forward(q, k, v)   -> (a, saved)       exchange.to_experts(rows)        -> (own, saved)
    attention.backward(da, saved) -> (dq, dk, dv)    exchange.to_tokens(own, saved)   -> rows

as in `sequence_shard.py` and `expert_shard.py`.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kernels import to_device
from kernels.arrays import concatenate, shares, take
from tracing import COMPUTE
from workloads.blocks import Block
from workloads.experts import RoutingTally
from workloads.tensor_shard import BlockShard, TensorShard
from workloads.transformer_blocks import ExpertsBlock, HeadsBlock, TokenBlock, TokenBlockAt


class GridShard(TensorShard, RoutingTally):
    """Shard `rank` of `ranks` of one pipeline stage; see `TensorShard`.

    `pieces` are ascending slices of the positions that the shard has; if there are none, it has all positions. `holder`
    is (holder, holders): the shard has part `holder` of `holders` of the experts of each mixture. Their parameters are
    the first `experts` numbers of w.
    """

    def __init__(self, task, rank, ranks, some: slice, chunks, pieces: Sequence[slice], attention, holder, exchange):
        self.pieces, self.attention, self.exchange = tuple(pieces), attention, exchange
        blocks = task.workload.blocks(rank, ranks, holder)
        if pieces:
            time = sum(piece.stop - piece.start for piece in pieces)
            blocks = [_at_pieces(block, self.pieces, time) for block in blocks]
        super().__init__(task, rank, blocks, lambda _, size: np.arange(size)[shares(size, ranks)[rank]], some, chunks)

    def next_batch(self) -> tuple:
        """Return (x, target) of the next mini-batch, at the positions of this shard, and clear the tally."""
        self.clear_tally()
        if not self.pieces:
            return self.task.next_batch()
        parts = self.task.workload.batch(next(self.task.batches))
        return tuple(to_device(take(part, self.pieces, axis=1), self.task.comm.device) for part in parts)

    def mean_loss(self) -> float:
        """Return the mean loss of the micro-batches since the last call, at the positions of this shard."""
        mean = sum(self._losses) / len(self._losses)
        self._losses.clear()
        return mean

    def report_part(self, w, first: bool, experts: bool) -> None:
        """Report the parts of the model that this rank would ship now: its experts if `experts`, and everything else if
        `first`.
        """
        start, stop = 0 if self.rank == 0 else self.biases, len(w) if self.rank == 0 else self.sharded
        start, stop = start if experts else self.experts, stop if first else self.experts
        self.task.report(w[start:stop], self.where[start:stop])

    def _record(self, loss: float, target) -> None:
        self._losses.append(loss)

    def _shard(self, number: int, block: Block, places: list) -> BlockShard:
        if isinstance(block, ExpertsBlock):
            return ExpertsShard(self.task, number, block, places, self.exchange, self)
        if isinstance(block, HeadsBlock) and self.pieces:
            return HeadsShard(self.task, number, block, places, self.attention)
        return super()._shard(number, block, places)


class HeadsShard(BlockShard):
    """An attention block at some positions. `attention` also reads the keys of the other positions."""

    def __init__(self, task, number, block: HeadsBlock, places, attention):
        super().__init__(task, number, block, places)
        self.attention = attention

    def inner(self, w, h):
        parts = self._cut(w)
        with self.event_log.doing(COMPUTE, self._forward):
            h, queries = self.block.queries(parts, h)
        a, kept = self.attention.forward(*queries)
        with self.event_log.doing(COMPUTE, self._forward):
            return self.block.output(parts, a), (h, a, kept)

    def inner_back(self, w, saved, dz, g):
        (h, a, kept), parts = saved, self._cut(w)
        with self.event_log.doing(COMPUTE, self._backward):
            da = self.block.output_back(parts, dz, a)
        dqkv = self.attention.backward(da, kept)
        with self.event_log.doing(COMPUTE, self._backward):
            return self.block.queries_back(parts, (h, a), dqkv, dz, self._cut(g))


class ExpertsShard(BlockShard):
    """A mixture of experts; `exchange` takes rows of tokens to their experts and back."""

    def __init__(self, task, number, block: ExpertsBlock, places, exchange, tally: RoutingTally):
        super().__init__(task, number, block, places)
        self.exchange, self.tally = exchange, tally

    def enter(self, w, x):
        h, routing = super().enter(w, x)
        self.tally.count(routing)
        return h, routing

    def inner(self, w, h):
        own, sent = self.exchange.to_experts(h)
        with self.event_log.doing(COMPUTE, self._forward):
            outputs, saved = self.block.compute(self._cut(w), own)
        return concatenate(self.exchange.to_tokens(outputs, sent)), saved

    def leave(self, w, z, x, entered):
        with self.event_log.doing(COMPUTE, self._forward):
            return self.block.combine(z, x, entered)

    def inner_back(self, w, saved, dz, g):
        own, sent = self.exchange.to_experts(dz)
        with self.event_log.doing(COMPUTE, self._backward):
            drows = self.block.compute_back(self._cut(w), saved, own, self._cut(g))
        return concatenate(self.exchange.to_tokens(drows, sent))


def _at_pieces(block: Block, pieces: tuple[slice, ...], time: int) -> Block:
    """Return the block restricted to the positions in `pieces`. There are `time` of these positions."""
    if isinstance(block, TokenBlock):
        return TokenBlockAt(block.here, block.first, pieces)
    return replace(block, time=time) if isinstance(block, HeadsBlock) else block
