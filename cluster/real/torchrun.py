"""Join ranks that torchrun, SLURM or Open MPI started, on one computer or several.

    torchrun --nnodes 2 --nproc-per-node 4 --rdzv-backend c10d --rdzv-endpoint host:29500 script.py
    srun --nodes 2 --ntasks 8 python script.py
    mpirun -n 4 python script.py

Every rank calls `run` with the same program; rank 0 returns the Outcome, the others None. The clocks of different
computers agree to within the skew of a barrier, tenths of a millisecond on a good network. When a rank fails, the
others learn of it from their links. When a rank is killed, torchrun stops the others, and rank 0 still returns what was
recorded. A disconnected computer is noticed after half of the timeout, on both sides.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cluster.collectives import check_name
from cluster.devices import Device
from cluster.event_log import Outcome
from cluster.faults import NONE, Faults
from cluster.network import Network
from cluster.real import gpus, launchers
from cluster.real.comm import RealComm
from cluster.real.event_log_stream import MergedEventLogs
from cluster.real.failure import Failure, rank_lost, unreadable_result
from cluster.real.links import OPEN, PeersGone
from cluster.real.meeting import interface, is_local, own_address, shared_store
from cluster.real.rank import START, crash_at, enter, leave, loopback, meter
from cluster.real.signals import stop_signals
from kernels import meter_kernels, to_numpy

LAST_WORDS = 5.0  # s that rank 0 waits for the event logs of the others after a failure
_LISTEN = 0.1  # s after which it checks, while waiting, whether it should stop
_LOGS = ("torchrun", 0)  # the channel of the ranks' event logs and results
_RECORDED = "recorded"  # key in the store: rank 0 has collected all logs after a failure


def run(
    program: Callable[[Any], Any],
    *,
    backend: str = "gloo",
    collective: str = "fast",
    network: Network | None = None,
    device: Device | None = None,
    faults: Faults = NONE,
    timeout: float = 60.0,
    warm_up: Callable[[str], Any] | None = None,
) -> Outcome | None:
    """Run `program(comm)` on this rank. Return the Outcome of all ranks on rank 0, and None elsewhere.

    Arguments are those of `processes.run`. An emulated network adds to the time of the real one. Errors of a rank are
    not raised: they are the Outcome's `error`. Only a rank that cannot reach rank 0 raises its ClusterError. Raise
    ValueError if this process was not started as a rank, and OSError if the ranks do not connect.
    """
    here = launchers.variables()
    if not here:
        raise ValueError(
            f"this process is not a rank: no launcher set torchrun's variables ({', '.join(launchers.TORCHRUN)}), nor "
            "those of srun or mpirun. Start it with torchrun, srun or mpirun."
        )
    os.environ.update(here)
    rank, size, local = (int(here.get(name, 0)) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    alone = is_local(here)
    if alone:
        _set_defaults(loopback())
    store = shared_store(here, START)
    import torch.distributed as dist

    def exchange(x: Any, what: str = "offer") -> list:
        store.set(f"{what} {rank}", pickle.dumps(x))
        try:
            store.wait([f"{what} {other}" for other in range(size)])
        except dist.DistError:
            raise TimeoutError(
                f"not all of the {size} ranks connected within {START:g} s; check the output of the others."
            ) from None
        return [pickle.loads(store.get(f"{what} {other}")) for other in range(size)]

    if warm_up:
        place = gpus.place_of(backend, local)
        warm_up(gpus.common_place(place, exchange(place, "place")))  # another computer may have no GPU
    host = "127.0.0.1" if alone else own_address(here["MASTER_ADDR"], partial(exchange, what="master"))
    if not alone:
        _set_defaults(interface(host))
    where: dict[str, Any] = {"host": host, "local": local, "store": dist.PrefixStore("groups", store)}
    options: dict[str, Any] = {"network": network, "device": device, "faults": faults, "timeout": timeout}
    comm, allotment = enter(
        rank, size, exchange, backend=backend, collective=check_name(collective), **options, **where
    )
    finished = threading.Event()
    report = partial(_send_outcome, comm, None, None) if rank else list  # rank 0's record ends with it
    crash_at(faults.crash.get(rank, math.inf), comm, finished.is_set, report)
    with _Interrupts() as interrupts:
        result, failure = _work(program, comm, interrupts)
        finished.set()
        outcome = None
        if rank == 0:
            outcome = _gather(comm, result, failure, interrupts)
        else:
            _send_outcome(comm, result, failure)
        if outcome and allotment:
            outcome.gpus, outcome.notes = allotment.gpus, allotment.notes
        if outcome and outcome.error:
            with contextlib.suppress(dist.DistError):
                store.set(_RECORDED, b"")
                store.get(_RECORDED)  # ranks that wait for the key have been told before this returns
        if failure and not outcome and not _is_recorded(comm, store):
            raise failure.error()
        if failure or (outcome and outcome.error):
            return outcome
        interrupts.raising = True
        left = pickle.dumps(leave(comm))
        with contextlib.suppress(dist.DistError):  # the run is done, even if a rank is lost by now
            store.set(f"unread {rank}", left)
            if outcome:
                unread = [pickle.loads(store.get(f"unread {other}")) for other in range(size)]
                outcome.notes = (*outcome.notes, *(line for lines in unread for line in lines))
        if dist.is_initialized():
            dist.destroy_process_group()
    return outcome


def _set_defaults(variables: dict[str, str]) -> None:
    for name, value in variables.items():
        os.environ.setdefault(name, value)


def _is_recorded(comm: RealComm, store: Any) -> bool:
    """Return whether rank 0 will report the outcome for all ranks.

    That is so if it knows of this rank's failure, or is still running and can continue without this rank.

    The store is queried from a thread, because a disconnected store never answers and its timeout does not fire either.
    """
    from torch.distributed import DistError

    def ask() -> None:
        with contextlib.suppress(DistError):
            store.get(_RECORDED)
            heard.set()

    heard = threading.Event()
    threading.Thread(target=ask, daemon=True).start()
    return heard.wait(min(2 * LAST_WORDS, comm._state.timeout / 4)) or comm._state.links.state[0] == OPEN


def _work(program: Callable, comm: RealComm, interrupts: _Interrupts) -> tuple[Any, Failure | None]:
    try:
        try:
            with meter_kernels(meter(comm)):
                result = program(comm)
        finally:
            interrupts.raising = False
        return to_numpy(result) if hasattr(result, "detach") else result, None
    except (Exception, KeyboardInterrupt) as error:
        return None, Failure.of(error, comm.rank, comm.event_log.step)


def _send_outcome(comm: RealComm, result: Any, failure: Failure | None) -> None:
    """Send the event log and the result to rank 0. After a failure, abort the links, so that waiting ranks notice."""
    links, notes = comm._state.links, comm.event_log.take()
    try:
        packed = pickle.dumps((notes, pickle.dumps(result), failure))
    except Exception as error:
        packed = pickle.dumps((notes, None, Failure.of(error, comm.rank, comm.event_log.step)))
    links.flush(links.send(0, _LOGS, np.frombuffer(packed, np.uint8), time.monotonic()))
    if failure:
        links.abort()


def _gather(comm: RealComm, result: Any, failure: Failure | None, interrupts: _Interrupts) -> Outcome:
    """Return the outcome of all ranks, from the event logs and results that still arrive at rank 0."""
    links, others = comm._state.links, range(1, comm.size)
    merged, results = MergedEventLogs(comm.size), [result] + [None] * len(others)
    merged.add(0, comm.event_log.take())
    failures = [failure] if failure else []
    slots = {other: links.slot(other, _LOGS) for other in others}
    until = math.inf
    while slots:
        if interrupts.late and not failures:
            failures.append(Failure.of(KeyboardInterrupt(), 0, comm.event_log.step))
        if failures and until == math.inf:
            links.abort()
            until = time.monotonic() + LAST_WORDS
        other, slot = next(iter(slots.items()))
        left = max(0.0, until - time.monotonic())
        try:
            came = links.wait(slot, [other], min(left, _LISTEN))
            if not came and left > _LISTEN:
                continue
        except PeersGone:
            failures.append(rank_lost(other, comm.event_log.clock(), -1, "its connection is closed"))
            came = False
        del slots[other]
        if not came or not slot.envelope:
            continue
        notes, result, failure = pickle.loads(slot.envelope.x)
        merged.add(other, notes)
        failures += [failure] if failure else []
        try:
            results[other] = result and pickle.loads(result)
        except Exception as error:
            failures.append(unreadable_result(other, error))
    merged.match(over=True)
    return Outcome(results, merged.event_logs, min(failures).error() if failures else None)


class _Interrupts:
    """A context that turns SIGTERM (by which torchrun stops its ranks), Ctrl-C and a closed terminal into one
    KeyboardInterrupt.

    This happens while `raising` is set. A later signal, while logs are collected, only sets `late`.
    """

    def __init__(self):
        self.raising = True
        self.late = False

    def __enter__(self) -> _Interrupts:
        here = threading.current_thread() is threading.main_thread()
        names = stop_signals() if here else ()
        self._before = {name: signal.signal(name, self._interrupt) for name in names}
        return self

    def __exit__(self, *_: Any) -> None:
        for name, handler in self._before.items():
            signal.signal(name, handler)

    def _interrupt(self, *_: Any) -> None:
        if self.raising:
            self.raising = False
            raise KeyboardInterrupt
        self.late = True
