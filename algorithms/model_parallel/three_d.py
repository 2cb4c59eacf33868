"""3D parallelism combines tensor parallelism within a node, a pipeline across nodes, and replicas of that pipeline.

Of N = D S T ranks, T neighbours share a stage by columns and rows (`tensor.py`), S of these groups form a pipeline,
and D pipelines each take their own samples. A mini-batch goes through a pipeline in M micro-batches, all forward and
then all backward; then ranks with the same piece of the model average over the replicas:

    rank = (replica S + stage) T + place
    g <- (g_0 + ... + g_{M-1}) / M        g <- mean over replicas of g        w <- w - lr rule(g)

Messages become rarer from the inside out: sums in every block, activations between stages, gradients once per step. So
T is placed on the fastest links, then S, then D.

Price: in a stage that of tensor parallelism; between stages 2 T batch a elements, where a elements per sample cross;
for the gradients 2 (D-1) d. The pipeline idles (S-1)/(M+S-1) of the time. Staleness: none.
Source: Narayanan et al., SC 2021, arXiv:2104.04473 (PTD-P).
"""

from math import prod

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob, one_model
from algorithms.model_parallel.tensor import Replicated, backward, forward
from algorithms.parts.optimizers import HEAVY, Rule, optimizer
from algorithms.parts.rank_groups import check_chunks
from algorithms.parts.vocabulary_loss import cross_entropy
from kernels.arrays import shares
from knobs import Refusal, multiples


class Settings(Knobs):
    learning_rate: float = knob(0.3, "step size", gt=0, le=1000)
    update: Rule = knob("sgd", "optimizer of every rank, for its shard")
    momentum: float = knob(0.9, "mu, decay of the velocity", when=HEAVY, ge=0, lt=1)
    tensor: int = knob(2, "T, ranks that share every matrix of a stage", ge=1, le=4096, unit="ranks")
    stages: int = knob(2, "S, pipeline stages the model is cut into", ge=1, le=4096, unit="stages")
    chunks: int = knob(4, "M, micro-batches per mini-batch", ge=1, le=1024)


def data_shards(workers, s):
    return workers // (s.tensor * s.stages)  # replicas


def check(workers, batch, workload, s):
    blocks = workload.blocks(0, s.tensor)  # raises if there are none, or with the possible numbers of ranks
    check_grid(workers, batch, len(blocks), s.chunks, tensor=s.tensor, stages=s.stages)


def check_grid(workers, batch, blocks, chunks, **dimensions):
    """Raise Refusal if ranks, blocks or samples cannot be divided as the settings ask.

    The product of the dimensions has to divide the number of workers. There have to be at least as many blocks as
    stages, and the batch has to be divisible into this many micro-batches, `chunks`.
    """
    ranks, stages = prod(dimensions.values()), dimensions["stages"]
    if workers % ranks:
        product = " times ".join(f"{name} {size}" for name, size in dimensions.items())
        n = f"{workers} worker{'s' * (workers > 1)}"
        raise Refusal(f"{product} does not divide {n}; use a multiple of {ranks} workers.", multiples(ranks, workers))
    if stages > blocks:
        raise Refusal(f"{stages} stages are too many for {blocks} blocks; use at most {blocks}.", [blocks])
    check_chunks(batch, chunks)


def elements_sent(shape, s):
    return None if s.tensor * s.stages > 1 else 2 * (shape.workers - 1) * shape.parameters * shape.steps


def worker(comm, task, s=Settings()):
    line, place = divmod(comm.rank, s.tensor)
    replica, stage = divmod(line, s.stages)
    between = Replicated(comm.split(line))  # ranks that share this stage
    pipe = comm.split(replica * s.tensor + place)  # ranks with the same place in the other stages
    peers = comm.split(stage * s.tensor + place)  # ranks with the same piece in other replicas
    shard = task.tensor_shard(place, s.tensor, stage, s.stages, s.chunks)
    w = shard.start()
    rule = optimizer(s.update, w, s.momentum)
    for _ in task.steps(together=True):
        g = gradient(task, shard, w, task.next_batch(), between, pipe, s.chunks)
        peers.all_reduce(g, op="mean")
        rule.step(w, g, s.learning_rate)
        if replica == 0:
            shard.report(w)
    return w


def gradient(task, shard, w, batch, between, pipe, chunks):
    """Return this rank's gradient of a mini-batch: all micro-batches forward, then all backward."""
    (x, target), flying = batch, []
    stage, last = pipe.rank, pipe.size - 1
    for chunk in shares(len(x), chunks):
        y, saved = forward(shard.blocks, w, pipe.recv(stage - 1) if stage else x[chunk], between)
        dy = None
        if stage < last:
            pipe.send(y, stage + 1)
        elif shard.outputs_split:
            _, dy = cross_entropy(between.comm, shard, y, target[chunk])
        else:
            _, dy = shard.loss(y, target[chunk])
        flying.append((saved, dy))
    g = kernels.zeros_like(w)
    task.needs(w, g, [saved for saved, _ in flying])
    for saved, dy in flying:
        own = kernels.empty_like(w)
        dx = backward(shard.blocks, w, saved, pipe.recv(stage + 1) if dy is None else dy, own, between)
        if stage:
            pipe.send(dx, stage - 1)
        kernels.add(g, own)
    kernels.scale(g, 1 / chunks)
    return g


ALGORITHM = Algorithm(
    worker,
    Settings,
    data_shards=data_shards,
    split=lambda workers, s: one_model(workers / data_shards(workers, s), s),
    check=check,
    elements_sent=elements_sent,
    model_defaults={"model": "mlp", "hidden": "64,64,64"},  # two pairs of layers to cut
    equivalences=(
        Equivalence("one rank gives SGD", to="sgd", exactness="RND", settings={"tensor": 1, "stages": 1, "chunks": 1}),
        Equivalence("two stages of two ranks give SGD", to="sgd", exactness="RND", workers=4),
        Equivalence(
            "two replicas of two stages give SGD with twice the batch",
            to="sgd",
            exactness="RND",
            workers=4,
            settings={"tensor": 1},
            to_batch=2,
        ),
        Equivalence(
            "two replicas of two ranks that share matrices give SGD with twice the batch",
            to="sgd",
            exactness="RND",
            workers=4,
            settings={"stages": 1},
            to_batch=2,
        ),
    ),
    example_workers=4,
)
