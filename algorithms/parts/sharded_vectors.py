"""Vectors sharded over servers: a coordinator commands vector operations, and each server performs them on its shard.

Both sides of the protocol are here. A command is a few numbers, however long the vectors are; only dot products are
answered, by one number from each shard.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.2.
"""

from collections import deque
from enum import IntEnum

import kernels
from kernels.arrays import shares

COORDINATOR = 0
COMMAND, WORK = 1, 2  # tags of messages to a shard, and to the coordinator
W, G, P, W0, G0 = range(5)  # names of vectors; those of L-BFGS's pairs follow
PAIRS = 5
FETCH = ()  # a worker's request for a shard's part of w


class Command(IntEnum):
    DOT, AXPY, SCALE, COPY = range(4)
    SYNC = 4  # answer when all earlier commands have been executed
    COUNT, FORGET = 5, 6  # add a worker's oldest push to the sum; discard those of a lost worker
    MEAN = 7  # divide the sum by this many samples into the gradient, and start the next sum
    REPORT = 8


class ShardedVectors:
    """The coordinator's view of vectors that live on the ranks `shards`; implements `lbfgs.Vectors`."""

    def __init__(self, comm, shards):
        self.comm, self.shards = comm, shards

    def tell(self, *command):
        for rank in self.shards:
            self.comm.send(command, rank, COMMAND)

    def ask(self, *command):
        """Send a command to all shards and return the sum of their answers."""
        self.tell(*command)
        return sum(self.comm.recv(rank, COMMAND) for rank in self.shards)

    def dot(self, x, y):
        return self.ask(Command.DOT, x, y)

    def axpy(self, a, x, y):
        self.tell(Command.AXPY, a, x, y)

    def scale(self, a, x):
        self.tell(Command.SCALE, a, x)

    def copy(self, x, y):
        self.tell(Command.COPY, x, y)


def fetch(comm, w, count: int) -> None:
    """Fetch a worker's copy of w, (d,), from the `count` shards, in place."""
    shards = list(enumerate(shares(len(w), count), 1))
    for rank, _ in shards:
        comm.send(FETCH, rank, COMMAND)
    for rank, part in shards:
        w[part] = comm.recv(rank, COMMAND)


def push_sum(comm, total, count: int) -> None:
    """Send each shard its part of a worker's accumulated gradient, (d,)."""
    for rank, part in enumerate(shares(len(total), count), 1):
        comm.send(total[part], rank, COMMAND)


def serve_shard(comm, task, s):
    """Run a server, which holds its part of every vector, serves w to workers, and adds up their pushes."""
    whole = task.start()
    part = shares(len(whole), s.shards)[comm.rank - 1]
    w = kernels.copy(whole[part])  # (d / S,)
    vectors = [w, *(kernels.keep(kernels.copy(w)) for _ in range(PAIRS - 1 + 2 * s.memory))]  # by name, W first
    total = kernels.keep(kernels.zeros_like(w))
    pushed = {}  # worker -> its pushes that the coordinator has not counted yet
    gone = set()  # lost workers
    while True:
        sender, said = comm.recv_any(COMMAND)
        if sender != COORDINATOR:
            if isinstance(said, tuple):
                comm.send(vectors[W], sender, COMMAND)
            elif said is not None and sender not in gone:
                pushed.setdefault(sender, deque()).append(said)
                comm.send(sender, COORDINATOR, WORK)  # its push has arrived
            continue
        match said:
            case None:
                return vectors[W]
            case (Command.DOT, x, y):
                comm.send(kernels.dot(vectors[x], vectors[y]), COORDINATOR, COMMAND)
            case (Command.AXPY, a, x, y):
                kernels.sgd(vectors[y], vectors[x], -a)
            case (Command.SCALE, a, x):
                kernels.scale(vectors[x], a)
            case (Command.COPY, x, y):
                vectors[y][:] = vectors[x]
            case (Command.SYNC,):
                comm.send(0, COORDINATOR, COMMAND)
            case (Command.COUNT, rank):
                kernels.add(total, pushed[rank].popleft())
            case (Command.FORGET, rank):
                pushed.pop(rank, None)
                gone.add(rank)
            case (Command.MEAN, samples):
                vectors[G][:] = total
                kernels.scale(vectors[G], 1 / samples)
                total[:] = 0
            case (Command.REPORT,):
                task.report(vectors[W], part)
