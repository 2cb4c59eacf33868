"""Mixture of experts: an MLP block with several MLPs; each position chooses a few of them.

    p = softmax(LN(x) R)          x <- x + sum over the k chosen experts e of weight_e MLP_e(LN(x))

The chosen experts are those with the largest p; weight_e is p_e if k = 1, and p_e divided by the sum over the chosen if
k > 1. The router R learns through the weights only. A position is called a token here, as in the literature.

In training an expert takes at most ceil(capacity k tokens / experts) of the tokens of a mini-batch, the first ones in
their order. A token that finds its expert full passes by the residual path alone. Evaluation drops no token.

The balance loss, balance experts sum over e of f_e P_e, is smallest if all experts are chosen equally often: f_e is the
fraction of tokens whose first choice is e, and P_e the mean of p_e. Its gradient is added to that of the router's
logits; the loss that is recorded does not contain it.
Source: Shazeer et al., arXiv:1701.06538; Lepikhin et al., GShard, arXiv:2006.16668; Fedus, Zoph & Shazeer, Switch
Transformers, arXiv:2101.03961 (k = 1, capacity, balance loss).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

import kernels
from kernels import to_numpy
from kernels.arrays import concatenate
from workloads.layers import Layer, he
from workloads.loss_scale import current_scale
from workloads.transformer import (
    GROWTH,
    mlp,
    mlp_back,
    mlp_shapes,
    mlp_start,
    mlp_weights,
    norm,
    norm_back,
    norm_weights,
    rows,
)

SHARED = 3  # parameters of a block before those of its experts: gain and bias of the norm, and R
OWN = 4  # parameters of an expert: W1, b1, W2, b2


class Routing(NamedTuple):
    """The assignment of a block's tokens to experts, with what the backward pass needs to know."""

    u: Any  # (samples, time, width), of the norm
    r: Any  # (tokens,), of the norm
    h: Any  # (samples, time, width): the tokens after the norm
    p: Any  # (tokens, experts)
    weight: Any  # (tokens, k)
    chosen: Any  # (tokens, k)
    place: Any  # (tokens, k): row of each choice among those of all experts, -1 if the expert was full
    share: Any  # (experts,): fraction of tokens whose first choice it is
    wanted: np.ndarray  # (experts,): number of choices, including those that were dropped
    taken: np.ndarray  # (experts,): number of rows


@dataclass(frozen=True)
class MoeBlock(Layer):
    """A block with a mixture of experts, as described at the top of this file. Rows of tokens are sorted by expert, and
    then by token.

    Parameters: gain and bias of the norm, R, then W1, b1, W2, b2 of each expert. With one expert it computes what an
    MlpBlock with the same parameters does.
    """

    time: int
    width: int
    gain: float = 1.0
    experts: int = 4
    chosen: int = 1
    capacity: float = 1.25
    balance: float = 0.01

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.time, self.width

    outputs = inputs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.width,), (self.width,), (self.width, self.experts), *mlp_shapes(self.width) * self.experts

    @property
    def flops(self) -> int:
        return self.time * self.width * (2 * self.experts + 4 * GROWTH * self.chosen * self.width)

    def start(self, generator):
        experts = [part for _ in range(self.experts) for part in mlp_start(generator, self.width, self.gain)]
        router = he(generator, (self.width, self.experts), self.width, "none")
        return np.ones(self.width), np.zeros(self.width), router, *experts

    def forward(self, parts, x):
        inputs, routing = self.enter(parts, x)
        outputs, inside = run_experts(parts[SHARED:], inputs)
        y, returned = self.leave(x, outputs, routing)
        return y, (routing, returned, inside)

    def evaluate(self, parts, x, statistics=None):
        inputs, routing = self.enter(parts, x, limited=False)
        outputs, _ = run_experts(parts[SHARED:], inputs)
        return self.leave(x, outputs, routing)[0]

    def backward_input(self, parts, saved, dy, needed=True):
        routing, returned, inside = saved
        doutputs, dweight = self.leave_back(dy, returned, routing)
        dinputs, pending = run_experts_back(parts[SHARED:], inside, doutputs)
        dx, before = self.enter_back(parts, dinputs, dweight, routing, dy, needed)
        return dx, (pending, *before, dy)

    def backward_weights(self, gradients, pending):
        experts, *before, _ = pending
        self.router_weights(gradients, before)
        expert_weights(gradients[SHARED:], experts)

    # what is done where the tokens are, before their rows go to experts and after they have returned

    def enter(self, parts, x, limited: bool = True) -> tuple:
        """Return (inputs, routing): the rows of tokens that each expert takes, and what the other methods need to know
        about them.

        `inputs` is a list with an array (rows, width) for each expert.
        """
        gain, bias, router = parts[:SHARED]
        h, u, r = norm(x, gain, bias)
        z = kernels.empty((len(r), self.experts), x)
        kernels.matmul(z, rows(h), router)
        p, weight = kernels.empty_like(z), kernels.empty((len(z), self.chosen), z)
        chosen = kernels.empty(weight.shape, z, "int64")
        kernels.route_forward(p, weight, chosen, z)

        choices = to_numpy(chosen)
        limit = math.ceil(self.capacity * choices.size / self.experts) if limited else choices.size
        place, wanted = places(choices, self.experts, limit)
        taken = np.minimum(wanted, limit)
        place, share = kernels.beside(place, z), kernels.empty(self.experts, z)
        share[:] = kernels.beside(np.bincount(choices[:, 0], minlength=self.experts) / max(1, len(choices)), z)
        routing = Routing(u, r, h, p, weight, chosen, place, share, wanted, taken)

        inputs = kernels.empty((int(taken.sum()), self.width), z)
        kernels.dispatch_rows(inputs, rows(h), place)
        return cut(inputs, taken), routing

    def leave(self, x, outputs: Sequence, routing: Routing) -> tuple:
        """Return (y, returned), given each expert's outputs; `returned` has them in one array, for `leave_back`."""
        returned, y = concatenate(outputs), kernels.empty_like(x)
        kernels.combine_rows(rows(y), rows(x), returned, routing.place, routing.weight)
        return y, returned

    def leave_back(self, dy, returned, routing: Routing) -> tuple:
        """Return (gradients of the outputs of each expert, gradient of the weights of the choices)."""
        drows, dweight = kernels.empty_like(returned), kernels.empty_like(routing.weight)
        kernels.combine_rows_backward(drows, dweight, rows(dy), returned, routing.place, routing.weight)
        return cut(drows, routing.taken), dweight

    def enter_back(self, parts, dinputs: Sequence, dweight, routing: Routing, dy, needed: bool = True) -> tuple:
        """Return (dx, what `router_weights` needs), given the gradients of the inputs of each expert."""
        gain, _, router = parts[:SHARED]
        u, r, h, p, weight, chosen, place, share, *_ = routing
        dz, dh, ones = kernels.empty_like(p), kernels.empty_like(h), kernels.empty_like(weight)
        kernels.route_backward(dz, dweight, p, weight, chosen, share, current_scale() * self.balance)
        kernels.dense_backward_input(rows(dh), dz, router)
        ones[:] = 1
        kernels.combine_rows(rows(dh), rows(dh), concatenate(dinputs), place, ones)
        return (norm_back(dy, dh, u, r, gain) if needed else None), (u, dh, h, dz)

    def router_weights(self, gradients, pending) -> None:
        """Write the gradients of the norm's parameters and of R to `gradients`."""
        u, dh, h, dz = pending
        norm_weights(gradients[:2], u, dh)
        kernels.matmul(gradients[2], rows(h).T, dz)


