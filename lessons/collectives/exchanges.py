"""Ways to give every rank the sum of all ranks' vectors, and the time that each takes on the simulated cluster.

Messages are simulated one by one, by default over 10 GbE (20 us, 1.17 GB/s), and all ranks start at the same time.
Arithmetic is free here, so that the closed forms of `theory.collective_costs` are exact.
"""

import math
from collections.abc import Callable

import numpy as np

import kernels
from cluster import simulated
from cluster.devices import Device
from cluster.event_log import Outcome
from cluster.network import NETWORKS
from kernels.arrays import shares

NETWORK = NETWORKS["10GbE"]
FREE = Device(math.inf, math.inf, 0.0)  # arithmetic takes no time
MS = 1e3


def run_exchange(exchange: Callable, ranks: int, nbytes: int, collective: str = "fast", network=NETWORK) -> Outcome:
    """Simulate `exchange(comm, x)` on vectors of `nbytes` bytes, and return the Outcome. The result of a rank is its
    finish time, in s.
    """

    def program(comm):
        exchange(comm, np.zeros(nbytes // 4, np.float32))
        return comm.event_log.clock()

    outcome = simulated.run(program, ranks, network=network, device=FREE, collective=collective)
    if outcome.error:
        raise outcome.error
    return outcome


def took(exchange: Callable, ranks: int, nbytes: int, **where) -> float:
    """Return the time until the last rank has finished this exchange, in ms."""
    return MS * max(run_exchange(exchange, ranks, nbytes, **where).results)


def all_reduce(comm, x):
    comm.all_reduce(x)


def by_one_server(comm, x):
    """Sum on rank 0. The other ranks push their vectors and pull the sum."""
    if comm.rank:
        comm.send(x, 0)
        x[:] = comm.recv(0)
    else:
        for worker in range(1, comm.size):
            kernels.add(x, comm.recv(worker))
        for worker in range(1, comm.size):
            comm.send(x, worker)


def by_many_servers(comm, x):
    """Sum on one server per worker. The first half of the ranks are the servers, and each sums one piece of the
    vector.
    """
    half = comm.size // 2
    pieces = [x[share] for share in shares(len(x), half)]
    if comm.rank < half:
        mine = pieces[comm.rank]
        for worker in in_turn(comm.rank, half):
            kernels.add(mine, comm.recv(half + worker))
        for worker in in_turn(comm.rank, half):
            comm.send(mine, half + worker)
    else:
        for server in in_turn(comm.rank - half, half):
            comm.send(pieces[server], server)
        for server in in_turn(comm.rank - half, half):
            pieces[server][:] = comm.recv(server)


def by_everybody(comm, x, orders=None):
    """Sum with every worker as the server of one piece of the vector, and without other servers."""
    pieces = [x[share] for share in shares(len(x), comm.size)]
    others = [rank for rank in (orders or in_turn)(comm.rank, comm.size) if rank != comm.rank]
    for rank in others:
        comm.send(pieces[rank], rank)
    for rank in others:
        kernels.add(pieces[comm.rank], comm.recv(rank))
    for rank in others:
        comm.send(pieces[comm.rank], rank)
    for rank in others:
        pieces[rank][:] = comm.recv(rank)


def by_a_ring_per_gpu(comm, x):
    """Sum with as many rings as a node has ranks, each for a part of the vector. Ring j leaves every node through rank
    j of that node.
    """
    nodes = list(dict.fromkeys(comm.nodes))
    gpus = comm.size // len(nodes)
    parts = []
    for gpu, share in enumerate(shares(len(x), gpus)):
        ring = [node * gpus + (gpu + 1 + i) % gpus for node in range(len(nodes)) for i in range(gpus)]
        mine = x[share]
        place = ring.index(comm.rank)
        pieces = [mine[piece] for piece in shares(len(mine), comm.size)]
        parts.append((pieces, place, ring[(place + 1) % comm.size], ring[place - 1]))
    for step in range(2 * (comm.size - 1)):
        for pieces, place, right, _ in parts:
            comm.send(pieces[(place - 1 - step) % comm.size], right)
        for pieces, place, _, left in parts:
            piece, come = pieces[(place - 2 - step) % comm.size], comm.recv(left)
            if step < comm.size - 1:
                kernels.add(piece, come)
            else:
                piece[:] = come


def in_turn(first, count):
    """Return the numbers 0 to `count` - 1 in cyclic order, beginning with `first`. So each rank can start with a
    different peer.
    """
    return [(first + i) % count for i in range(count)]


def all_at_once(comm, x):
    """Sum like `by_everybody`, except that all ranks begin with rank 0.

    They queue at that rank's port, and then at the next one's.
    """
    by_everybody(comm, x, lambda first, count: list(range(count)))
