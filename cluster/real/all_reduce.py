"""All-reduces in progress, performed by a background thread of the rank or by torch.distributed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from copy import copy
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np

import kernels
from cluster.collectives import COLLECTIVE
from cluster.comm import ClusterError, Deadlock, RankLost, nbytes, shares
from cluster.real.rank_state import wait_of

if TYPE_CHECKING:
    from cluster.real.comm import RealComm

LARGE = 1 << 20  # bytes; the ranks' own rings sum smaller vectors up to three times as fast as gloo


class ThreadedAllReduce:
    """An all-reduce over the rank's links, in a background thread."""

    def __init__(self, comm: RealComm, x: np.ndarray, flat: np.ndarray, scale: float):
        self._comm, self._x, self._done = comm, x, False
        background = copy(comm)
        background._waits = []
        self._waits, state = background._waits, comm._state
        state.background.add(self)
        args = "all-reduce", comm._sum, flat, scale, COLLECTIVE - comm._calls
        self._work = state.threads.submit(background._run_collective, *args)

    def wait(self) -> np.ndarray:
        if not self._done:
            state, event_log = self._comm._state, self._comm.event_log
            start = event_log.clock()
            state.waiting = _waiting(start)
            blocked = not self._work.done()
            try:
                self._work.result()
            finally:
                state.background.discard(self)
            state.waiting, self._done = None, True
            if blocked:
                state.resume()
            end = event_log.clock()
            idle = sum(max(0.0, min(until, end) - max(since, start)) for since, until in self._waits)
            event_log.record_blocked(start, start + idle, "all-reduce")
        return self._x


class AllReduceRecord:
    """A rank's record of an all-reduce that does not use the rank's own links.

    It consists of one span, and one message to the right neighbour with the bytes that a ring would send.
    """

    def __init__(self, comm: RealComm, flat: Any):
        event_log, rank, size = comm.event_log, comm.rank, comm.size
        self._event_log, self._right = event_log, comm.members[(rank + 1) % size]
        self.entered = event_log.clock()
        sizes = [piece.stop - piece.start for piece in shares(len(flat), size)]
        passed = (2 * len(flat) - sizes[rank] - sizes[(rank + 1) % size]) * nbytes(flat[:1])
        self._row = event_log.message(self._right, COLLECTIVE, passed, self.entered)
        self._call = (comm._group, comm._calls, size, self.entered)

    def end(self, start: float) -> None:
        """Record that this rank was blocked in the all-reduce from `start` until now."""
        event_log = self._event_log
        event_log.mark = end = event_log.clock()
        event_log.all_reduces.append((*self._call, start, end, event_log.step, self._row, self._right))


class TorchAllReduce:
    """An all-reduce performed by torch.distributed."""

    def __init__(self, comm: RealComm, x: Any, flat: Any, scale: float):
        from torch import from_numpy

        self._comm, self._x, self._flat, self._scale, self._done = comm, x, flat, scale, False
        tensor = from_numpy(flat) if isinstance(flat, np.ndarray) else flat
        group = _process_group(comm, tensor.is_cuda)
        self._record = AllReduceRecord(comm, flat)
        self.entered = self._record.entered
        with _cluster_errors(comm, _waiting(self.entered)):
            self._work = group.allreduce([tensor])

    def wait(self, since: float | None = None) -> Any:
        if not self._done:
            start = self._comm.event_log.clock() if since is None else since
            with _cluster_errors(self._comm, _waiting(start)):
                self._work.wait()
            self._done = True
            self._comm._state.resume()
            self._record.end(start)
            if self._scale != 1.0:
                kernels.scale(self._flat, self._scale)
        return self._x


def _process_group(comm: RealComm, cuda: bool) -> Any:
    """Return torch's group of these ranks, created at the first call.

    It is created directly: new_group would have to be called by every rank.
    """
    import torch.distributed as dist

    state, made = comm._state, comm._process_groups
    if comm.size == state.size:
        return dist.group.WORLD
    if cuda not in made:
        kind = dist.ProcessGroupNCCL if cuda else dist.ProcessGroupGloo
        limit = [] if cuda else [timedelta(seconds=state.timeout)]
        made[cuda] = kind(dist.PrefixStore(f"group {comm._group}", state.store), comm.rank, comm.size, *limit)
        if cuda:
            state.process_groups.append(made[cuda])
    return made[cuda]


@contextlib.contextmanager
def _cluster_errors(comm: RealComm, waiting: tuple) -> Iterator[None]:
    """During the block, record that this rank is `waiting`, and convert torch's errors about other ranks.

    They become Deadlock or RankLost. After such an error the group runs no more collectives.
    """
    state = comm._state
    state.waiting = waiting
    try:
        yield
    except ClusterError:
        raise
    except RuntimeError as error:
        text, wait = str(error).lower(), wait_of(state.rank, waiting)
        failure: ClusterError
        if "timed out" in text or "timeout" in text:
            failure = Deadlock(f"timeout of {state.timeout:g} s exceeded: {wait}", [wait])
        elif "connection" in text or "peer" in text:
            failure = RankLost(f"a rank was lost; {wait}", -1)
        else:
            raise
        comm._failed.append(failure)
        raise failure from error
    state.waiting = None


def _waiting(since: float) -> tuple:
    return since, None, "all-reduce", None, COLLECTIVE