class RoutingTally:
    """For each block, the experts that this rank's tokens have chosen since the tally was cleared."""

    def clear_tally(self) -> None:
        self.wanted: list[np.ndarray] = []  # choices of each expert
        self.taken: list[np.ndarray] = []  # rows that each expert took

    def count(self, routing: Routing) -> None:
        """Count the experts that the tokens of a block have chosen."""
        self.wanted.append(routing.wanted)
        self.taken.append(routing.taken)

    @property
    def fraction_dropped(self) -> float:
        """The fraction of this rank's choices that were dropped because the expert was full."""
        choices = sum(map(np.sum, self.wanted))
        return float((choices - sum(map(np.sum, self.taken))) / max(1, choices))

    @property
    def imbalance(self) -> float:
        """The number of choices of the most popular expert, as a multiple of the mean over experts, averaged over
        blocks.
        """
        return float(np.mean([wanted.max() / wanted.mean() for wanted in self.wanted] or [1.0]))


def places(chosen: np.ndarray, experts: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Return (place, wanted) for the experts that tokens choose, (tokens, k).

    place, of the same shape, is the row of each choice, where rows are sorted by expert and then by token. Only the
    first `limit` choices of an expert have a row; that of all others is -1. wanted, (experts,), counts all choices.

    >>> places(np.array([[1], [0], [1], [1]]), 2, 2)[0].ravel().tolist()
    [1, 0, 2, -1]
    """
    flat = chosen.ravel()
    wanted = np.bincount(flat, minlength=experts)
    order = np.argsort(flat, kind="stable")
    turn = np.empty_like(flat)  # of each choice at its expert
    turn[order] = np.arange(len(flat)) - np.repeat(np.cumsum(wanted) - wanted, wanted)
    taken = np.minimum(wanted, limit)
    first = np.cumsum(taken) - taken
    return np.where(turn < limit, first[flat] + turn, -1).reshape(chosen.shape), wanted


def cut(x, counts: Sequence[int]) -> list:
    """Return consecutive pieces of x with these numbers of rows."""
    return [x[start:end] for start, end in pairwise(accumulate(map(int, counts), initial=0))]


# what experts do with their rows, wherever these come from; `parts` are those of all these experts, in a row


def by_expert(parts: Sequence) -> list[Sequence]:
    """Return the parameters of each expert."""
    return [parts[at : at + OWN] for at in range(0, len(parts), OWN)]


def run_experts(parts, inputs: Sequence) -> tuple[list, list]:
    """Return (outputs, saved), two lists with an entry for each expert, given the rows that each expert takes."""
    done = [mlp(own, x) for own, x in zip(by_expert(parts), inputs, strict=True)]
    return [y for y, _ in done], [saved for _, saved in done]


def run_experts_back(parts, saved: Sequence, doutputs: Sequence) -> tuple[list, list]:
    """Return (gradients of the inputs, pending), two lists with an entry for each expert."""
    done = [mlp_back(own, kept, dy) for own, kept, dy in zip(by_expert(parts), saved, doutputs, strict=True)]
    return [dx for dx, _ in done], [pending for _, pending in done]


def expert_weights(gradients, pending: Sequence) -> None:
    """Write the gradients of the experts' parameters to `gradients`."""
    for own, rest in zip(by_expert(gradients), pending, strict=True):
        mlp_weights(own, rest)
