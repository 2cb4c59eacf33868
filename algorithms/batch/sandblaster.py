"""Sandblaster L-BFGS: a coordinator that never sees a parameter commands shards and assigns small portions of work.

Rank 0 coordinates, ranks 1 to S hold a shard of every vector, the others work. A step is one of L-BFGS on the whole
training set: the direction p from the last `memory` steps (see `parts/lbfgs.py`), then a line search

    w <- w + t p        t = learning_rate, half of it, ... until f(w) falls by 1e-4 t (g . p)

The coordinator commands dot, axpy, scale and copy; each shard does its part, and only scalars are sent
(`parts/sharded_vectors.py`). For f and g a worker fetches w once, requests portions of the samples, accumulates their
gradients and pushes the sum every few portions (`parts/work_queue.py`); a push counts when all shards have received it.
A step is an epoch, so there are 20 by default: on digits, that gives the best model, and later steps fit the noise.
A lost worker costs what it had not pushed; a lost shard or coordinator ends the run.

Price: d elements to each worker per evaluation of f, d back every few portions; 5 m + O(1) commands of at most four
numbers per shard and step, 3 m of them answered by one number, independent of d. A shard holds (2 m + 6) d / S
elements, a worker 3 d. Staleness: none.
Source: Dean et al., Large Scale Distributed Deep Networks, NIPS 2012, section 4.2; the line search is Armijo's.
"""

import numpy as np

import kernels
from algorithms.algorithm import Algorithm, Knobs, knob, shared_by_all
from algorithms.parts.lbfgs import backtrack, direction, remember
from algorithms.parts.sharded_vectors import (
    COMMAND,
    COORDINATOR,
    G0,
    PAIRS,
    W0,
    WORK,
    Command,
    G,
    P,
    ShardedVectors,
    W,
    fetch,
    push_sum,
    serve_shard,
)
from algorithms.parts.work_queue import WorkQueue


class Settings(Knobs):
    learning_rate: float = knob(1.0, "step length tried first; 1 is the quasi-Newton step", gt=0, le=1000)
    shards: int = knob(1, "servers that all vectors are sharded over", ge=1, le=256)
    memory: int = knob(10, "m, past steps the direction is computed from; 0 is steepest descent", ge=0, le=100)
    portion: int | None = knob(None, "samples assigned at a time", none="a quarter of a worker's share", ge=1, le=10**7)
    every: int = knob(4, "portions a worker accumulates before pushing their sum", ge=1, le=10_000)
    backups: bool = knob(True, "assign portions twice near the end; the first to finish counts")


def check(workers, batch, workload, s):
    if s.portion and s.portion > workload.samples:
        raise ValueError(f"a portion of {s.portion} is larger than the training set; use at most {workload.samples}.")
    if s.shards > workload.parameters:
        raise ValueError(f"{s.shards} shards are more than there are parameters; use at most {workload.parameters}.")


def worker(comm, task, s=Settings()):
    if comm.rank == COORDINATOR:
        return Coordinator(comm, task, s).run()
    return serve_shard(comm, task, s) if comm.rank <= s.shards else work(comm, task, s)


