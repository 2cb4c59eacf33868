"""torchrun: ranks that somebody else started, on one computer or on many, join a run.

    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint host:29500 script.py

Every rank calls `run` with the same program; rank 0 gets the Outcome, the others None. Between computers clocks agree
as well as a barrier does, tenths of a millisecond on a good network. When a rank fails the others hear it from their
links; when one is killed torchrun asks the others to stop, and rank 0 still gives back what is known.
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
from cluster.event_log import Outcome
from cluster.real.comm import RealComm
from cluster.real.failure import Failure, lost
from cluster.real.links import Gone
from cluster.real.notebook import Record
from cluster.real.rank import START, enter, leave, loopback
from kernels import metered, to_numpy

LAST_WORDS = 5.0  # s that rank 0 waits for the records of the others once something has failed
_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_RECORD = ("torchrun", 0)  # the channel of the ranks' records


def joined() -> bool:
    """Whether this process is a rank that torchrun, or something like it, has started."""
    return all(name in os.environ for name in _VARIABLES)


def run(
    program: Callable[[Any], Any],
    *,
    backend: str = "gloo",
    collective: str = "fast",
    timeout: float = 60.0,
    warm_up: Callable[[], Any] | None = None,
) -> Outcome | None:
    """Run `program(comm)` on this rank: the Outcome of all ranks on rank 0, None elsewhere.

    `backend`, `collective`, `timeout` and `warm_up` are those of `processes.run`. What goes wrong in a rank
    does not raise: it is the Outcome's error. Raises ValueError if nobody has started this process as a rank.
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
    comm, notes = enter(rank, size, exchange, backend=backend, collective=known(collective), timeout=timeout, **where)
    with _told_to_stop():
        result, failure = _work(program, comm)
        outcome = _gather(comm, result, failure) if rank == 0 else _hand_in(comm, result, failure)
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
        with metered(comm.event_log):
            result = program(comm)
        return to_numpy(result) if hasattr(result, "detach") else result, None
    except (Exception, KeyboardInterrupt) as error:
        return None, Failure.of(error, comm.rank, comm.event_log.step)


def _hand_in(comm: RealComm, result: Any, failure: Failure | None) -> None:
    """Send everything to rank 0; a rank that failed then hangs up, so that those who wait for it hear of it."""
    links, notes = comm._world.links, comm.event_log.take()
    try:
        record = pickle.dumps((notes, result, failure))
    except Exception as error:
        record = pickle.dumps((notes, None, Failure.of(error, comm.rank, comm.event_log.step)))
    links.flush(0, links.send(0, _RECORD, np.frombuffer(record, np.uint8), time.monotonic()))
    if failure:
        links.hang_up()


def _gather(comm: RealComm, result: Any, failure: Failure | None) -> Outcome:
    """Everybody's records, as far as they come."""
    links, others = comm._world.links, range(1, comm.size)
    record, results = Record(comm.size), [result] + [None] * len(others)
    record.add(0, comm.event_log.take())
    failures = [failure] if failure else []
    slots = {other: links.slot(other, _RECORD) for other in others}
    until = math.inf
    for other, slot in slots.items():
        if failures and until == math.inf:
            links.hang_up()
            until = time.monotonic() + LAST_WORDS
        try:
            if not links.wait(slot, [other], max(0.0, until - time.monotonic())):
                continue
        except Gone:
            failures.append(lost(other, comm.event_log.clock(), -1, "its connection is closed"))
            continue
        notes, results[other], failure = pickle.loads(slot.parcel.x)
        record.add(other, notes)
        failures += [failure] if failure else []
    record.settle(over=True)
    return Outcome(results, record.event_logs, min(failures).error() if failures else None)


@contextlib.contextmanager
def _told_to_stop() -> Iterator[None]:
    """SIGTERM, by which torchrun stops its ranks, is a Ctrl-C; after the first one there is peace for the records."""

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
    """The address of this computer on the way to the master."""
    family, _, _, _, address = socket.getaddrinfo(master, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect(address)  # sends nothing
        return probe.getsockname()[0]
