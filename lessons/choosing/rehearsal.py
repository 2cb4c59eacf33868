"""Rehearse the eight strategies on the simulated cluster: every message is simulated, but nothing is trained.

A rank computes by advancing its clock. Vectors are shortened and the network slowed by the same factor, which saves
work but changes no time. Sums run one after another, as on one stream of a GPU.
"""

from dataclasses import replace
from math import inf

import numpy as np

from cluster import simulated
from cluster.devices import Device
from cluster.event_log import Outcome
from kernels.meter import METER
from lessons.choosing.case import Case
from lessons.choosing.strategies import PERIOD
from theory import overlap, schedules
from theory.published_models import FLOAT32

ROUNDS = 10  # steps with the server; the second half is timed, after the initial crowding
STEPS = {"local SGD": PERIOD, "server": ROUNDS // 2}  # steps that a program's time covers; one for all others
FLOPS = 1e15  # FLOP/s, at which additions take no time


def rehearse(c: Case, strategy: str) -> float:
    """Simulate the messages of a strategy and return the time of a step, in s."""
    return max(play(c, strategy).results) / STEPS.get(strategy, 1)


def bytes_to_send(c: Case, strategy: str) -> float:
    """Simulate a strategy without a server, and return the number of bytes that the busiest rank sends in a step."""
    return c.shrink * float(play(c, strategy).trace().traffic().sum(axis=1).max()) / STEPS.get(strategy, 1)


def play(c: Case, strategy: str) -> Outcome:
    """Run a strategy's program on the simulated cluster and return its Outcome. The result of a rank is the time it
    takes, in s, not counting warm-up rounds.
    """
    program = PROGRAMS[strategy]
    ranks = {"one machine": 1, "server": c.ranks + 1}.get(strategy, c.ranks)
    link = c.links.between
    latency = c.alpha - link.overhead
    link = replace(link, latency=latency, bandwidth=1 / c.beta / c.shrink)
    network = replace(c.links, between=link, within=link, per_node=1)

    def timed(comm):
        begins = program(comm, c)
        return comm.event_log.clock() - (begins or 0.0)

    outcome = simulated.run(timed, ranks, network=network, device=Device(FLOPS, inf, 0.0), collective="stream")
    if outcome.error:
        raise outcome.error
    return outcome


def spend(seconds: float) -> None:
    """Advance this rank's clock by `seconds`."""
    METER.get().charge("compute", seconds * FLOPS, 0.0)


def vector(c: Case, nbytes: float) -> np.ndarray:
    """Return an array that stands for a vector of `nbytes` bytes. It is shorter by the factor `c.shrink`."""
    return np.zeros(max(1, round(nbytes / FLOAT32 / c.shrink)), np.float32)


def one_machine(comm, c):
    spend(c.ranks * c.compute)


def all_reduce(comm, c):
    spend(c.compute)
    comm.all_reduce(vector(c, c.nbytes))


def overlapped_all_reduce(comm, c):
    p, under_way = c.overlap(), []
    spend(sum(p.forward))
    for bucket in overlap.fill_buckets(p, c.bucket):
        spend(sum(p.backward[layer] for layer in bucket))
        under_way.append(comm.all_reduce(vector(c, p.size(bucket)), async_op=True))
    for handle in under_way:
        handle.wait()


def server(comm, c):
    x = vector(c, c.nbytes)
    if comm.rank == 0:
        for _ in range(ROUNDS * (comm.size - 1)):
            worker, _ = comm.recv_any()
            comm.send(x, worker)
        return comm.event_log.clock()
    for step in range(ROUNDS):
        if step == ROUNDS // 2:
            begins = comm.event_log.clock()
        spend(c.compute)
        comm.send(x, 0)
        comm.recv(0)
    return begins


def local_sgd(comm, c):
    spend(PERIOD * c.compute)
    comm.all_reduce(vector(c, c.nbytes))


def pipeline(comm, c):
    s, last = comm.rank, comm.size - 1
    seconds = c.seconds(c.stages[s])
    edges = [vector(c, c.itemsize * c.batch * stage[-1].outputs) for stage in c.stages]
    for kind, _, _ in schedules.lists("1f1b", comm.size, c.ranks)[s]:
        if kind == "F":
            if s > 0:
                comm.recv(s - 1)
            spend(seconds / 3)
            if s < last:
                comm.send(edges[s], s + 1)
        elif kind == "B":
            if s < last:
                comm.recv(s + 1)
            spend(2 * seconds / 3)
            if s > 0:
                comm.send(edges[s - 1], s - 1)


def tensor(comm, c):
    for _ in range(c.ranks):
        for layer in c.layers:
            spend(c.seconds([layer]) / c.ranks)
            for _ in range(layer.sums):
                comm.all_reduce(vector(c, c.itemsize * c.batch * layer.summed / layer.sums))


def zero3(comm, c):
    for layer in c.layers:  # forward: the weights of a layer, from all its shards, only when it is reached
        comm.all_gather(vector(c, c.itemsize * layer.parameters / comm.size))
        spend(c.seconds([layer]) / 3)
    for layer in reversed(c.layers):
        comm.all_gather(vector(c, c.itemsize * layer.parameters / comm.size))
        spend(2 * c.seconds([layer]) / 3)
        comm.reduce_scatter(vector(c, c.itemsize * layer.parameters))


PROGRAMS = {
    "one machine": one_machine,
    "all-reduce": all_reduce,
    "overlapped": overlapped_all_reduce,
    "server": server,
    "local SGD": local_sgd,
    "1F1B": pipeline,
    "tensor": tensor,
    "ZeRO-3": zero3,
}
"""Strategy name -> what each rank runs in a step: program(comm, case). It may return the time at which timing
begins."""