class Coordinator(ShardedVectors):
    """Rank 0, which commands operations on the shards' vectors and assigns portions to the workers."""

    def __init__(self, comm, task, s):
        super().__init__(comm, range(1, 1 + s.shards))
        self.task, self.s = task, s
        self.workers = set(range(1 + s.shards, comm.size))
        self.free = set(self.workers)  # workers that wait for an order
        self.assigned = {}  # samples, by worker that is computing them
        self.round, self.computed = 0, 0  # evaluations; samples since the last record, of the line search too
        self.portion = s.portion or max(1, task.workload.samples // (4 * len(self.workers)))

    def run(self):
        unused = [(PAIRS + 2 * k, PAIRS + 2 * k + 1) for k in range(self.s.memory)]
        f, pairs = self.evaluate(), []
        rounding = 10 * float(np.finfo(self.task.workload.dtype).eps) * abs(f)
        step, before = 0, f
        for step in self.task.steps():
            if step:
                self.record(step - 1, before)
            self.task.at(step)
            before = f
            direction(self, G, P, pairs)
            if abs(self.dot(G, P)) < rounding:
                continue  # f cannot fall by more than rounding error: stay
            self.copy(W, W0)
            self.copy(G, G0)
            slope, long = self.dot(G, P), 1.0 if pairs else max(1.0, self.dot(G, G) ** 0.5)  # without pairs p = -g
            t = self.s.learning_rate / long
            f = backtrack(self, self.evaluate, f, slope, t, rounding, (W, W0), P)
            if self.s.memory:
                remember(self, pairs, unused, (W, W0), (G, G0))
            self.tell(Command.REPORT)
        busy = self.workers - self.free  # computing what is no longer needed
        while busy:
            sender, message = self.comm.recv_any(WORK)
            if message is not None and sender not in self.shards:
                self.computed += self.assigned[sender]
            busy.discard(sender)
        self.record(step, before)
        for rank in (*self.workers, *self.shards):
            self.comm.send(None, rank, WORK if rank in self.workers else COMMAND)
        return self.task.start()[:0]  # it has no parameters

    def record(self, step, f):
        """Record f as it was before the step just taken, and the number of samples whose gradients were computed since
        the last record.
        """
        self.task.at(step)
        self.task.record(f, self.computed)
        self.computed = 0

    def evaluate(self):
        """Return the mean loss f of all samples at W, and leave the gradient of f in G."""
        samples = self.task.workload.samples
        self.round += 1
        queue = WorkQueue(-(-samples // self.portion), self.s.every, len(self.workers), self.s.backups, self.shards)
        losses = {}  # by portion
        self.ask(Command.SYNC)  # w is complete before any worker fetches it
        while not queue.is_done:
            for rank in sorted(self.free):
                self.order(rank, queue, counts=False)
            sender, message = self.comm.recv_any(WORK)
            if message is None:
                self.workers.discard(sender)
                self.free.discard(sender)
                queue.forget_worker(sender)
                self.tell(Command.FORGET, sender)
            elif sender in self.shards:
                if queue.confirm(int(message), sender):
                    self.tell(Command.COUNT, int(message))
            else:
                turn, loss = message
                self.computed += self.assigned[sender]
                portion = queue.complete(sender) if turn == self.round else None
                if portion is not None:
                    losses[portion] = loss
                self.order(sender, queue, counts=portion is not None)
        self.tell(Command.MEAN, samples)
        if queue.duplicates:
            self.task.measure("portions computed twice", queue.duplicates)
        return sum(losses[portion] for portion in sorted(losses)) / samples

    def order(self, rank, queue, counts):
        """Tell a worker whether its last portion counts, whether to push, and what to compute next, if anything."""
        push, portion = queue.push_due(rank), queue.assign(rank)
        if portion is not None:
            self.assigned[rank] = min(self.portion, self.task.workload.samples - portion * self.portion)
        if counts or push or portion is not None:
            order = int(counts), int(push), -1 if portion is None else portion, self.portion, self.round
            self.comm.send(order, rank, WORK)
        (self.free.add if portion is None else self.free.discard)(rank)


def work(comm, task, s):
    """Run a worker: compute portions, accumulate those that count, and push the sum on command. Return its copy of w,
    (d,).
    """
    w = task.start()  # (d,)
    total, g, at = kernels.keep(kernels.zeros_like(w)), None, 0
    while (order := comm.recv(COORDINATOR, WORK)) is not None:
        counts, due, portion, size, turn = order
        if counts:
            kernels.add(total, g)
        if due:
            push_sum(comm, total, s.shards)
            total[:] = 0
        if portion < 0:
            continue
        if turn != at:
            fetch(comm, w, s.shards)
            at = turn
        indices = np.arange(portion * size, min((portion + 1) * size, task.workload.samples))
        loss, g = task.portion(w, indices)
        kernels.scale(g, len(indices))
        comm.send((turn, loss * len(indices)), COORDINATOR, WORK)
    return w


ALGORITHM = Algorithm(
    worker,
    Settings,
    servers=lambda s: 1 + s.shards,
    data_shards=shared_by_all,  # any worker may be assigned any sample
    check=check,
    deterministic="but for rounding",
    whole_batch=True,
    defaults={"steps": 20},  # as many passes over the data
    steps_to_learn=40,
    diverging_rate=None,  # the line search shortens any step
)
