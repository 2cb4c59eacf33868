"""Tensor parallelism splits every matrix: a rank has columns of one and rows of the next, and products are summed.

All T ranks take the same samples. Of two products with a nonlinearity in between, Y = phi(X A), Z = Y B, rank r has
columns A_r and rows B_r, and two operators synchronise the ranks:

    Y_r = phi(f(X) A_r)          Z = g(Y_r B_r)          w_r <- w_r - lr rule(g_r)

    f   forward:  X                              backward:  dX <- dX_1 + ... + dX_T
    g   forward:  Z <- Z_1 + ... + Z_T           backward:  dZ

Columns come first, since phi of a sum is not the sum of the phis. An attention block is such a pair, too, whose columns
are heads, and the logits at the end stay split (`parts/vocabulary_loss.py`). Norms, biases of B and residual paths are
outside and replicated on all ranks: in the sequence-parallel form each rank computes them for its own rows, f gathers
rows and g leaves each rank the sums of its own.

Price: for each block the n x h elements of X twice, forward and backward, 2 (T-1) n h each by the ring; the sequence
form sends the same. A rank holds 1/T of matrices and their activations. All ranks synchronise in every block, so T
stays within a node. Staleness: none.
Source: Shoeybi et al., arXiv:1909.08053; Korthikanti et al., arXiv:2205.05198 (sequence parallelism).
"""

import math

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model, shared_by_all
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.vocabulary_loss import cross_entropy
from kernels.arrays import concatenate, shares
from knobs import Refusal, multiples


class Settings(Knobs):
    learning_rate: float = knob(0.2, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every rank, for its shard")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    sequence: bool = knob(False, "let a rank keep only its own rows between two blocks (sequence parallelism)")


def check(workers, batch, workload, s):
    workload.blocks(0, workers)  # raises if there are none, or with the possible numbers of ranks
    rows = batch * math.prod(workload.model.outputs[:-1])
    if s.sequence and rows % workers:
        raise Refusal(
            f"{workers} ranks do not divide {rows} rows; use a batch that is a multiple of {workers}.",
            multiples(workers, batch),
        )


def elements_sent(shape, s):
    return None if shape.workers > 1 else 0  # it depends on the model's layers


def worker(comm, task, s=Settings()):
    shard = task.tensor_shard(comm.rank, comm.size)
    w = shard.start()  # (d_r,)
    rule = optimizer(s.update, w, s.momentum)
    between = SequenceParallel(comm) if s.sequence else Replicated(comm)
    for _ in task.steps(together=True):
        x, target = task.next_batch()
        y, saved = forward(shard.blocks, w, x, between)
        if shard.outputs_split:
            _, dy = cross_entropy(comm, shard, y, target)
        else:
            _, dy = shard.loss(between.whole(y), target)
            dy = between.own_part(dy)
        g = kernels.empty_like(w)
        task.needs(w, g, saved)
        backward(shard.blocks, w, saved, dy, g, between)
        if s.sequence:
            comm.all_reduce(g[shard.norms])  # of its own rows on each rank
        rule.step(w, g, s.learning_rate)
        shard.report(w)
    return w


def forward(blocks, w, x, between):
    """Return (y, saved): the outputs of the last block, and what the backward pass needs."""
    saved = []
    for block in blocks:
        h, entered = block.enter(w, x)
        z, inside = block.inner(w, h if block.first else between.f(h))
        x, left = block.leave(w, between.g(z) if block.partial else z, x, entered)
        saved.append((entered, inside, left))
    return x, saved


def backward(blocks, w, saved, dy, g, between):
    """Write g and return dx, the gradient of the inputs, or None for the model's first block."""
    for block, (entered, inside, left) in zip(reversed(blocks), reversed(saved), strict=True):
        dz, past = block.leave_back(left, dy)
        dh = block.inner_back(w, inside, between.g_back(dz) if block.partial else dz, g)
        dy = None if block.first else block.enter_back(w, entered, between.f_back(dh), past, g)
    return dy


class Replicated:
    """The operators f and g of a block for the case that every rank has all rows between two blocks."""

    def __init__(self, comm):
        self.comm = comm

    def f(self, h):
        return h

    def f_back(self, dh):
        return self.comm.all_reduce(dh)

    def g(self, z):
        return self.comm.all_reduce(z)

    def g_back(self, dz):
        return dz

    def whole(self, y):
        return y

    def own_part(self, dy):
        return dy


class SequenceParallel(Replicated):
    """Sequence parallelism: the operators f and g of a block for the case that a rank has only its own rows between
    blocks.
    """

    def f(self, h):
        return concatenate(self.comm.all_gather(h))

    def f_back(self, dh):
        return self.comm.reduce_scatter(dh.reshape(-1)).reshape(-1, dh.shape[1])

    def g(self, z):
        return self.f_back(z)

    def g_back(self, dz):
        return self.f(dz)

    def whole(self, y):
        return self.f(y)

    def own_part(self, dy):
        return kernels.copy(dy[shares(len(dy), self.comm.size)[self.comm.rank]])


ALGORITHM = Algorithm(
    worker,
    Settings,
    data_shards=shared_by_all,
    split=one_model,
    check=check,
    elements_sent=elements_sent,
    equivalences=(
        Equivalence("one rank gives SGD", to="sgd", exactness="RND"),
        Equivalence("three ranks give SGD", to="sgd", exactness="RND", workers=3),
        Equivalence(
            "the sequence-parallel form is SGD, too", to="sgd", exactness="RND", workers=2, settings={"sequence": True}
        ),
    ),
    example_workers=4,
)
