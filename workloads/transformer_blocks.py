"""Transformer blocks: the blocks of a transformer, split over ranks; see `blocks.py` for what a block is.

A rank has some of the heads in an attention block, of the hidden units in an MLP block and in its experts, and of the
tokens in the embedding and the head. Rows are positions, (samples time, width). Norms, routers, biases after a sum, and
the residual path are replicated.
Source: Shoeybi et al., Megatron-LM, arXiv:1909.08053, section 3.
"""

from dataclasses import dataclass

import kernels
from kernels.arrays import shares, take
from workloads.blocks import PlainBlock
from workloads.experts import OWN, SHARED, MoeBlock, by_expert, expert_weights, run_experts, run_experts_back
from workloads.transformer import attend, attend_back, back, norm, norm_weights, project, rows


@dataclass(frozen=True)
class TokenBlock(PlainBlock):
    """The embedding. A rank looks up the tokens of its part of the table, and returns zeros for the others."""

    here: slice  # the tokens of this rank
    first: bool  # whether this rank adds the position embedding
    axes = (0, None)

    def inner(self, parts, x):
        table, places = parts
        elsewhere = (x < self.here.start) | (x >= self.here.stop)
        local = x - self.here.start
        local[elsewhere] = 0
        z = kernels.empty((*x.shape, table.shape[1]), table)
        kernels.embedding_forward(z, local, table, kernels.zeros_like(places))
        z[elsewhere] = 0
        if self.first:
            z += places
        return rows(z), (local, elsewhere)

    def inner_back(self, parts, saved, dz, g, needed):
        local, elsewhere = saved
        dz = dz.reshape(*local.shape, -1)
        mine = kernels.copy(dz)
        mine[elsewhere] = 0
        kernels.embedding_backward_weights(g[0], g[1], local, mine)
        g[1][:] = dz.sum(0)  # the position embedding's gradient is that of all tokens
        return None


@dataclass(frozen=True)
class TokenBlockAt(TokenBlock):
    """The embedding of the positions in `pieces`."""

    pieces: tuple[slice, ...] = ()

    def inner(self, parts, x):
        table, places = parts
        return super().inner((table, take(places, self.pieces)), x)

    def inner_back(self, parts, saved, dz, g, needed):
        table, places = g
        own = kernels.empty_like(take(places, self.pieces))
        super().inner_back(parts, saved, dz, (table, own), needed)
        places[:] = 0
        for piece, part in zip(self.pieces, shares(len(own), len(self.pieces)), strict=True):
            places[piece] = own[part]


class NormedBlock:
    """The methods before and after the middle of a block that begins with a norm, and ends with a bias and a residual
    sum.
    """

    norms, partial = 2, True

    def enter(self, parts, x):
        h, u, r = norm(x, *parts[:2])
        return h, (u, r)

    def leave(self, parts, z, x):
        kernels.bias_forward(z, z, parts[-1], False)
        kernels.residual_add(z, x, z, 1.0)
        return z, ()

    def leave_back(self, saved, dy):
        return dy, dy

    def enter_back(self, parts, saved, dh, past, g):
        u, r = saved
        norm_weights(g[:2], u, dh)
        dx = kernels.empty_like(dh)
        kernels.layer_norm_backward_input(dx, dh, u, r, parts[0])
        if past is not None:
            kernels.residual_add(dx, dx, past, 1.0)
        return dx


@dataclass(frozen=True)
class HeadsBlock(NormedBlock):
    """An attention block. A rank has the columns of Wq, Wk and Wv of its heads, and the same rows of Wo."""

    time: int
    heads: int  # of this rank
    axes = (None, None, 1, 0, 1, 0, 1, 0, 0, None)

    def inner(self, parts, h):
        h, (q, k, v) = self.queries(parts, h)
        a, p = attend(self.heads, q, k, v)
        return self.output(parts, a), (h, q, k, v, p, a)

    def inner_back(self, parts, saved, dz, g, needed):
        h, q, k, v, p, a = saved
        dqkv = attend_back(self.output_back(parts, dz, a), p, q, k, v)
        return self.queries_back(parts, (h, a), dqkv, dz, g)

    # what each position does by itself, before attention and after it

    def queries(self, parts, h) -> tuple:
        """Return (h, (q, k, v)), each with an axis of samples, (n, time, width)."""
        _, _, wq, bq, wk, bk, wv, bv, _, _ = parts
        h = h.reshape(-1, self.time, h.shape[1])
        return h, (project(h, wq, bq), project(h, wk, bk), project(h, wv, bv))

    def output(self, parts, a):
        """Return z, this rank's share of the projection of a, the attention output of each position."""
        wo = parts[8]
        z = kernels.empty((len(a) * self.time, wo.shape[1]), a)
        kernels.matmul(z, rows(a), wo)
        return z

    def output_back(self, parts, dz, a):
        """Return the gradient of a, the attention output of each position."""
        return back(dz, parts[8]).reshape(a.shape)

    def queries_back(self, parts, saved, dqkv, dz, g):
        """Write the gradients of the projections' parameters to g. Return dh, given the gradients of queries, keys and
        values.
        """
        _, _, wq, _, wk, _, wv, _, _, _ = parts
        (h, a), (dq, dk, dv) = saved, dqkv
        for i, (x, dy) in enumerate(((h, dq), (h, dk), (h, dv), (a, dz)), 1):
            kernels.dense_backward_weights(*g[2 * i : 2 * i + 2], rows(x), rows(dy))
        dh = back(dq, wq)
        for other in back(dk, wk), back(dv, wv):
            kernels.residual_add(dh, dh, other, 1.0)
        return rows(dh)


