"""Context parallelism: ranks share each sequence, and only attention has to look at other ranks' positions.

All P ranks take the same samples. Each has a copy of the model and computes T/P of the T positions of every sequence.
All layers but attention treat each position by itself. In attention, a position sees all earlier ones, some of which
are on other ranks. There are three ways for queries Q to reach their keys K and values V:

    gather     K, V <- all-gather               then attend to all keys that a position sees
    ring       P times: attend to the K, V at hand, while sending them to rank r+1 and receiving those of rank r-1
    ulysses    all-to-all: (n, T/P, h) -> (n, T, h/P), attention of h/P heads to whole sequences, all-to-all back

    g <- mean over all ranks of g          w <- w - lr rule(g)

In the ring, blocks of keys are combined by the online softmax (`kernels.attention_block_forward`). Backward goes round
the same ring: the gradients of K and V travel with them and add up until they are home. Blocks that the causal mask
empties are skipped. Which positions a rank has is explained in `parts/sequence.py`.

Price: for n samples and an attention block of width h, all ranks together send 2 n T h (P-1) elements forward and
2 n T h (P-1) + 2 n T h P backward (ring); 2 n T h (P-1) forward and the same backward (gather); 8 n T h (P-1)/P in all
(ulysses). Gradients, and the loss that travels with them, add 2 (P-1) (d+1). Activations are divided by P; gather holds
all K, V of a layer. Staleness: none.
Source: Liu, Zaharia & Abbeel, arXiv:2310.01889 (ring); Jacobs et al., arXiv:2309.14509 (Ulysses); Grattafiori et al.,
arXiv:2407.21783, section 3.3.2 (all-gather, zigzag).
"""

import math
from typing import Literal

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, shared_by_all
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.rank_groups import divisors, one_of
from algorithms.parts.sequence import Positions, in_order, indices_of, pieces_of, visible_prefix
from kernels.arrays import concatenate, shares, take
from knobs import Refusal, multiples

KEYS, GRADIENTS = 0, 1  # tags of what travels round the ring


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every rank")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    exchange: Literal["ring", "gather", "ulysses"] = knob("ring", "how queries reach the keys of other ranks")
    positions: Positions = knob("zigzag", "which positions of a sequence a rank has")


def check(workers, batch, workload, s):
    time, heads = workload.sequence()
    pieces = workers * (2 if s.positions == "zigzag" else 1)
    if time % pieces:
        raise Refusal(
            f"{workers} workers need {pieces} pieces of each sequence, which do not divide a context of {time}; "
            f"use a context that is a multiple of {pieces}.",
            multiples(pieces, time),
        )
    if s.exchange == "ulysses" and heads % workers:
        fitting = divisors(heads)
        raise Refusal(f"{workers} workers do not divide {heads} heads; use {one_of(fitting)}, or the ring.", fitting)


def elements_sent(shape, s):
    return None if shape.workers > 1 else 0  # it depends on the model's layers


def worker(comm, task, s=Settings()):
    time, heads = task.workload.sequence()
    pieces = [pieces_of(rank, comm.size, time, s.positions) for rank in range(comm.size)]
    attention = EXCHANGES[s.exchange](task, comm, pieces, heads)
    shard = task.sequence_shard(pieces[comm.rank])
    w = task.start()
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        batch = shard.next_batch()
        loss, g = shard.gradient(w, batch, attention)
        mean = concatenate([g, kernels.beside(np.array([loss], task.workload.dtype), g)])  # of all positions
        comm.all_reduce(mean, op="mean")
        rule.step(w, mean[:-1], s.learning_rate)
        if comm.rank == 0:
            task.record(float(mean[-1]), len(batch[0]))
            task.report(w)
    return w


class Exchange:
    """Attention from this rank's positions to whole sequences; pieces[r] are the pieces of rank r of `comm`."""

    def __init__(self, task, comm, pieces, heads):
        self.task, self.comm, self.pieces, self.heads = task, comm, pieces, heads

    def nothing_seen(self, q):
        """Return the initial (output, log-sum-exp) of attention, before any key is seen: (uninitialised, -inf)."""
        total = kernels.empty((len(q), self.heads, q.shape[1]), q)
        total[:] = -math.inf
        return kernels.empty_like(q), total

    def visible(self, keys, like):
        """Return (number of keys that each query sees, number of query-key pairs) for keys at positions `keys`."""
        seen, pairs = visible_prefix(indices_of(self.pieces[self.comm.rank]), keys)
        return kernels.beside(seen, like), pairs


