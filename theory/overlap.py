"""Overlap of communication and computation: the duration of a synchronous step, from the costs of its layers alone.

Layer l takes f_l seconds forward, b_l backward, c_l = c(n_l) for its all-reduce (the network does one at a time) and
u_l to update; Tf, Tb, Tc and u are the sums, and Tx = Tf + Tb. Backward goes from layer L to layer 1.

    no overlap             Tx + c(n) + u                       one all-reduce for all layers
    wait-free              s_1 + c_1 + u                       r_l = Tf + b_L + ... + b_l: layer l's gradient is ready
                                                               s_l = max(r_l, s_l+1 + c_l+1): its all-reduce begins
    ... in buckets         the same per bucket                 ready with the last of its layers
    and the next forward   >= max(Tx + u + c_1, Tc)            if early layers go first; else no less than wait-free
    delay k >= 1           max(Tx + u, Tc)                     at most twice as fast as no overlap, if Tx = Tc

With sharded parameters, a_l is the time to all-gather layer l, which is done for both its passes, and r_l here is the
time to reduce-scatter its gradient, for which ranks wait; Ta and Tr are the sums.

    gathered when needed   Tx + 2 Ta + Tr + u
    k >= 1 layers ahead    Tx + 2 a_1 + Tr + u                 on equal layers, if f_l >= a_l and b_l >= k a_l

Source: Zhang et al. (Poseidon), USENIX ATC 2017; Shi et al. (MG-WFBP), INFOCOM 2019; Daily et al., "Leveraging
Asynchronicity in Gradient Descent", OpenReview rkFd2P5gl. The recurrences follow from the schedules.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate, count, islice

Buckets = Sequence[range]  # of layers, the last layers first


@dataclass(frozen=True)
class Cost:
    """A linear cost: n bytes (or elements) take start + n each seconds."""

    start: float = 0.0
    each: float = 0.0

    def __call__(self, size: float) -> float:
        return self.start + size * self.each


@dataclass(frozen=True)
class StepCosts:
    """The costs of each layer, in the order of the forward pass.

    `line` is how long an all-reduce occupies the network; its result arrives `lag` later.
    """

    forward: Sequence[float]  # s
    backward: Sequence[float]  # s
    sizes: Sequence[float]  # bytes, or elements
    line: Cost
    lag: Cost = Cost()
    update: Cost = Cost()

    @property
    def layers(self) -> int:
        """L, the number of layers."""
        return len(self.sizes)

    @property
    def compute(self) -> float:
        """Tx, the total time of the forward and backward passes of all layers, in s."""
        return sum(self.forward) + sum(self.backward)

    @property
    def communicate(self) -> float:
        """Tc, the total time of one all-reduce for each layer, in s."""
        return sum(map(self.line, self.sizes))

    @property
    def ready(self) -> list[float]:
        """r_l, the time at which each layer's gradient is ready, in s."""
        behind = accumulate(reversed(self.backward), initial=sum(self.forward))
        return list(behind)[:0:-1]

    def size(self, layers: range) -> float:
        """Return the total size of these layers."""
        return sum(self.sizes[layer] for layer in layers)


def no_overlap(p: StepCosts) -> float:
    """Return the time of a step with one blocking all-reduce of the whole gradient after backward, in s."""
    size = sum(p.sizes)
    return p.compute + p.line(size) + p.lag(size) + p.update(size)


def wait_free(p: StepCosts, buckets: Buckets | None = None) -> float:
    """Return the time of a step that starts an all-reduce as soon as a bucket's gradients are ready, in s.

    By default, every layer is a bucket.
    """
    free = end = 0.0
    for bucket in fill_buckets(p, 0) if buckets is None else buckets:
        free = max(p.ready[bucket[0]], free) + p.line(p.size(bucket))
        end = max(end, free + p.lag(p.size(bucket)))
    return end + p.update(sum(p.sizes))


def fill_buckets(p: StepCosts, least: float) -> Buckets:
    """Return buckets of layers, the last layers first. Each bucket is filled until it holds at least `least` bytes;
    only the one with the first layer may hold less.
    """
    buckets, stop = [], p.layers
    for layer in reversed(range(p.layers)):
        if layer == 0 or p.size(range(layer, stop)) >= least:
            buckets.append(range(layer, stop))
            stop = layer
    return buckets