@dataclass(frozen=True)
class HiddenBlock(NormedBlock):
    """An MLP block. A rank has the columns of W1 of its hidden units, and the same rows of W2."""

    axes = (None, None, 1, 0, 0, None)

    def inner(self, parts, h):
        _, _, w1, b1, w2, _ = parts
        z = project(h, w1, b1)
        a = kernels.empty_like(z)
        kernels.gelu_forward(a, z)
        y = kernels.empty((len(h), w2.shape[1]), h)
        kernels.matmul(y, a, w2)
        return y, (h, z, a)

    def inner_back(self, parts, saved, dy, g, needed):
        _, _, w1, _, w2, _ = parts
        h, z, a = saved
        kernels.dense_backward_weights(g[4], g[5], a, dy)
        dz = back(dy, w2)
        kernels.gelu_backward(dz, dz, z, a)
        kernels.dense_backward_weights(g[2], g[3], h, dz)
        return back(dz, w1)


@dataclass(frozen=True)
class ExpertsBlock(NormedBlock):
    """A mixture of experts. A rank has its hidden units of the experts `own`, to which rows of tokens travel.

    All ranks choose the same experts. What an expert returns is a sum over ranks, and so is the gradient of what it
    takes.
    """

    layer: MoeBlock
    own: slice
    first: bool  # whether this rank adds the experts' last biases

    @property
    def axes(self) -> tuple[int | None, ...]:
        return (None,) * SHARED + (1, 0, 0, None) * self.layer.experts

    def holds(self, number: int) -> bool:
        """Return whether this rank has a part of tensor `number` of the layer."""
        return number < SHARED or (number - SHARED) // OWN in range(self.own.start, self.own.stop)

    def enter(self, parts, x):
        return self.layer.enter(parts, x)

    def compute(self, parts, rows) -> tuple:
        """Return (outputs, saved) of this rank's units, given the rows of each of its experts."""
        own = parts[SHARED:]
        if not self.first:
            own = [part for *units, bias in by_expert(own) for part in (*units, kernels.zeros_like(bias))]
        return run_experts(own, rows)

    def compute_back(self, parts, saved, doutputs, g):
        """Write the gradients of the experts' parameters to g. Return this rank's contribution to the gradient of the
        rows.
        """
        drows, pending = run_experts_back(parts[SHARED:], saved, doutputs)
        expert_weights(g[SHARED:], pending)
        return drows

    def combine(self, z, x, routing):
        """Return (y, saved), given the rows that all experts return."""
        y, returned = self.layer.leave(x, [z], routing)
        return y, (returned, routing)

    def leave_back(self, saved, dy):
        doutputs, dweight = self.layer.leave_back(dy, *saved)
        return doutputs, (dy, dweight)

    def enter_back(self, parts, saved, dh, past, g):
        dy, dweight = past
        dx, pending = self.layer.enter_back(parts, [dh], dweight, saved, dy)
        self.layer.router_weights(g, pending)
        return dx


@dataclass(frozen=True)
class LogitsBlock(NormedBlock):
    """The head. A rank has columns of W, i.e. the logits of some tokens, and the loss does not gather the others."""

    axes, partial = (None, None, 1, 0), False

    def inner(self, parts, h):
        return project(h, *parts[2:]), (h,)

    def leave(self, parts, z, x):
        return z, ()

    def leave_back(self, saved, dy):
        return dy, None

    def inner_back(self, parts, saved, dz, g, needed):
        kernels.dense_backward_weights(g[2], g[3], *saved, dz)
        return back(dz, parts[2])
