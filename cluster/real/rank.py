"""How a rank joins a run and leaves it, the same for every way of starting ranks."""

import contextlib
import math
import os
import signal
import socket
import time
from collections.abc import Callable
from datetime import timedelta
from threading import Thread
from typing import Any

from cluster.devices import Device
from cluster.faults import NONE, Faults
from cluster.network import Network
from cluster.real import gpus, memory
from cluster.real.comm import RealComm
from cluster.real.emulated_compute import CATCH_UP, EmulatedCompute
from cluster.real.emulated_network import emulate, sleep_until
from cluster.real.event_log_stream import StreamedEventLog
from cluster.real.links import Links
from cluster.real.listener import Listener
from cluster.real.meeting import local_store
from cluster.real.rank_state import RankState, RankStatus, unread, wait_of
from cluster.real.restart import Door, RestartableLinks

START = 60.0  # s in which the ranks must connect to each other


def enter(
    rank: int,
    size: int,
    exchange: Callable[[Any], list],
    *,
    backend: str,
    collective: str,
    timeout: float,
    network: Network | None = None,
    device: Device | None = None,
    faults: Faults = NONE,
    restarts: bool = False,
    host: str = "127.0.0.1",
    local: int | None = None,
    store: Any = None,
) -> tuple[RealComm, gpus.Allotment | None]:
    """Connect to the other ranks. Return the communicator of all ranks, and the allotment of GPUs to the run if it asks
    for any.

    `exchange(x)` returns the x of every rank. `host` is the address at which others reach this rank, `local` its number
    among the ranks of its computer, and `store` a store of torch.distributed that all ranks share, if there is one
    already. `network`, `device` and `faults` are emulated. With `restarts`, this rank accepts the ranks of
    `faults.back` again after a crash.
    """
    local = rank if local is None else local
    torch_wanted = backend != "sockets"
    if torch_wanted:
        import torch
        import torch.distributed as dist

        if store is None and rank == 0:
            store = local_store(size)
    listener = Listener(host)
    door = Door(host) if restarts else None
    place = gpus.place_of(backend, local)
    mine = (listener.address, memory.computer(), place, getattr(store, "port", None), door and door.address)
    addresses, computers, places, ports, _ = zip(*exchange(mine), strict=True)
    allotment = gpus.allot(computers, places) if backend == "nccl" else None
    nccl = allotment is not None and allotment.gpus == size
    place = gpus.common_place(place, places)
    if place != "cpu":
        torch.cuda.set_device(place)
    event_log = StreamedEventLog(rank)
    sockets = listener.connect(rank, list(addresses), START, timeout / 2)
    links: Links
    if restarts:
        links = restartable = RestartableLinks(rank, sockets, event_log.arrive, faults.back)
    else:
        links = Links(rank, sockets, event_log.arrive, place)

    if torch_wanted:
        if store is None:
            store = dist.TCPStore(addresses[0][0], ports[0], size, is_master=False)
        kind = "cpu:gloo,cuda:nccl" if nccl else "gloo"
        dist.init_process_group(kind, store=store, rank=rank, world_size=size, timeout=timedelta(seconds=timeout))
    sums = nccl or (torch_wanted and place == "cpu")  # whether torch can sum; on GPUs that ranks share it cannot
    native = sums and collective == "fast" and network is None  # torch's messages would bypass an emulated network
    nodes = list(computers) if network is None else [network.node(other) for other in range(size)]
    shared = RankState(rank, size, links, event_log, timeout, place, native, collective, store, list(computers), nodes)
    comm = RealComm(shared, 0, list(range(size)))
    if nccl:
        dist.all_reduce(torch.zeros(1, device=place))  # NCCL connects in the first one, here before the clock starts
    _start(comm, network, device, faults)
    if door:
        door.open(restartable)
    return comm, allotment


def _start(comm: RealComm, network: Network | None, device: Device | None, faults: Faults) -> None:
    """Start the run's clock, and then the emulation, which depends on it."""
    state = comm._state
    made = None if network is None else emulate(comm, network)
    _start_clock(comm)
    if made is not None:
        state.links.emulate(made, comm.event_log.zero, patience=CATCH_UP if device else 0.0)
        state.network = made
    state.compute = EmulatedCompute.create_if_needed(comm.event_log, device, faults, comm.device != "cpu")


def _start_clock(comm: RealComm) -> None:
    """Agree on time zero: exactly on one computer, and to within the skew of a barrier on several."""
    quiet, clock = comm._without_log(), time.monotonic
    quiet.barrier()
    zero = time.monotonic()
    if len(set(comm._state.computers)) == 1:
        zero = quiet.broadcast(zero)
    if comm.device != "cpu":
        from torch.cuda import synchronize

        def clock() -> float:
            synchronize()  # so that spans measure kernels rather than their launches
            return time.monotonic()

    comm.event_log.begin(zero, clock)


def leave(comm: RealComm) -> list[str]:
    """Wait until all ranks have finished. Return sentences about messages that this rank never read."""
    left = comm._state.links.close()
    for group in comm._state.process_groups:
        group.shutdown()  # otherwise torch prints a warning
    return unread(comm.rank, left)


def crash_at(at: float, comm: RealComm, finished: Callable[[], bool], report: Callable[[], Any]) -> None:
    """Start a thread that kills this process at time `at` on the run's clock, after `report()` has sent its records.

    The thread does nothing if the rank has finished by then, i.e. if `finished()` returns True.
    """

    def crash() -> None:
        sleep_until(comm.event_log.zero + at)
        if finished():
            return
        comm.event_log.freeze()
        with contextlib.suppress(OSError):
            report()
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    if at < math.inf:
        Thread(target=crash, daemon=True, name="crash").start()


def meter(comm: RealComm) -> StreamedEventLog | EmulatedCompute:
    """Return the meter to which the kernels of this rank report."""
    return comm._state.compute or comm.event_log


def status(comm: RealComm, finished: bool) -> RankStatus:
    """Return what this rank is doing now."""
    shared = comm._state
    with shared.links.news:
        counts = shared.links.frames_sent, shared.links.frames_received
        waiting = shared.waiting
        if finished:
            return RankStatus(True, math.inf, *counts)
        if waiting is None:
            return RankStatus(False, 0.0, *counts)
        slot = waiting[1]
        stuck = slot is not None and shared.links.is_pending(slot) and not shared.background
    return RankStatus(stuck, waiting[0], *counts, wait_of(shared.rank, waiting))


def loopback() -> dict[str, str]:
    """Return the environment variable that binds gloo to the loopback interface; {} if that interface is not found.

    Without the variable, gloo looks up the host name, and one that cannot be resolved delays it.
    """
    names = [name for _, name in socket.if_nameindex() if name.startswith("lo")]
    return {"GLOO_SOCKET_IFNAME": names[0]} if names else {}