def merge_buckets(p: StepCosts) -> Buckets:
    """Return buckets of layers, merged where that saves time (MG-WFBP).

    A layer joins the layer before it if its all-reduce would still be running when that layer's gradient is ready, and
    if waiting for that gradient takes less time than the start-up it saves. The result is never slower than layer by
    layer or all at once; with long start-ups it is not always the fastest.
    """
    buckets, stop, free = [], p.layers, 0.0
    for layer in reversed(range(p.layers)):
        bucket = range(layer, stop)
        begin = max(p.ready[layer], free)
        end = begin + p.line(p.size(bucket))
        if layer == 0 or not (end > p.ready[layer - 1] and p.ready[layer - 1] - begin < p.line.start):
            buckets.append(bucket)
            stop, free = layer, end
    return buckets


def forward_overlap(p: StepCosts, urgent: bool = True, most: float = math.inf) -> float:
    """Return the time of a step whose all-reduces overlap with the next forward pass, layer by layer, in s.

    All-reduces are cut into slices of at most `most` bytes. With `urgent`, slices of early layers go first among those
    that are ready; otherwise slices go first come, first served.
    """
    begins = steps(p, 3, urgent=urgent, most=most)
    return begins[2] - begins[1]


def delayed_update(p: StepCosts) -> float:
    """Return the time of a step whose gradients are applied k >= 1 steps late, layer by layer, in s."""
    return max(p.compute + sum(map(p.update, p.sizes)), p.communicate)


def prefetching(p: StepCosts, ahead: int, add: Cost = Cost()) -> float:
    """Return the time of a step in which ranks gather each layer's parameters before both of its passes, in s.

    A gather begins when the layer `ahead` layers earlier is about to compute, or at the beginning of the pass. `line`
    and `lag` of `p` describe a gather. A reduce-scatter takes that time plus `add`, and the next layer waits for it.
    """
    now = free = 0.0
    for seconds, backward in ((p.forward, False), (p.backward, True)):
        layers = range(p.layers)[:: -1 if backward else 1]
        coming = iter(layers)
        arrives: dict[int, float] = {}  # layer -> s
        for place, layer in enumerate(layers, 1):
            for begun in islice(coming, place + ahead - len(arrives)):
                free = max(now, free) + p.line(p.sizes[begun])
                arrives[begun] = free + p.lag(p.sizes[begun])
            now = max(now, arrives[layer]) + seconds[layer]
            if backward:
                free = max(now, free) + p.line(p.sizes[layer])
                now = free + p.lag(p.sizes[layer]) + add(p.sizes[layer])
    return now + p.update(sum(p.sizes))


def steps(p: StepCosts, number: int, *, delay: int = 0, urgent: bool = False, most: float = math.inf) -> list[float]:
    """Return the times, in s, at which the first `number` steps begin. The forward pass of each layer waits for the
    layer's all-reduce of `delay` + 1 steps ago.
    """
    network, now, begins = SerialNetwork(), 0.0, []
    for step in range(number):
        begins.append(now)
        for layer, size in enumerate(p.sizes):
            if step > delay:
                pieces = range(len(cut(size, most)))
                now = max(now, *(network.end((step - 1 - delay, layer, i)) for i in pieces)) + p.update(size)
            now += p.forward[layer]
        for layer in reversed(range(p.layers)):
            now += p.backward[layer]
            for i, piece in enumerate(cut(p.sizes[layer], most)):
                network.put((step, layer, i), now, layer if urgent else 0, p.line(piece), p.lag(piece))
    return begins


def cut(size: float, most: float) -> list[float]:
    """Return the sizes of slices that add up to `size`: slices of `most`, and the remainder last."""
    whole = int(size // most) if size > most else 0
    rest = size - whole * most if whole else size
    return [most] * whole + [rest] * (rest > 0 or not whole)


class SerialNetwork:
    """A network that does one all-reduce at a time: the most urgent that is ready and, among equals, the first."""

    def __init__(self):
        self.free, self.ends = 0.0, {}
        self.coming, self.waiting, self.serial = deque(), [], count()

    def put(self, name, ready: float, urgency: float, seconds: float, lag: float) -> None:
        """Enqueue an all-reduce. Calls must come in the order of `ready`."""
        self.coming.append((ready, urgency, next(self.serial), name, seconds, lag))

    def end(self, name) -> float:
        """Return the time at which the all-reduce `name` is complete.

        The caller must have enqueued all that will be ready before then, so that the order is final.
        """
        while name not in self.ends:
            if not self.waiting:
                self.free = max(self.free, self.coming[0][0])
            while self.coming and self.coming[0][0] <= self.free:
                heappush(self.waiting, self.coming.popleft()[1:])
            _, _, carried, seconds, lag = heappop(self.waiting)
            self.free += seconds
            self.ends[carried] = self.free + lag
        return self.ends[name]
