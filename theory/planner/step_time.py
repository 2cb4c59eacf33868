"""The time of a training step on the slowest GPU, by its parts.

A product of an (M x Q) and a (Q x N) matrix takes

    2 M N Q / (share x peak) + traffic x (bytes of the three matrices) / bandwidth

which is a rate that grows with 1 / (1/M + 1/N + 1/Q): small products are slower. Memory-bound operations are priced by
their bytes. Data-parallel collectives go round a ring over all replicas, and part of the smaller of computation and
communication is hidden behind the other. A pipeline of p ranks and M micro-batches takes (M + (p-1)/pieces) times a
stage's passes. If its ranks compute the gradients of weights, which take W, when they would otherwise wait, they wait
2 (p-1) W less (the zero-bubble schedule ZB-H1). No published row uses such a schedule.

The model leaves out the power limit of a GPU and what the allocator costs when memory is nearly full.

Source: our own, see `constants`; Korthikanti et al., MLSys 2023 (sequence parallelism, what a layer does); Narayanan et
al., SC 2021, section 3 (pipeline bubbles); Qi et al., ICLR 2024 (ZB-H1); Rajbhandari et al., SC 2020 (sharding).
"""

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from theory.planner.constants import COLLECTIVES, FITTED, FLASH3, LAUNCHES, Constants
from theory.planner.setup import A100, FLASH1, FULL, GRADIENTS, LIGHT, NONE, OPTIMIZER, SELECTIVE, UNFUSED, WHOLE, Setup


@dataclass(frozen=True)
class StepTime:
    """The time of a step on the slowest GPU, in s, by its parts. All fields but `micro_batches` add up to `seconds`."""

    computation: Any  # forward and backward of layers and loss
    recomputation: Any  # of layers in backward
    tensor: Any  # tensor-parallel messages that nothing hides
    context: Any  # context-parallel messages that nothing hides
    experts: Any  # tokens on their way to experts and back
    sharding: Any  # collectives of full and gradient shards, in every micro-batch, that nothing hides
    launches: Any  # waiting for the host to start kernels
    accumulation: Any  # adding the gradients of micro-batches
    messages: Any  # between stages
    bubble: Any  # the pipeline's
    gradients: Any  # reducing gradients, and gathering weights, once per step
    update: Any  # of the weights
    micro_batches: Any  # on a replica

    @property
    def seconds(self):
        """The time of the step, in s."""
        return sum(astuple(self)[:-1])


@dataclass(frozen=True)
class Passes:
    """The times of one layer, or of the head, in one micro-batch, in s."""

    products: tuple[Any, Any]  # forward, backward
    attention: tuple[Any, Any]
    memory: tuple[Any, Any]
    tensor: Any  # in each direction
    context: Any  # in forward; twice that in backward
    experts: Any  # in each direction
    again: Any  # recomputed in backward, with its messages
    weights: Any = 0.0  # the part of `products` in backward that computes the gradients of weights

    @property
    def forward(self):
        """The time of the forward pass, in s."""
        return self.products[0] + self.attention[0] + self.memory[0] + self.tensor + self.context + self.experts

    @property
    def backward(self):
        """The time of the backward pass, in s."""
        computed = self.products[1] + self.attention[1] + self.memory[1]
        return computed + self.tensor + 2 * self.context + self.experts + self.again


