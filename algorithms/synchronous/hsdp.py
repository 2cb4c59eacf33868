"""HSDP shards a model inside each of several groups, such as nodes, and gathers layers before they are needed.

N ranks are G groups of S. In a group, rank p owns piece p of every layer, written [p], as in ZeRO-3. Ranks with the
same p in other groups are its replicas:

    w_l <- w_l[1], ..., w_l[S]                        all-gather in the group, begun `prefetch` layers ahead
    g_l[p] <- mean over the group of g_l[p]           reduce-scatter after the backward of layer l
    g_l[p] <- mean over its replicas of g_l[p]        all-reduce between the groups
    w[p] <- w[p] - lr rule(g[p])   when all layers are done

So only the last sum leaves the group: 2 (G-1) d elements a step, however often layers are gathered. With `secondary`, a
layer is sharded over all ranks instead; each keeps a second piece, of the layer as gathered in forward, and backward
gathers those in the group (hpZ of ZeRO++). Prefetching changes when layers are sent, but no number. A rank sends its
pieces directly to every other rank: in a group that spans nodes, a piece enters another node once for each rank there,
while a ring, as in ZeRO-3, brings it into a node once.

Price: 3 (S-1) G d + 2 (G-1) d elements per step; one group: 3 (N-1) d, as in ZeRO-3. With `secondary`
2 (N-1) d + (S-1) G d. A rank holds d/S elements of w, of g and of each state vector, and 1 + prefetch layers.
Staleness: none.
Source: Zhao et al., VLDB 2023 (FSDP), arXiv:2304.11277; the second piece: Wang et al., arXiv:2306.10209 (ZeRO++).
"""

from collections import deque
from itertools import islice

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, Split, knob
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.rank_groups import divisors, one_of
from algorithms.synchronous.zero3 import ShardedParameters
from kernels.arrays import concatenate


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size", gt=0, le=1000)
    update: Rule = knob("adam", "optimizer of each rank, applied to its pieces of the mean gradient")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    groups: int = knob(1, "G, groups of ranks, each with all pieces of the model", ge=1, le=4096, unit="groups")
    prefetch: int = knob(1, "layers whose gathering begins before they are needed", ge=0, le=64, unit="layers")
    secondary: bool = knob(
        False, "shard over all ranks; each group keeps a second set of pieces, which the backward pass gathers"
    )


def check(workers, batch, workload, s):
    if s.groups not in divisors(workers):
        n = f"{workers} worker{'s' * (workers > 1)}"
        raise ValueError(f"{n} cannot form {s.groups} groups of equal size; use {one_of(divisors(workers))} groups.")


def elements_sent(shape, s):
    n, d, members = shape.workers, shape.parameters, shape.workers // s.groups
    inside = (members - 1) * s.groups * d
    each = 2 * (n - 1) * d + inside if s.secondary else 3 * inside + 2 * (s.groups - 1) * d
    return each * shape.steps


def split(workers, s):
    owners = workers if s.secondary else workers // s.groups
    return Split(owners, owners, owners)


def notes(e):
    if e.workers > 1 and e.knobs.groups == e.workers and not e.knobs.secondary:
        yield "With a group for each worker nothing is sharded: this is sync_sgd; use fewer groups."
    members = e.workers // e.knobs.groups
    if members > e.per_node > 1 and not e.knobs.secondary:
        yield (
            f"A group of {members} ranks spans several nodes, and each piece of a layer enters another node once for "
            f"each rank there, not once as with the ring of zero3; use groups of at most {e.per_node} ranks."
        )


