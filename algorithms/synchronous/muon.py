"""Muon replaces a matrix's update with the nearest orthogonal matrix, so the matrix's owner needs its whole gradient.

Hidden matrices are dealt to the ranks, the largest first, each to the rank with the least work so far. In every step

    the owner of W receives the gradients of W from all ranks, in the order of ranks, G being their mean
    B <- mu B + G        U = NS(G + mu B)        W <- W - lr scale U        the owner sends W to all

where NS, five steps of a Newton-Schulz iteration, moves all singular values close to 1 without decomposing anything:

    X <- X / |X|        5 times: A = X X^T, X <- 3.4445 X + (-4.7750 A + 2.0315 A A) X

All directions of W are then learned at the same pace, also those with small gradients. Unlike Adam it cannot be cut
into pieces, since a piece has other singular values: ZeRO-1 would compute something else, and with more ranks than
matrices some have nothing to update. The scale allows for the shape: Jordan's is sqrt(max(1, rows / columns)),
Moonlight's .2 sqrt(max(rows, columns)), which makes steps as long as Adam's. Vectors, and the first and last matrix,
take Adam's step on all ranks.

Price: 2 (N-1) d elements per step in total, as synchronous SGD, through the owners' links; B only at the owner; about 5
(4 r^2 c + 2 r^3) FLOPs for a matrix of r rows and c >= r columns. Staleness: none.
Source: Jordan et al., "Muon: An optimizer for hidden layers in neural networks", 2024; Liu, Su et al., arXiv:2502.16982
(distributed; Moonlight).
"""

from math import sqrt
from typing import Literal

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, ring_all_reduces
from algorithms.parts.optimizers import BETAS, EPS
from algorithms.parts.segments import side_by_side

A, B, C, ROUNDS = 3.4445, -4.7750, 2.0315, 5


class Settings(Knobs):
    learning_rate: float = knob(0.01, "step size", gt=0, le=1000)
    momentum: float = knob(0.95, "mu, decay of the matrices' momentum", ge=0, lt=1)
    scale: Literal["jordan", "moonlight"] = knob(
        "moonlight", "factor of a matrix's step by its shape; moonlight makes steps as long as Adam's"
    )
    all_matrices: bool = knob(False, "orthogonalise the first and the last matrix, too")


def worker(comm, task, s=Settings()):
    w = task.start()  # (d,), equal on all ranks, and it stays so
    owned, others = divide(task.tensors, comm.size, s.all_matrices)
    mine = [(place, shape, kernels.state_like(w[place])) for place, shape in owned[comm.rank]]  # with B
    within = side_by_side(others)
    length = within[-1].stop if within else 0
    moments = kernels.state_like(kernels.empty(length, w)), kernels.state_like(kernels.empty(length, w))
    rest = kernels.keep(kernels.empty(length, w))  # the gradients of everything else
    for step in task.steps(together=True):
        _, g = task.gradient(w)
        reduce_to_owners(comm, g, owned)
        if length:
            for here, place in zip(within, others, strict=True):
                rest[here] = g[place]
            comm.all_reduce(rest, op="mean")
        for here, place in zip(within, others, strict=True):
            m, v = (moment[here] for moment in moments)
            kernels.adam(w[place], m, v, rest[here], step + 1, s.learning_rate, *BETAS, EPS)
        for place, shape, momentum in mine:
            kernels.scale(g[place], 1 / comm.size)
            kernels.mix(momentum, g[place], s.momentum, 1.0)
            kernels.mix(g[place], momentum, 1.0, s.momentum)
            direction = orthogonal(g[place].reshape(shape[0], -1))
            kernels.sgd(w[place], direction.reshape(-1), s.learning_rate * factor(*direction.shape, s.scale))
        send_to_all(comm, w, owned)
        if comm.rank == 0:
            task.report(w)
    return w


def reduce_to_owners(comm, g, owned):
    """Sum each matrix's part of g over all ranks, on the rank that owns the matrix."""
    for rank, matrices in enumerate(owned):
        if rank != comm.rank and matrices:
            comm.send(tuple(g[place] for place, _ in matrices), rank)
    mine = owned[comm.rank]
    if mine:
        own = tuple(kernels.copy(g[place]) for place, _ in mine)
        for sender in range(comm.size):  # in the order of ranks: the same bits always
            pieces = own if sender == comm.rank else comm.recv(sender)
            for (place, _), piece in zip(mine, pieces, strict=True):
                kernels.mix(g[place], piece, float(sender > 0), 1.0)


def send_to_all(comm, w, owned):
    """Copy each matrix in w from its owner to all other ranks."""
    if owned[comm.rank]:
        for rank in range(comm.size):
            if rank != comm.rank:
                comm.send(tuple(w[place] for place, _ in owned[comm.rank]), rank)
    for rank, matrices in enumerate(owned):
        if rank != comm.rank and matrices:
            for (place, _), updated in zip(matrices, comm.recv(rank), strict=True):
                w[place] = updated


def divide(tensors, ranks, all_matrices):
    """Return the matrices that each rank owns, as (slice of w, shape), and the slices of everything else."""
    matrices = [(place, shape) for place, shape in tensors if len(shape) > 1]
    if not all_matrices:
        matrices = matrices[1:-1]
    owned = [[] for _ in range(ranks)]
    load = [0] * ranks
    for place, shape in sorted(matrices, key=lambda one: one[0].start - one[0].stop):
        owner = load.index(min(load))
        owned[owner].append((place, shape))
        load[owner] += place.stop - place.start
    return owned, [place for place, shape in tensors if (place, shape) not in matrices]


def factor(rows, columns, scale):
    """Return the scale of the step for a matrix of this shape."""
    return sqrt(max(1, rows / columns)) if scale == "jordan" else 0.2 * sqrt(max(rows, columns))


def orthogonal(x):
    """Return NS(x) for a matrix x: a matrix with the same singular vectors, and with singular values of about 1."""
    tall = x.shape[0] > x.shape[1]
    x = kernels.copy(x.T if tall else x)
    rows = x.shape[0]
    kernels.scale(x.reshape(-1), 1 / (sqrt(kernels.squared_norm(x.reshape(-1))) + 1e-7))
    a, square = (kernels.empty((rows, rows), x) for _ in range(2))
    product = kernels.empty_like(x)
    for _ in range(ROUNDS):
        kernels.matmul(a, x, x.T)
        kernels.matmul(square, a, a)
        kernels.mix(a.reshape(-1), square.reshape(-1), B, C)
        kernels.matmul(product, a, x)
        kernels.mix(x.reshape(-1), product.reshape(-1), A, 1.0)
    return kernels.copy(x.T) if tall else x


ALGORITHM = Algorithm(
    worker,
    Settings,
    elements_sent=ring_all_reduces,
    computes_together=True,
    equivalences=(
        Equivalence(
            "N workers equal one worker with N times the batch",
            to="muon",
            exactness="RND",
            workers=4,
            to_workers=1,
            to_batch=4,
        ),
    ),
)
