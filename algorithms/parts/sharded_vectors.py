"""Sharded vectors: a coordinator says what is to be done with vectors, and each server does it with its shard of them.

Both halves of the conversation are here. A command is a few numbers, whatever the length of the vectors; only dot
products are answered, by one number from each shard.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.2.
"""

from __future__ import annotations

from collections import deque
from enum import IntEnum

import kernels
from kernels.arrays import shares

COORDINATOR = 0
COMMAND, WORK = 1, 2  # tags: what a shard is told, and what the coordinator is
W, G, P, W0, G0 = range(5)  # vectors by name; the pairs of L-BFGS come after
PAIRS = 5
FETCH = ()  # what a worker tells a shard that is to send its part of w


class Do(IntEnum):
    """What the coordinator tells a shard."""

    DOT, AXPY, SCALE, COPY = range(4)
    SYNC = 4  # answer, when everything before has been done
    COUNT, FORGET = 5, 6  # add what a worker has handed in to the sum; that worker is lost
    MEAN = 7  # the gradient is the sum over so many samples, and the next sum begins
    REPORT = 8


class Sharded:
    """The coordinator's half: `lbfgs.Vectors` that lie on ranks `shards`."""

    def __init__(self, comm, shards):
        self.comm, self.shards = comm, shards

    def tell(self, *command):
        for rank in self.shards:
            self.comm.send(command, rank, COMMAND)

    def ask(self, *command):
        """The sum of all answers."""
        self.tell(*command)
        return sum(self.comm.recv(rank, COMMAND) for rank in self.shards)

    def dot(self, x, y):
        return self.ask(Do.DOT, x, y)

    def axpy(self, a, x, y):
        self.tell(Do.AXPY, a, x, y)

    def scale(self, a, x):
        self.tell(Do.SCALE, a, x)

    def copy(self, x, y):
        self.tell(Do.COPY, x, y)


def shard(comm, task, s):
    """A server's half: it has its part of every vector, serves w to workers, and adds up what they hand in."""
    whole = task.start()
    part = shares(len(whole), s.shards)[comm.rank - 1]
    vectors = [kernels.copy(whole[part]) for _ in range(PAIRS + 2 * s.memory)]  # (d / S,) each
    total = kernels.zeros_like(vectors[W])
    handed = {}  # worker -> what it handed in and the coordinator has not counted; the next may be here before that
    gone = set()  # workers that are lost
    while True:
        sender, said = comm.recv_any(COMMAND)
        if sender != COORDINATOR:
            if isinstance(said, tuple):
                comm.send(vectors[W], sender, COMMAND)
            elif said is not None and sender not in gone:
                handed.setdefault(sender, deque()).append(said)
                comm.send(sender, COORDINATOR, WORK)  # it is here
            continue
        match said:
            case None:
                return vectors[W]
            case (Do.DOT, x, y):
                comm.send(kernels.dot(vectors[x], vectors[y]), COORDINATOR, COMMAND)
            case (Do.AXPY, a, x, y):
                kernels.sgd(vectors[y], vectors[x], -a)
            case (Do.SCALE, a, x):
                kernels.scale(vectors[x], a)
            case (Do.COPY, x, y):
                vectors[y][:] = vectors[x]
            case (Do.SYNC,):
                comm.send(0, COORDINATOR, COMMAND)
            case (Do.COUNT, rank):
                kernels.add(total, handed[rank].popleft())
            case (Do.FORGET, rank):
                handed.pop(rank, None)
                gone.add(rank)
            case (Do.MEAN, samples):
                vectors[G][:] = total
                kernels.scale(vectors[G], 1 / samples)
                total[:] = 0
            case (Do.REPORT,):
                task.report(vectors[W], part)
