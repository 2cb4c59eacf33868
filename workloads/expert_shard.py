"""Expert shard: one rank's part of a model with mixtures of experts, whose experts are divided among ranks.

Its numbers are in one vector w, (d_r,): first the parameters of its own experts in every block, then the replicated
ones, which every rank has. Each rank computes the loss of its own samples. The rows of their tokens go to the ranks of
the experts that the tokens choose, and come back, by an exchange that is passed in as an argument:

    exchange.to_experts(rows)          -> (own, saved)    rows of all experts -> those of all ranks for own experts
    exchange.to_tokens(own, saved)     -> rows            back, in the same order

Both take and return a list with an array (rows, width) for each expert.
"""

import math
from itertools import accumulate
from operator import itemgetter

import numpy as np

from kernels import to_device
from workloads.experts import OWN, SHARED, MoeBlock, RoutingTally, expert_weights, run_experts, run_experts_back
from workloads.interrupted_pass import InterruptedPass


class ExpertShard(InterruptedPass, RoutingTally):
    """The shard of rank `rank` in a model whose experts are divided evenly among `ranks` ranks.

    gradient(w, batch, exchange) returns the mean loss of this rank's samples, and g: for its experts the gradient of
    the sum of the losses of all ranks, for replicated parameters that of its own loss. `where`, (d_r,), has the index
    in the whole model of each element of w; the first `own` ones are those of its experts.
    """

    interrupted = MoeBlock

    def __init__(self, task, rank: int, ranks: int):
        model, self.rank = task.workload.model, rank
        super().__init__(task, model.layers)
        tensors, held = iter(model.tensors), []  # held: (whether replicated, number of the layer, place, shape)
        for number, layer in enumerate(model.layers):
            each = layer.experts // ranks if isinstance(layer, MoeBlock) else 0  # experts of each rank
            for tensor, (place, shape) in zip(range(len(layer.shapes)), tensors, strict=False):
                replicated = not each or tensor < SHARED
                if replicated or (tensor - SHARED) // OWN // each == rank:
                    held.append((replicated, number, place, shape))
        held.sort(key=itemgetter(0))  # experts first
        self.where = np.concatenate([np.arange(place.start, place.stop) for _, _, place, _ in held])
        self.own = sum(math.prod(shape) for replicated, _, _, shape in held if not replicated)
        parts: tuple[list, ...] = tuple([[] for _ in model.layers] for _ in range(2))  # own, replicated; of each layer
        ends = accumulate(math.prod(shape) for *_, shape in held)
        for (replicated, number, _, shape), end in zip(held, ends, strict=True):
            parts[replicated][number].append((slice(end - math.prod(shape), end), shape))
        self._places = [replicated + own for own, replicated in zip(*parts, strict=True)]  # as in the layer's shapes
        self.clear_tally()

    def start(self):
        """Return the initial parameters of this shard, (d_r,)."""
        return to_device(self.task.workload.start(self.task.seed)[self.where], self.task.comm.device)

    def report(self, w) -> None:
        """Report the shard that this rank would ship now. Rank 0 also ships the replicated parameters."""
        count = self.own if self.rank else len(w)
        self.task.report(w[:count], self.where[:count])

    def gradient(self, w, batch, exchange):
        self.clear_tally()
        return super().gradient(w, batch, exchange)

    def cut(self, vector):
        return [[vector[place].reshape(shape) for place, shape in layer] for layer in self._places]

    def forward(self, label, layer, parts, x, exchange):
        computing = self.task.computing
        with computing(label):
            inputs, routing = layer.enter(parts, x)
        self.count(routing)
        own, sent = exchange.to_experts(inputs)
        with computing(label):
            outputs, inside = run_experts(parts[SHARED:], own)
        back = exchange.to_tokens(outputs, sent)
        with computing(label):
            y, returned = layer.leave(x, back, routing)
        return y, (routing, returned, inside)

    def backward(self, label, layer, parts, gradients, saved, dy, exchange):
        computing = self.task.computing
        routing, returned, inside = saved
        with computing(label):
            doutputs, dweight = layer.leave_back(dy, returned, routing)
        own, sent = exchange.to_experts(doutputs)
        with computing(label):
            dinputs, pending = run_experts_back(parts[SHARED:], inside, own)
            expert_weights(gradients[SHARED:], pending)
        back = exchange.to_tokens(dinputs, sent)
        with computing(label):
            dx, before = layer.enter_back(parts, back, dweight, routing, dy)
            layer.router_weights(gradients, before)
        return dx
