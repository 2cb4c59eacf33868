"""Downpour SGD: replicas push gradients to one or more servers and fetch parameters from them, each at its own pace.

Ranks 0 to S-1 are servers, by default one, each with a shard of the parameters; the others are replicas. Every n_fetch
steps a replica fetches w, every n_push steps it pushes the sum a of its gradients since the last push; between fetches
it takes local steps. A server applies every push to its current w at once:

    replica   a <- a + g(w)      w <- w - lr g(w)
    server    sgd      w <- w - lr a
              adagrad  s <- s + a^2      w <- w - lr a / sqrt(s)

In the paper's appendix, replicas push after steps 0, n_push, 2 n_push ..., so the first push has one gradient. Here
every push has n_push gradients, except the last one, which has those that are left.

With `warm`, the first replica makes this many pushes alone: early gradients are large, and many stale ones at once
overshoot. A run survives the loss of a replica, but not of a server.

A replica waits for its fetch, or with `overlap` keeps computing: the answer is used when the next fetch starts.

Price: d / n_push elements sent and d / n_fetch received per step of a replica; no replica waits for another.
One accumulator on a replica; as much again as w on the servers for s.
Staleness, of the last gradient in a push and counted by each server: N-1 updates on average if a push is followed
by a fetch at once, at any speeds; fewer if other steps come in between.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.1 and appendix.
"""

from collections import deque
from typing import Literal

import kernels
from algorithms.algorithm import Algorithm, Equivalence, Knobs, knob
from kernels.arrays import shares

FETCH = BEGIN = ()  # messages without content


class Settings(Knobs):
    learning_rate: float = knob(0.02, "step size; with adagrad, of each weight's first step", gt=0, le=1000)
    update: Literal["adagrad", "sgd"] = knob("adagrad", "optimizer a server applies to a push")
    shards: int = knob(1, "servers that the parameters are sharded over", ge=1, le=256)
    n_push: int = knob(1, "steps between pushes of gradients", ge=1, le=10_000, unit="steps", postpones=True)
    n_fetch: int = knob(1, "steps between fetches of parameters", ge=1, le=10_000, unit="steps", postpones=True)
    warm: int = knob(0, "pushes by the first replica before the others begin", ge=0, le=10_000_000, unit="pushes")
    overlap: bool = knob(False, "keep computing while parameters are being fetched", postpones=True)


def servers(s):
    return s.shards


def restartable(s):
    return not s.warm  # a replica that waits to begin is notified once


def check(workers, batch, workload, s):
    if s.shards > workload.parameters:
        raise ValueError(
            f"{s.shards} shards are more than the {workload.parameters} parameters; use at most that many."
        )


def elements_sent(shape, s):
    return shape.workers * shape.parameters * (-(-shape.steps // s.n_push) + -(-shape.steps // s.n_fetch))


def worker(comm, task, s=Settings()):
    return server(comm, task, s) if comm.rank < s.shards else replica(comm, task, s)


def replica(comm, task, s):
    w = task.start()  # (d,)
    a = kernels.keep(kernels.zeros_like(w))
    shards = list(enumerate(shares(len(w), s.shards)))
    if s.warm and comm.rank > s.shards:  # not the first one
        for k, _ in shards:
            comm.recv(k)
    fetching = False  # whether an answer is in flight
    gathered = 0  # gradients in a

    def push():
        for k, part in shards:
            comm.send(a[part], k)
        a[:] = 0

    for step in task.steps():
        if step % s.n_fetch == 0:
            for k, _ in shards:
                comm.send(FETCH, k)
            if fetching or not s.overlap:
                for k, part in shards:
                    w[part] = comm.recv(k)
            fetching = s.overlap
        _, g = task.gradient(w)
        kernels.add(a, g)
        kernels.sgd(w, g, s.learning_rate)
        gathered += 1
        if gathered == s.n_push:
            push()
            gathered = 0
    if gathered:
        push()
    for k, part in shards:
        if fetching:
            w[part] = comm.recv(k)
        comm.send(None, k)  # no more pushes
    return w


def server(comm, task, s):
    w = task.start()
    part = shares(len(w), s.shards)[comm.rank]
    w = kernels.copy(w[part])  # (d / S,)
    squares = kernels.state_like(w) if s.update == "adagrad" else None
    updates = 0
    read = {rank: deque([0], maxlen=2 if s.overlap else 1) for rank in range(s.shards, comm.size)}
    training = set(read)
    later = [rank for rank in read if rank > s.shards] if s.warm else []  # replicas that have not begun
    while training:
        sender, a = comm.recv_any()
        if a is None:
            training.discard(sender)
        elif isinstance(a, tuple):
            comm.send(w, sender)
            read[sender].append(updates)
        else:
            if s.update == "adagrad":
                kernels.adagrad(w, squares, a, s.learning_rate, 0.0)
            else:
                kernels.sgd(w, a, s.learning_rate)
            task.applied(updates - read[sender][0])
            updates += 1
            task.report(w, part)
        if later and (updates == s.warm or s.shards not in training):
            for rank in later:
                comm.send(BEGIN, rank)
            later = []
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    servers=servers,
    check=check,
    elements_sent=elements_sent,
    deterministic=False,
    counts_staleness=True,
    restartable=restartable,
    equivalences=(
        Equivalence("one replica gives SGD", to="sgd", settings={"update": "sgd"}),
        Equivalence("one replica with three servers gives SGD", to="sgd", settings={"update": "sgd", "shards": 3}),
        Equivalence(
            "one replica that fetches right after it pushes gives SGD",
            to="sgd",
            exactness="RND",
            settings={"update": "sgd", "n_push": 4, "n_fetch": 4},
        ),
    ),
)