class RingExchange(Exchange):
    """Keys and values travel round the ring; each block is combined with the blocks before it."""

    def forward(self, q, k, v):
        y, total = self.nothing_seen(q)
        for block, seen, pairs in self.round_the_ring(q, k, v):
            if pairs:
                with self.task.computing("attention"):
                    kernels.attention_block_forward(y, total, q, *block, seen, pairs)
        return y, (y, total, q, k, v)

    def backward(self, dy, saved):
        y, total, q, k, v = saved
        dq, dk, dv = (kernels.zeros_like(x) for x in (q, k, v))
        for block, seen, pairs in self.round_the_ring(q, k, v):
            if pairs:
                with self.task.computing("attention"):
                    kernels.attention_block_backward(dq, dk, dv, dy, y, total, q, *block, seen, pairs)
            dk, dv = self.pass_on((dk, dv))  # they follow their keys; the last hop takes them home
        return dq, dk, dv

    def round_the_ring(self, q, *block):
        """Yield (block, seen, pairs) for each rank's keys and values, its own first, while the next are in transit."""
        comm = self.comm
        for hop in range(comm.size):
            following = None
            if hop < comm.size - 1:
                comm.isend(block, (comm.rank + 1) % comm.size, KEYS)
                following = comm.irecv((comm.rank - 1) % comm.size, KEYS)
            yield block, *self.visible(indices_of(self.pieces[(comm.rank - hop) % comm.size]), q)
            block = following and following.wait()

    def pass_on(self, gradients):
        """Send `gradients` to the next rank; return those that the previous rank sent."""
        if self.comm.size > 1:
            self.comm.send(gradients, (self.comm.rank + 1) % self.comm.size, GRADIENTS)
            gradients = self.comm.recv((self.comm.rank - 1) % self.comm.size, GRADIENTS)
        return gradients


class GatherExchange(Exchange):
    """Every rank gathers all keys and values, and sends their gradients back."""

    def forward(self, q, k, v):
        y, total = self.nothing_seen(q)
        keys, values = (in_order(parts, self.pieces) for parts in zip(*self.comm.all_gather((k, v)), strict=True))
        seen, pairs = self.visible(np.arange(keys.shape[1]), q)
        with self.task.computing("attention"):
            kernels.attention_block_forward(y, total, q, keys, values, seen, pairs)
        return y, (y, total, q, keys, values)

    def backward(self, dy, saved):
        y, total, q, keys, values = saved
        dq, dk, dv = (kernels.zeros_like(x) for x in (q, keys, values))
        seen, pairs = self.visible(np.arange(keys.shape[1]), q)
        with self.task.computing("attention"):
            kernels.attention_block_backward(dq, dk, dv, dy, y, total, q, keys, values, seen, pairs)
        by_rank = [take(x, own, axis=1).reshape(-1) for own in self.pieces for x in (dk, dv)]
        return dq, *self.comm.reduce_scatter(concatenate(by_rank)).reshape(2, *q.shape)


class UlyssesExchange(Exchange):
    """An all-to-all gives each rank all positions of some heads; another all-to-all returns the results."""

    def forward(self, q, k, v):
        q, k, v = self.to_heads(q, k, v)
        a, p = kernels.empty_like(q), kernels.empty((len(q), self.heads // self.comm.size, q.shape[1], q.shape[1]), q)
        with self.task.computing("attention"):
            kernels.attention_forward(a, p, q, k, v)
        (own,) = self.to_positions(a)
        return own, (p, q, k, v)

    def backward(self, da, saved):
        gradients = [kernels.empty_like(x) for x in saved[1:]]
        da = self.to_heads(da)
        with self.task.computing("attention"):
            kernels.attention_backward(*gradients, *da, *saved)
        return self.to_positions(*gradients)

    def to_heads(self, *arrays):
        """Return arrays (n, T/P, h) as (n, T, h/P), by an all-to-all."""
        columns = shares(arrays[0].shape[2], self.comm.size)
        received = self.comm.all_to_all([tuple(x[:, :, some] for x in arrays) for some in columns])
        return [in_order(parts, self.pieces) for parts in zip(*received, strict=True)]

    def to_positions(self, *arrays):
        """Return arrays (n, T, h/P) as (n, T/P, h), by an all-to-all."""
        received = self.comm.all_to_all([tuple(take(x, own, axis=1) for x in arrays) for own in self.pieces])
        return [concatenate(parts, axis=2) for parts in zip(*received, strict=True)]


EXCHANGES = {"ring": RingExchange, "gather": GatherExchange, "ulysses": UlyssesExchange}


ALGORITHM = Algorithm(
    worker,
    Settings,
    data_shards=shared_by_all,
    check=check,
    elements_sent=elements_sent,
    defaults={"workload": "text"},
    equivalences=(
        Equivalence("one rank gives SGD", to="sgd", exactness="RND"),
        *(
            Equivalence(
                f"{ranks} ranks that {how} give SGD", to="sgd", exactness="RND", workers=ranks, settings=settings
            )
            for ranks, how, settings in (
                (2, "pass keys round a ring", {}),
                (4, "have consecutive pieces", {"positions": "consecutive"}),
                (4, "gather keys", {"exchange": "gather"}),
                (2, "share heads", {"exchange": "ulysses"}),
            )
        ),
    ),
    example_workers=2,
)