class StepPrices:
    """The times of a setup's operations in s, computed with these constants."""

    def __init__(self, setup: Setup, constants: Constants = FITTED):
        self.setup, self.constants = setup, constants
        gpu, at = setup.gpu, setup.layout
        self.sixteen = np.where(gpu.family == A100, constants.products_a100, constants.products_h100) * gpu.half
        self.eight = np.maximum(constants.products_fp8 * gpu.fp8, 1.0)
        self.bounded = constants.memory * gpu.bandwidth  # bytes/s of operations that memory bounds
        self.tokens = at.micro_batch * setup.model.sequence / at.context  # of a micro-batch on one GPU

    def product(self, rows, columns, inner, fp8=False):
        """Return the time of one matrix product, in s."""
        gpu, traffic = self.setup.gpu, self.constants.traffic
        flops, out, read = 2 * rows * columns * inner, rows * columns, inner * columns + rows * inner
        sixteen = flops / self.sixteen + traffic * 2 * (out + read) / gpu.bandwidth
        cast = 2 * rows * inner / self.bounded
        eight = flops / self.eight + traffic * (2 * out + read) / gpu.bandwidth + cast
        return np.where(fp8, eight, sixteen)

    def products(self) -> tuple:
        """Return the times of a layer's products, (forward, backward), in s."""
        fp8, forward, backward = self.setup.software.fp8, 0.0, 0.0
        for count, m, columns, inner in self.shapes():
            forward = forward + count * self.product(m, columns, inner, fp8)
            back = self.product(m, inner, columns, fp8) + self.product(columns, inner, m, fp8)
            backward = backward + count * back
        return forward, backward

    def weight_products(self):
        """Return the time of the matrix products that compute the gradients of a layer's weights in backward, in s."""
        fp8 = self.setup.software.fp8
        return sum(count * self.product(columns, inner, m, fp8) for count, m, columns, inner in self.shapes())

    def shapes(self) -> list[tuple]:
        """Return (count, rows, columns, inner) for the matrix products in a layer's forward pass.

        A rank with 1 / `expert` of the experts has as many rows from other ranks as it sends away: each of its experts
        takes an equal share of the tokens.
        """
        model, at, m = self.setup.model, self.setup.layout, self.tokens
        h, t, up = model.width, at.tensor, model.matrices - 1
        own = model.experts / at.expert
        visits = m * model.chosen / own
        shared = np.asarray(model.shared > 0, int)
        attended = [(1, m, (model.queries + 2 * model.keys) / t, h), (1, m, h, model.queries / t)]
        routed = [(own * up, visits, model.ffn / t, h), (own, visits, h, model.ffn / t)]
        always = [(shared * up, m, model.shared / t, h), (shared, m, h, model.shared / t)]
        return attended + routed + always

    def attention(self) -> tuple:
        """Return the times of a layer's attention, (forward, backward), in s."""
        gpu, model, at, constants = self.setup.gpu, self.setup.model, self.setup.layout, self.constants
        kernel, split = self.setup.software.attention, at.tensor * at.context
        area = at.micro_batch * model.sequence * model.sequence / split
        old = np.where(gpu.family == A100, constants.attention_a100, constants.attention_h100)
        new = np.where(gpu.flash, gpu.flash, np.where(gpu.family == A100, *FLASH3))
        share = np.where(kernel == FLASH1, old, new)
        flash = 2 * area * model.queries / (share * gpu.half)
        multiply, scores = 4 * area * model.queries / self.sixteen, area * model.heads / self.bounded
        is_unfused = kernel == UNFUSED
        forward = np.where(is_unfused, multiply + 11 * scores, flash)
        return forward, np.where(is_unfused, 2 * multiply + 16 * scores, 2.5 * flash)

    def memory_bound(self) -> tuple:
        """Return the times of a layer's norms, residuals, activations and rotary positions, (forward, backward), in s.

        In a mixture of experts, tokens are also sorted by expert, and added up again.
        """
        model, at = self.setup.model, self.setup.layout
        split = np.where(at.sequence_parallel, at.tensor, 1)
        rotary = model.gated * 4 * (model.queries + model.keys) / at.tensor
        inner = (model.chosen * model.ffn + model.shared) / at.tensor
        sorted_rows = np.where(model.is_mixture, 6 * model.chosen * model.width / split, 0.0)
        forward = 20 * model.width / split + (4 + 2 * model.gated) * inner + rotary + sorted_rows
        backward = 24 * model.width / split + (6 + 4 * model.gated) * inner + rotary + sorted_rows
        return self.tokens * forward / self.bounded, self.tokens * backward / self.bounded

    def tensor(self):
        """Return the exposed time of a layer's two all-reduces in one pass, forward or backward, in s."""
        at, gpu = self.setup.layout, self.setup.gpu
        nbytes = 2 * (at.tensor - 1) / at.tensor * 2 * self.tokens * self.setup.model.width
        return 2 * nbytes / (COLLECTIVES * gpu.link) * self._shown()

    def context(self):
        """Return the exposed time of passing keys and values around the context-parallel ranks, in s."""
        at, gpu = self.setup.layout, self.setup.gpu
        rate = np.where(at.tensor * at.context <= gpu.per_node, gpu.link, gpu.network / gpu.per_node)
        nbytes = (at.context - 1) * self.tokens * 4 * self.setup.model.keys / at.tensor
        return nbytes / (COLLECTIVES * rate) * (1 - self.constants.hidden_tensor)

    def experts(self):
        """Return the time of sending tokens to their experts and back in one pass of a layer, forward or backward, in
        s.
        """
        model, at, gpu = self.setup.model, self.setup.layout, self.setup.gpu
        split = np.where(at.sequence_parallel, at.tensor, 1)
        nbytes = 2 * 2 * self.tokens / split * model.chosen * model.width  # there and back, 16-bit
        near = np.minimum(at.expert, np.maximum(1, gpu.per_node // at.tensor))  # of these ranks, in one node
        inside, outside = (near - 1) / at.expert, (at.expert - near) / at.expert
        return nbytes / COLLECTIVES * np.maximum(inside / gpu.link, outside / (gpu.network / gpu.per_node))

    def layer(self) -> Passes:
        """Return the times of one layer in one micro-batch, in s."""
        at = self.setup.layout
        parts = self.products(), self.attention(), self.memory_bound(), self.tensor(), self.context(), self.experts()
        forward = Passes(*parts, 0.0).forward
        is_scored_again = (at.recompute == SELECTIVE) & (self.setup.software.attention == UNFUSED)
        model = self.setup.model
        inner = model.chosen * model.ffn + model.shared
        activation = self.tokens * (4 + 2 * model.gated) * inner / at.tensor / self.bounded
        again = np.select(
            [at.recompute == WHOLE, at.recompute == LIGHT, is_scored_again], [forward, activation, parts[1][0]], 0.0
        )
        return Passes(*parts, again, self.weight_products())

    def collective(self, nbytes, groups=1, apart=1):
        """Return the time that the replicas take to gather, or reduce-scatter, `nbytes` bytes within each group, in s.

        Ranks of a node that are in the same group share all of its network. `apart` is the distance, in replicas,
        between the ranks that take part, such as those with the same experts.
        """
        gpu, at = self.setup.gpu, self.setup.layout
        ranks = at.replicas / groups / apart
        in_node = gpu.per_node / at.tensor  # replicas
        near = np.maximum(np.minimum(1, in_node), in_node / apart)  # of the ranks that take part
        outside = gpu.network * np.minimum(ranks, near) / gpu.per_node
        is_inside = ranks * at.tensor * apart <= gpu.per_node
        rate = COLLECTIVES * np.where(is_inside, gpu.link, np.minimum(gpu.link, outside))
        hops = np.where(is_inside, 0.0, self.constants.hop * (ranks - 1))
        return np.where(ranks > 1, nbytes * (ranks - 1) / ranks / rate + hops, 0.0)

    def between_groups(self, nbytes):
        """Return the time that the groups take to all-reduce `nbytes` bytes, sharded over their ranks, in s."""
        gpu, at = self.setup.gpu, self.setup.layout
        own, rate = nbytes / at.sharing, COLLECTIVES * gpu.network / gpu.per_node
        return np.where(
            at.groups > 1, 2 * ((at.groups - 1) / at.groups * own / rate + self.constants.hop * (at.groups - 1)), 0.0
        )

    def gather(self, shared, experts, groups=1):
        """Return the time to gather, or reduce-scatter, replicated tensors and the tensors of a rank's experts, in s.

        `shared` and `experts` are the sizes of the two in bytes.
        """
        apart = self.setup.layout.expert
        own = np.where(experts > 0, self.collective(experts, groups, apart), 0.0)
        return self.collective(shared, groups) + own

    def both(self, computation, communication):
        """Return the time of computation and communication that partly overlap, in s."""
        longer, shorter = np.maximum(computation, communication), np.minimum(computation, communication)
        return longer + (1 - self.constants.hidden) * shorter

    def head(self):
        """Return the time of the output layer and the loss, forward plus backward, in s."""
        model, m = self.setup.model, self.tokens
        columns, h = model.vocabulary / self.setup.layout.tensor, model.width
        products = self.product(m, columns, h) + self.product(m, h, columns) + self.product(columns, h, m)
        return products + self.setup.software.logit_bytes * m * columns / self.bounded

    def _shown(self):
        return np.where(self.setup.software.overlaps, 1 - self.constants.hidden_tensor, 1.0)


def step_time(setup: Setup, constants: Constants = FITTED) -> StepTime:
    """Return the time of a step, by its parts."""
    prices, model, at, software = StepPrices(setup, constants), setup.model, setup.layout, setup.software
    one, head = prices.layer(), prices.head()
    experts = model.expert_parameters / (at.tensor * at.expert)
    weights = (model.layer_parameters - model.expert_parameters) / at.tensor
    is_gathered = at.shard >= GRADIENTS  # in every micro-batch
    gathered = software.gather_bytes * weights, software.gather_bytes * experts
    reduced = software.reduce_bytes * weights, software.reduce_bytes * experts
    gather = np.where(is_gathered, prices.gather(*gathered, at.groups), 0.0)
    between = prices.between_groups(reduced[0] + at.expert * reduced[1])
    reduce = np.where(is_gathered, prices.gather(*reduced, at.groups) + between, 0.0)
    reduce = reduce + np.where(at.shard == FULL, gather, 0.0)
    passed = prices.both(one.forward, gather) + prices.both(one.backward, reduce)
    layer = np.maximum(passed, LAUNCHES * np.where(at.recompute == WHOLE, 4 / 3, 1.0))

    held = np.ceil(model.layers / at.pipeline)  # layers of every stage but the last
    last = np.maximum(model.layers - (at.pipeline - 1) * held, 0)
    ends = last * layer + head
    is_last = (at.pipeline == 1) | (ends > held * layer)  # whether the last stage is the slowest
    layers, stage = np.where(is_last, last, held), np.where(is_last, ends, held * layer)

    parts = setup.own_parameters
    own = sum(parts)
    accumulated = np.where(is_gathered, 0.0, (2 * software.gradient_bytes - 2) * own / prices.bounded)
    message = _message(prices)
    micro_batches = np.ceil(setup.batch / (at.data * at.micro_batch))
    waits = np.where(at.pipeline > 1, (at.pipeline - 1) / at.pieces, 0.0)
    filled = np.where(at.defers, 2 * held * one.weights, 0.0)  # the deferred part of a wait
    shares = prices.gather(*(2 * part for part in parts))
    replicated = 2 * shares
    scattered = prices.gather(*(software.gradient_bytes * part for part in parts)) + shares
    once = np.where(at.shard == NONE, replicated, (1 - constants.hidden) * scattered)
    states = np.where(at.shard >= OPTIMIZER, setup.stage_parameters / at.sharing, own)
    each = micro_batches * layers
    communication = 2 * one.tensor + 3 * one.context + 2 * one.experts
    return StepTime(
        computation=each * (one.forward + one.backward - communication - one.again) + micro_batches * is_last * head,
        recomputation=each * one.again,
        tensor=each * 2 * one.tensor,
        context=each * 3 * one.context,
        experts=each * 2 * one.experts,
        sharding=each * (passed - one.forward - one.backward),
        launches=each * (layer - passed),
        accumulation=micro_batches * accumulated,
        messages=micro_batches * message,
        bubble=waits * (stage + accumulated + message - filled),
        gradients=np.where(is_gathered, 0.0, once),
        update=30 * states / prices.bounded,
        micro_batches=micro_batches,
    )


def _message(prices: StepPrices):
    """Return the exposed time of a micro-batch's messages to and from the next stage, in s."""
    gpu, at = prices.setup.gpu, prices.setup.layout
    nbytes = 2 * at.pieces * 2 * prices.tokens * prices.setup.model.width / at.tensor
    shown = np.where(at.pieces > 1, 1 - prices.constants.hidden, 1.0)
    return np.where(at.pipeline > 1, nbytes * shown / (COLLECTIVES * gpu.network / gpu.per_node), 0.0)


def tokens_per_second(setup: Setup, constants: Constants = FITTED):
    """Return the number of tokens that each GPU processes per second."""
    return throughput(setup, step_time(setup, constants))


def throughput(setup: Setup, time: StepTime):
    """Return the number of tokens that each GPU processes per second if a step takes this time."""
    return setup.batch * setup.model.sequence / setup.layout.gpus / time.seconds


def utilisation(setup: Setup, rate, scores: float = 1.0):
    """Return the model FLOP/s per GPU at `rate` tokens per second per GPU, as a share of the peak (MFU)."""
    peak = np.where(setup.software.fp8, setup.gpu.fp8, setup.gpu.half)
    return rate * setup.model.flops(scores) / peak
