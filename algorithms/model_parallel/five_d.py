"""5D parallelism divides samples, matrices, layers, sequences and experts among ranks, all in one run.

3D parallelism (`three_d.py`) has T ranks share every matrix, S stages, and D replicas of the pipeline. Here C ranks
also share every sequence, by a ring of keys in attention (`context.py`), and the D C ranks with the same matrices form
groups of E, which divide the experts of their mixtures and exchange rows of tokens (`expert.py`). So experts are shared
by ranks that would hold copies of them, and need no ranks of their own: N = D S C T.

    rank = ((replica S + stage) C + part) T + place

    experts:    g <- sum over the ranks with the same experts of g, / (D C)
    the rest:   g <- mean over the D C ranks with the same matrices of g          w <- w - lr rule(g)

An expert's g is already the sum over its group. Messages become rarer from the inside out, as in 3D parallelism.

Price: per replica that of tensor parallelism and of the stages, and in each attention block of width h, for n samples
of T_s positions, the ring's n T_s h (6 C - 4) if C > 1; experts as in `expert.py`, within their groups; for gradients
2 (D C - 1) d without experts. The pipeline idles (S-1)/(M+S-1) of the time. Staleness: none.
Source: Grattafiori et al., arXiv:2407.21783, section 3.3.2 (tensor, context, pipeline, data); Singh et al., ICS 2023,
arXiv:2303.06318 (DeepSpeed-TED: experts over data-parallel ranks, with tensor parallelism).
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model
from algorithms.model_parallel.context import RingExchange
from algorithms.model_parallel.expert import TokenExchange
from algorithms.model_parallel.tensor import Replicated
from algorithms.model_parallel.three_d import check_grid, gradient
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.rank_groups import divisors, one_of
from algorithms.parts.sequence import pieces_of
from knobs import Refusal, multiples


class Settings(Knobs):
    learning_rate: float = knob(0.3, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every rank, for its shard")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    tensor: int = knob(1, "T, ranks that share every matrix of a stage", ge=1, le=4096, unit="ranks")
    context_ranks: int = knob(2, "C, ranks that share every sequence", ge=1, le=1024, unit="ranks")
    stages: int = knob(2, "S, pipeline stages the model is cut into", ge=1, le=4096, unit="stages")
    expert_ranks: int = knob(1, "E, ranks that share the experts of a mixture", ge=1, le=64, unit="ranks")
    chunks: int = knob(4, "M, micro-batches per mini-batch", ge=1, le=1024)


def data_shards(workers, s):
    return workers // (s.tensor * s.context_ranks * s.stages)  # replicas


def check(workers, batch, workload, s):
    blocks = workload.blocks(0, s.tensor, (0, 1))  # raises if there are none, or with the possible numbers of ranks
    check_grid(workers, batch, len(blocks), s.chunks, tensor=s.tensor, context_ranks=s.context_ranks, stages=s.stages)
    if s.context_ranks > 1 and (time := workload.sequence()[0]) % (pieces := 2 * s.context_ranks):
        raise Refusal(
            f"context_ranks {s.context_ranks} needs {pieces} pieces of each sequence, which do not divide a context of "
            f"{time}; use a context that is a multiple of {pieces}.",
            multiples(pieces, time),
        )
    peers = workers // (s.tensor * s.stages)
    if s.expert_ranks > 1 and (workload.experts() % s.expert_ranks or peers % s.expert_ranks):
        fitting = [n for n in divisors(peers) if workload.experts() % n == 0]
        raise Refusal(
            f"expert_ranks {s.expert_ranks} does not divide both {workload.experts()} experts and the {peers} ranks "
            f"with the same matrices; use {one_of(fitting)}.",
            fitting,
        )


def elements_sent(shape, s):
    if s.tensor * s.context_ranks * s.stages * s.expert_ranks > 1:
        return None  # it depends on the model's layers
    return 2 * (shape.workers - 1) * shape.parameters * shape.steps


def worker(comm, task, s=Settings()):
    line, place = divmod(comm.rank, s.tensor)
    row, part = divmod(line, s.context_ranks)
    replica, stage = divmod(row, s.stages)
    between = Replicated(comm.split(line))  # ranks that share matrices
    sequence = comm.split(row * s.tensor + place)  # ranks that share sequences
    pipe = comm.split((replica * s.context_ranks + part) * s.tensor + place)  # ranks of the other stages
    peers = comm.split(stage * s.tensor + place)  # ranks with the same matrices
    group, holder = divmod(peers.rank, s.expert_ranks)
    exchange = TokenExchange(peers.split(group))  # ranks that share experts
    alike = peers.split(holder)  # ranks with the same experts

    pieces, attention = [()], None
    if s.context_ranks > 1:
        time, heads = task.workload.sequence()
        pieces = [pieces_of(rank, s.context_ranks, time, "zigzag") for rank in range(s.context_ranks)]
        attention = RingExchange(task, sequence, pieces, heads // s.tensor)
    shard = task.grid_shard(
        place, s.tensor, stage, s.stages, s.chunks, pieces[part], attention, (holder, s.expert_ranks), exchange
    )
    w = shard.start()
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        batch = shard.next_batch()
        g = gradient(task, shard, w, batch, between, pipe, s.chunks)
        if stage == s.stages - 1:
            loss = kernels.beside(np.array([shard.mean_loss()], task.workload.dtype), g)
            sequence.all_reduce(loss, op="mean")
            if part == place == 0:
                task.record(float(loss[0]), len(batch[0]))
        if shard.wanted:  # it has mixtures of experts
            task.measure("tokens dropped", shard.fraction_dropped)
            task.measure("imbalance", shard.imbalance)
        if shard.experts:
            alike.all_reduce(g[: shard.experts])
            kernels.scale(g[: shard.experts], 1 / peers.size)
        peers.all_reduce(g[shard.experts :], op="mean")
        rule.step(w, g, s.learning_rate)
        shard.report_part(w, first=peers.rank == 0, experts=group == 0)
    return w


ONE = {"tensor": 1, "context_ranks": 1, "stages": 1, "chunks": 1}  # rank for each replica
EIGHT = {"tensor": 2, "context_ranks": 2, "stages": 2, "chunks": 2}

ALGORITHM = Algorithm(
    worker,
    Settings,
    data_shards=data_shards,
    split=lambda workers, s: one_model(s.tensor * s.stages * s.expert_ranks, s),  # experts are most of it
    stages=lambda workers, s: s.stages,
    check=check,
    elements_sent=elements_sent,
    defaults={"workload": "text"},
    equivalences=tuple(
        Equivalence(claim, to="sgd", exactness="RND", workers=workers, settings=settings, to_batch=replicas)
        for claim, workers, replicas, settings in (
            ("one rank gives SGD", 1, 1, ONE),
            ("two ranks that share matrices give SGD", 2, 1, ONE | {"tensor": 2}),
            ("two ranks that share sequences give SGD", 2, 1, ONE | {"context_ranks": 2}),
            ("two stages give SGD", 2, 1, ONE | {"stages": 2, "chunks": 2}),
            ("two replicas that share experts give SGD with twice the batch", 2, 2, ONE | {"expert_ranks": 2}),
            (
                "eight ranks that share matrices, sequences, layers and experts give SGD",
                8,
                1,
                EIGHT | {"expert_ranks": 2},
            ),
            ("two replicas of these eight ranks give SGD with twice the batch", 16, 2, EIGHT | {"expert_ranks": 4}),
        )
    ),
    example_workers=4,
)