def worker(comm, task, s=Settings()):
    members = comm.size // s.groups
    group, replicas = comm.split(comm.rank // members), comm.split(comm.rank % members)
    owners = comm if s.secondary else group
    w = ShardedParameters(task, owners.rank, owners.size)
    second = ShardedParameters(task, group.rank, group.size) if s.secondary else w
    g = kernels.empty_like(w.mine)
    rule = optimizer(s.update, w.mine, s.momentum)

    def holds(whole, ahead):
        task.holds("parameters", whole.nbytes, stored=w.mine.nbytes + second.mine.nbytes * s.secondary + ahead)

    for _ in task.steps(together=True):
        layers = task.layerwise()
        for layer, (whole, ahead) in zip(layers, gather_ahead(owners, task.layers, w, s.prefetch), strict=True):
            holds(whole, ahead)
            layer.forward(whole)
            if s.secondary:
                second.take(layer.place, whole)
        backwards = gather_ahead(group, task.layers[::-1], second, s.prefetch)
        for layer, (whole, ahead) in zip(reversed(layers), backwards, strict=True):
            holds(whole, ahead)
            gradient = layer.backward(whole)  # (d_l,), of this rank's mini-batch
            piece = owners.reduce_scatter(gradient, op="mean")
            g[w.piece(layer.place)] = piece if s.secondary else replicas.all_reduce(piece, op="mean")
            task.holds("gradients", g.nbytes + gradient.nbytes)
        if not task.is_usable(g, agree=comm):
            continue
        rule.step(w.mine, g, s.learning_rate)
        if comm.rank < owners.size:
            task.report(w.mine, w.where)
    return w.mine


def gather_ahead(comm, places, pieces, ahead):
    """Yield (parameters, bytes of later layers in transit) for each layer, while up to `ahead` later gathers are in
    progress.
    """
    begun, coming = deque(), iter(places)
    for _ in places:
        begun.extend(Gather(comm, pieces.mine[pieces.piece(one)]) for one in islice(coming, ahead + 1 - len(begun)))
        yield begun.popleft().wait(), sum(gather.nbytes for gather in begun)


class Gather:
    """An all-gather in progress: every rank sends its piece to the next rank, the one after it, and so on.

    So each port has one message at a time, and nobody waits to begin.
    """

    def __init__(self, comm, piece):
        self.comm, self.piece = comm, kernels.copy(piece)
        steps = range(1, comm.size)
        self.sent = [comm.isend(self.piece, (comm.rank + step) % comm.size) for step in steps]
        self.received = {(comm.rank - step) % comm.size: comm.irecv((comm.rank - step) % comm.size) for step in steps}
        self.nbytes = comm.size * piece.nbytes

    def wait(self):
        """Wait for the gather and return the whole layer."""
        for handle in self.sent:
            handle.wait()
        found = {rank: handle.wait() for rank, handle in self.received.items()} | {self.comm.rank: self.piece}
        return concatenate([found[rank] for rank in range(self.comm.size)])


ALGORITHM = Algorithm(
    worker,
    Settings,
    check=check,
    notes=notes,
    elements_sent=elements_sent,
    split=split,
    computes_together=True,
    skips_overflow=True,
    equivalences=(
        Equivalence(
            "one group without prefetching gives ZeRO-3, bit for bit", to="zero3", workers=3,
            settings={"prefetch": 0},
        ),
        Equivalence(
            "one group gives synchronous SGD with the same optimizer, up to rounding", to="sync_sgd", exactness="RND",
            workers=4, settings={"update": "adam"}, to_settings={"update": "adam"},
        ),
        Equivalence(
            "prefetching does not change the weights", to="hsdp", workers=4,
            settings={"groups": 2, "prefetch": 2}, to_settings={"groups": 2, "prefetch": 0},
        ),
        Equivalence(
            "one rank per group gives synchronous SGD with the same optimizer, up to rounding", to="sync_sgd",
            exactness="RND", workers=4, settings={"groups": 4, "update": "adam"}, to_settings={"update": "adam"},
        ),
        Equivalence(
            "a second set of pieces changes only the order in which numbers are added", to="hsdp", exactness="RND",
            workers=4, settings={"groups": 2, "secondary": True}, to_settings={"groups": 2},
        ),
    ),
)  # fmt: skip
