"""torchrun: join ranks that torchrun started, on one computer or several.

    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint host:29500 script.py

Every rank calls `run` with the same program; rank 0 returns the Outcome, the others None. The clocks of different
computers agree to within the skew of a barrier, tenths of a millisecond on a good network. When a rank fails, the
others learn it from their links; when one is killed, torchrun stops the others, and rank 0 still returns what was
recorded.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import numpy as np

from cluster.collectives import known
from cluster.devices import Device
from cluster.event_log import Outcome
from cluster.faults import NONE, Faults
from cluster.network import Network
from cluster.real.comm import RealComm
from cluster.real.event_log_stream import MergedEventLogs
from cluster.real.failure import Failure, lost
from cluster.real.links import PeersGone
from cluster.real.rank import START, crash_at, enter, leave, loopback, meter
from kernels import metered, to_numpy

LAST_WORDS = 5.0  # s that rank 0 waits for the event logs of the others after a failure
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_LOGS = ("torchrun", 0)  # the channel of the ranks' event logs and results


def joined() -> bool:
    """Return whether this process was started as a rank, by torchrun or a program like it."""
    return all(name in os.environ for name in _VARIABLES)


def run(
    program: Callable[[Any], Any],
    *,
    backend: str = "gloo",
    collective: str = "fast",
    network: Network | None = None,
    device: Device | None = None,
    faults: Faults = NONE,
    timeout: float = 60.0,
    warm_up: Callable[[], Any] | None = None,
) -> Outcome | None:
    """Run `program(comm)` on this rank; return the Outcome of all ranks on rank 0, None elsewhere.

    Arguments are those of `processes.run`; what is emulated comes on top of the real network. Errors of a rank are not
    raised: they are the Outcome's `error`. Raises ValueError if this process was not started as a rank.
    """
    if not joined():
        raise ValueError(f"no rank was started here: {', '.join(_VARIABLES)} are not all set; start it with torchrun.")
    rank, size, local = (int(os.environ.get(name, 0)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    master = os.environ["MASTER_ADDR"]
    if master in ("localhost", "127.0.0.1"):
        for name, value in loopback().items():
            os.environ.setdefault(name, value)
    import torch.distributed as dist

    store, _, _ = next(dist.rendezvous("env://", timeout=timedelta(seconds=START)))

    def exchange(x: Any) -> list:
        store.set(f"offer {rank}", pickle.dumps(x))
        return [pickle.loads(store.get(f"offer {other}")) for other in range(size)]

    if warm_up:
        warm_up()
    where = {"host": _address(master), "local": local, "store": dist.PrefixStore("groups", store)}
    options = {"network": network, "device": device, "faults": faults, "timeout": timeout}
    comm, notes = enter(rank, size, exchange, backend=backend, collective=known(collective), **options, **where)
    crash_at(faults.crash.get(rank, math.inf), comm, lambda: _send_outcome(comm, None, None) if rank else None)
    with _interruptible():
        result, failure = _work(program, comm)
        outcome = _gather(comm, result, failure) if rank == 0 else _send_outcome(comm, result, failure)
        if failure or (outcome and outcome.error):
            return outcome
        store.set(f"unread {rank}", pickle.dumps(leave(comm)))
        if outcome:
            unread = [pickle.loads(store.get(f"unread {other}")) for other in range(size)]
            outcome.notes = (*notes, *(line for lines in unread for line in lines))
        if dist.is_initialized():
            dist.destroy_process_group()
    return outcome


def _work(program: Callable, comm: RealComm) -> tuple[Any, Failure | None]:
    try:
        with metered(meter(comm)):
            result = program(comm)
        return to_numpy(result) if hasattr(result, "detach") else result, None
    except (Exception, KeyboardInterrupt) as error:
        return None, Failure.of(error, comm.rank, comm.event_log.step)


def _send_outcome(comm: RealComm, result: Any, failure: Failure | None) -> None:
    """Send event log and result to rank 0; after a failure abort the links, so that waiting ranks notice."""
    links, notes = comm._state.links, comm.event_log.take()
    try:
        packed = pickle.dumps((notes, result, failure))
    except Exception as error:
        packed = pickle.dumps((notes, None, Failure.of(error, comm.rank, comm.event_log.step)))
    links.flush(0, links.send(0, _LOGS, np.frombuffer(packed, np.uint8), time.monotonic()))
    if failure:
        links.abort()


def _gather(comm: RealComm, result: Any, failure: Failure | None) -> Outcome:
    """Collect the event logs and results of all ranks, as far as they arrive."""
    links, others = comm._state.links, range(1, comm.size)
    merged, results = MergedEventLogs(comm.size), [result] + [None] * len(others)
    merged.add(0, comm.event_log.take())
    failures = [failure] if failure else []
    slots = {other: links.slot(other, _LOGS) for other in others}
    until = math.inf
    while slots:
        if failures and until == math.inf:
            links.abort()
            until = time.monotonic() + LAST_WORDS
        other, slot = next(iter(slots.items()))
        try:
            came = links.wait(slot, [other], max(0.0, until - time.monotonic()))
        except KeyboardInterrupt as told:  # there will be no second one, see _interruptible
            failures.append(Failure.of(told, 0, comm.event_log.step))
            continue
        except PeersGone:
            failures.append(lost(other, comm.event_log.clock(), -1, "its connection is closed"))
            came = False
        del slots[other]
        if not came:
            continue
        notes, results[other], failure = pickle.loads(slot.envelope.x)
        merged.add(other, notes)
        failures += [failure] if failure else []
    merged.match(over=True)
    return Outcome(results, merged.event_logs, min(failures).error() if failures else None)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Treat SIGTERM, by which torchrun stops its ranks, as Ctrl-C; ignore further signals while logs are collected."""

    def interrupt(*_: Any) -> None:
        for name in names:
            signal.signal(name, signal.SIG_IGN)
        raise KeyboardInterrupt

    names = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)


def _address(master: str) -> str:
    """Return the address of this computer on its route to the master."""
    family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)  # sends nothing
        return probe.getsockname()[0]
