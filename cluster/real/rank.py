"""A rank's way into a run and out of it, whoever has started it."""

from __future__ import annotations

import math
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from cluster.real import memory
from cluster.real.comm import RealComm
from cluster.real.links import Door, Links
from cluster.real.notebook import Notebook
from cluster.real.world import World, complaint, unread

START = 60.0  # s that the ranks have to find each other


def enter(
    rank: int,
    size: int,
    exchange: Callable[[Any], list],
    *,
    backend: str,
    collective: str,
    timeout: float,
    host: str = "127.0.0.1",
    local: int | None = None,
    store: Any = None,
) -> tuple[RealComm, list[str]]:
    """Meet the other ranks: the communicator of all of them, and remarks for the reader.

    `exchange(x)` gives the x of all ranks; `host` is the address under which they reach this one, `local` its number
    among the ranks of its computer, `store` one of torch.distributed that all ranks share, if there is one already.
    """
    local = rank if local is None else local
    torch_wanted = backend != "sockets"
    if torch_wanted:
        import torch
        import torch.distributed as dist

        if store is None and rank == 0:
            store = dist.TCPStore(host, 0, size, is_master=True, wait_for_workers=False)
    door = Door(host)
    gpu = backend == "nccl" and torch.cuda.is_available() and torch.cuda.device_count() > local
    mine = (door.address, memory.computer(), gpu, getattr(store, "port", None))
    addresses, computers, gpus, ports = zip(*exchange(mine), strict=True)
    event_log = Notebook(rank)
    links = Links(rank, door.meet(rank, list(addresses), START), event_log.arrive)

    device, notes = "cpu", []
    if backend == "nccl" and all(gpus):
        device = f"cuda:{local}"
        torch.cuda.set_device(device)
        links.device = device
    elif backend == "nccl":
        found = "no CUDA GPU was found" if not any(gpus) else f"only {sum(gpus)} of {size} ranks have a CUDA GPU"
        notes.append(f"{found}; ran on the CPU over gloo")
    if torch_wanted:
        if store is None:
            store = dist.TCPStore(addresses[0][0], ports[0], size, is_master=False)
        kind = "gloo" if device == "cpu" else "cpu:gloo,cuda:nccl"
        dist.init_process_group(kind, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout))
    native = torch_wanted and collective == "fast"
    world = World(rank, size, links, event_log, timeout, device, native, collective, store, list(computers))
    comm = RealComm(world, 0, list(range(size)))
    _start_clock(comm)
    return comm, notes


def _start_clock(comm: RealComm) -> None:
    """Zero is the same moment for everybody: exactly so on one computer, as exactly as a barrier on several."""
    quiet, clock = comm._unnoted(), time.monotonic
    quiet.barrier()
    zero = time.monotonic()
    if len(set(comm._world.computers)) == 1:
        zero = quiet.broadcast(zero)
    if comm.device != "cpu":
        from torch.cuda import synchronize

        def clock() -> float:
            synchronize()  # so that spans are of the work and not of its launches
            return time.monotonic()

    comm.event_log.begin(zero, clock)


def leave(comm: RealComm) -> list[str]:
    """Wait until all ranks have finished; gives sentences about messages that this one never read."""
    return unread(comm.rank, comm._world.links.close())


def state(comm: RealComm, finished: bool) -> tuple:
    """(stuck, since, frames sent, frames received, a sentence) as of now.

    Stuck means that only another rank's message can move this one: if all are, and as many frames were received as
    were sent, nothing will ever move again.
    """
    world = comm._world
    with world.links.news:
        counts = world.links.sent, world.links.received
        waiting = world.waiting
        if finished:
            return True, math.inf, *counts, ""
        if waiting is None:
            return False, 0.0, *counts, ""
        slot = waiting[1]
        stuck = slot is not None and slot.parcel is None and not world.beside
    return stuck, waiting[0], *counts, complaint(world.rank, waiting)


def loopback() -> dict[str, str]:
    """The environment that keeps gloo on this computer: a host name that does not resolve would hold it up."""
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}
