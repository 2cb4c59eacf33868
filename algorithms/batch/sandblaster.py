"""Sandblaster L-BFGS: a coordinator that never sees a parameter lets shards compute and hands out small portions.

Rank 0 coordinates, ranks 1 to S hold a shard of every vector, the others work. A step is one of L-BFGS on the whole
training set: the direction p from the last `memory` steps (see `lbfgs.py`), then a line search

    w <- w + t p        t = learning_rate, half of it, ... until f(w) falls by 1e-4 t (g . p)

The coordinator commands dot, axpy, scale and copy; each shard does its part, and only scalars travel (`sharded.py`).
For f and g a worker fetches w once, asks for portions of the samples, adds up their gradients and hands them in every
few portions (`portions.py`); a sum is counted when all shards have all of it. A worker that is lost costs what it had
not handed in; a shard or the coordinator is missed.

Price: d numbers to each worker per evaluation of f, d back every few portions; 4 m + O(1) scalars per shard and step,
which do not depend on d. A shard holds (2 m + 5) d / S numbers. Staleness: none.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.2; the line search is Armijo's.
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Knobs, knob
from algorithms.parts.lbfgs import direction
from algorithms.parts.sharded_vectors import (
    COMMAND,
    COORDINATOR,
    FETCH,
    G0,
    PAIRS,
    W0,
    WORK,
    Do,
    G,
    P,
    Sharded,
    W,
    shard,
)
from algorithms.parts.work_queue import Portions
from kernels.arrays import shares


class Settings(Knobs):
    learning_rate: float = knob(1.0, "step length that is tried first; 1 is the quasi-Newton step", gt=0, le=1000)
    shards: int = knob(1, "servers among whom all vectors are shared out", ge=1, le=256)
    memory: int = knob(10, "m: steps that the direction is made from; 0 is steepest descent", ge=0, le=100)
    portion: int | None = knob(
        None, "samples given to a worker at a time; by default a quarter of its share", ge=1, le=10**7, unit="samples"
    )
    every: int = knob(4, "portions that a worker adds up before it hands them in", ge=1, le=10_000)
    backups: bool = knob(True, "near the end give portions out twice; the first to finish counts")


def servers(s):
    return 1 + s.shards


def data_shards(workers, s):
    return 1  # any worker may be given any sample


def check(workers, batch, workload, s):
    if s.portion and s.portion > workload.samples:
        raise ValueError(
            f"a portion of {s.portion} is larger than the training set; use at most {workload.samples} samples."
        )
    if s.shards > workload.parameters:
        raise ValueError(
            f"{s.shards} shards are more than the {workload.parameters} parameters; use at most that many."
        )


def elements_sent(shape, s):
    return None  # it depends on who is quick, and on the line search


def worker(comm, task, s=Settings()):
    if comm.rank == COORDINATOR:
        return Coordinator(comm, task, s).run()
    return shard(comm, task, s) if comm.rank <= s.shards else work(comm, task, s)


class Coordinator(Sharded):
    """Rank 0: has the shards' vectors by name, and gives the workers portions."""

    def __init__(self, comm, task, s):
        super().__init__(comm, range(1, 1 + s.shards))
        self.task, self.s = task, s
        self.workers = set(range(1 + s.shards, comm.size))
        self.free = set(self.workers)  # those that wait for an order
        self.round = 0
        self.portion = s.portion or max(1, task.workload.samples // (4 * len(self.workers)))

    def run(self):
        unused = [(PAIRS + 2 * k, PAIRS + 2 * k + 1) for k in range(self.s.memory)]
        f, pairs = self.evaluate(), []
        self.rounding = 10 * float(np.finfo(self.task.workload.dtype).eps) * abs(f)
        for _ in self.task.steps():
            self.task.record(f, self.task.workload.samples)
            direction(self, G, P, pairs)
            if abs(self.dot(G, P)) < self.rounding:
                self.tell(Do.REPORT)
                continue  # what f can still fall is lost in rounding: stay
            self.copy(W, W0)
            self.copy(G, G0)
            f = self.search(f, alone=not pairs)
            if self.s.memory:
                self.learn(pairs, unused)
            self.tell(Do.REPORT)
        busy = self.workers - self.free  # with what is no longer needed
        while busy:
            busy.discard(self.comm.recv_any(WORK)[0])
        for rank in (*self.workers, *self.shards):
            self.comm.send(None, rank, WORK if rank in self.workers else COMMAND)
        return self.task.start()[:0]  # it has no parameters

    def learn(self, pairs, unused):
        """Remember the step and what it changed in the gradient, if there is curvature in it."""
        s, y = unused.pop() if unused else pairs.pop(0)
        for new, old, change in ((W, W0, s), (G, G0, y)):
            self.copy(new, change)
            self.axpy(-1.0, old, change)
        curved = self.dot(y, s) > 1e-10 * (self.dot(s, s) * self.dot(y, y)) ** 0.5
        (pairs if curved else unused).append((s, y))

    def search(self, f, alone):
        """Go along p until f has fallen enough; gives f there."""
        slope, t = self.dot(G, P), self.s.learning_rate
        if alone:
            t /= max(1.0, self.dot(G, G) ** 0.5)  # without pairs p is as long as g, whatever that is
        for _ in range(30):
            self.copy(W0, W)
            self.axpy(t, P, W)
            there = self.evaluate()
            if not there > f + 1e-4 * t * slope or abs(t * slope) < self.rounding:
                break  # it has fallen, or cannot be seen to fall; NaN is for the task to see
            t /= 2
        return there

    def evaluate(self):
        """f at W, the mean over all samples; its gradient is at G afterwards."""
        samples = self.task.workload.samples
        self.round += 1
        portions = Portions(-(-samples // self.portion), self.s.every, len(self.workers), self.s.backups, self.shards)
        losses = {}  # of portions
        self.ask(Do.SYNC)  # w is there before anybody fetches it
        while not portions.over:
            for rank in sorted(self.free):
                self.order(rank, portions, counts=False)
            sender, message = self.comm.recv_any(WORK)
            if message is None:
                self.workers.discard(sender)
                self.free.discard(sender)
                portions.lose(sender)
                self.tell(Do.FORGET, sender)
            elif sender in self.shards:
                if portions.arrive(int(message), sender):
                    self.tell(Do.COUNT, int(message))
            else:
                turn, loss = message
                portion = portions.finish(sender) if turn == self.round else None
                if portion is not None:
                    losses[portion] = loss
                self.order(sender, portions, counts=portion is not None)
        self.tell(Do.MEAN, samples)
        if portions.wasted:
            self.task.measure("portions computed twice", portions.wasted)
        return sum(losses[portion] for portion in sorted(losses)) / samples

    def order(self, rank, portions, counts):
        """Tell a worker whether its last portion counts, whether to hand in, and what to compute next, if anything."""
        hand_in, portion = portions.hand_in(rank), portions.give(rank)
        if counts or hand_in or portion is not None:
            what = -1 if portion is None else portion
            self.comm.send((int(counts), int(hand_in), what, self.portion, self.round), rank, WORK)
        (self.free.add if portion is None else self.free.discard)(rank)


def work(comm, task, s):
    """Computes portions, adds up those that count, and hands in the sum when it is told to."""
    w = task.start()  # (d,)
    total, g = kernels.zeros_like(w), None
    shards = list(enumerate(shares(len(w), s.shards), 1))
    at = 0
    while (order := comm.recv(COORDINATOR, WORK)) is not None:
        counts, hand_in, portion, size, turn = order
        if counts:
            kernels.add(total, g)
        if hand_in:
            for rank, part in shards:
                comm.send(total[part], rank, COMMAND)
            total[:] = 0
        if portion < 0:
            continue
        if turn != at:
            for rank, _ in shards:
                comm.send(FETCH, rank, COMMAND)
            for rank, part in shards:
                w[part] = comm.recv(rank, COMMAND)
            at = turn
        indices = np.arange(portion * size, min((portion + 1) * size, task.workload.samples))
        loss, g = task.portion(w, indices)
        kernels.scale(g, len(indices))
        comm.send((turn, loss * len(indices)), COORDINATOR, WORK)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    servers=servers,
    data_shards=data_shards,
    check=check,
    elements_sent=elements_sent,
    deterministic=False,
    whole_batch=True,
    steps_to_learn=40,
)
