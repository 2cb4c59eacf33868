"""All-reduces of large vectors in memory that the ranks of one computer share.

Rank p sums piece p of the vector in the order of the ring, x[p+1] + x[p+2] + ... + x[p], so that the sum has the ring's
bits. The vector passes in chunks, c0, c1, ..., which keeps the shared memory small and in the caches:

    round       0    1    2    3    4
    copy in     c0   c1   c2   ..   ..      pieces that others sum
    sum         ..   c0   c1   c2   ..      the rank's own piece
    copy out    ..   ..   c0   c1   c2      sums of the others

Between two rounds all ranks synchronise by messages over their links, so that a lost rank is noticed. Two buffers take
turns: what is copied in replaces what was summed one round earlier, and a sum replaces one that was copied out one
round earlier. Nothing is summed in round 0, when a slower rank may still be copying out the end of the previous vector.
The offsets of the pieces must therefore not depend on the type of the numbers, which may differ from the previous
vector's.
"""

from __future__ import annotations

from concurrent.futures import Future
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import kernels
from cluster import collectives
from cluster.comm import shares
from cluster.real.all_reduce import AllReduceRecord
from kernels import meter_kernels

if TYPE_CHECKING:
    from cluster.real.comm import RealComm

AREA = 1 << 21  # bytes of each rank in each of the two buffers
WIDEST = 16  # bytes of the widest number


@dataclass
class Staging:
    """The state that the all-reduces of one group share: memory, which the first one creates, and their order."""

    memory: np.ndarray | None = None  # (2 buffers, ranks, AREA) bytes
    last: Future | None = None  # the newest all-reduce in the background


class SharedAllReduce:
    """An all-reduce in shared memory. It runs in a background thread or, without `background`, in wait()."""

    def __init__(
        self, comm: RealComm, staging: Staging, x: np.ndarray, flat: np.ndarray, scale: float, background: bool
    ):
        self._comm, self._x, self._flat, self._scale, self._done = comm, x, flat, scale, False
        self._staging, self._previous = staging, staging.last
        self._record = AllReduceRecord(comm, flat)
        self.entered = self._record.entered
        self._work = comm._state.threads.submit(self._run) if background else None
        if background:
            staging.last = self._work

    def wait(self, since: float | None = None) -> np.ndarray:
        if not self._done:
            state, event_log = self._comm._state, self._comm.event_log
            start = event_log.clock() if since is None else since
            state.waiting = (start, None, "all-reduce", None, collectives.COLLECTIVE)
            if self._work:
                self._work.result()
            else:
                self._run()
            state.waiting, self._done = None, True
            state.resume()
            self._record.end(start)
        return self._x

    def _run(self) -> None:
        """Sum the vector once the previous sums, which use the same memory, are done; if one has failed, raise its
        error.
        """
        if self._previous:
            self._previous.exception()
        if self._comm._failed:
            raise self._comm._failed[0]
        try:
            self._reduce()
        except Exception as error:
            self._comm._failed.append(error)
            raise

    def _reduce(self) -> None:
        comm = copy(self._comm)  # its messages have a channel of their own, and neither they nor its waits are recorded
        comm._group, comm._collective = (comm._group, "shared memory"), "all-reduce"
        comm._logged, comm._waits = False, []
        if self._staging.memory is None:
            collectives.barrier(comm)  # so that a rank that waits for an absent one is seen waiting in an all-reduce
            self._staging.memory = comm.shared(np.zeros((2, comm.size, AREA), np.uint8)).vector
        with meter_kernels(None):
            _sum(comm, self._flat, self._scale, self._staging.memory)


def _agree(comm: RealComm, x: np.ndarray, scale: float) -> None:
    """Wait for all ranks, as in a barrier. Raise ValueError on every rank unless all want the same sum."""
    wanted = len(x), x.dtype.num, scale
    alike: tuple | None = wanted  # None once some are known to differ
    distance = 1
    while distance < comm.size:
        comm.send(alike, (comm.rank + distance) % comm.size, collectives.COLLECTIVE)
        if comm.recv((comm.rank - distance) % comm.size, collectives.COLLECTIVE) != wanted:
            alike = None
        distance *= 2
    if alike is None:
        raise ValueError(
            f"mismatched all-reduce: rank {comm.rank} reduces {len(x)} numbers ({x.dtype}), but another rank of its "
            "group uses another length, another type or another op; use the same on every rank."
        )


def _sum(comm: RealComm, x: np.ndarray, scale: float, memory: np.ndarray) -> None:
    """Sum x over the ranks in place, through `memory`, (2, ranks, AREA) bytes, and multiply it by `scale`."""
    rank, size = comm.rank, comm.size
    nbytes = AREA // size // WIDEST * WIDEST  # bytes of a piece that pass at a time
    length = nbytes // x.itemsize
    slots = memory[:, :, : nbytes * size].view(x.dtype).reshape(2, size, size, length)
    pieces = [x[share] for share in shares(len(x), size)]
    chunks = -(-len(pieces[0]) // length)
    others = [(rank + i) % size for i in range(1, size)]

    def chunk(p: int, number: int) -> np.ndarray:
        return pieces[p][number * length : (number + 1) * length]

    for now in range(chunks + 2):
        buffer, before = slots[now % 2], slots[(now - 1) % 2]
        if now >= 2:
            for p in others:
                part = chunk(p, now - 2)
                part[...] = buffer[p, p, : len(part)]
        if 1 <= now <= chunks:
            part = chunk(rank, now - 1)
            staged = [before[other, rank, : len(part)] for other in others]
            for more in staged[1:]:
                kernels.add(staged[0], more)
            kernels.add(part, staged[0])
            if scale != 1.0:
                kernels.scale(part, scale)
            before[rank, rank, : len(part)] = part
        if now < chunks:
            for p in others:
                part = chunk(p, now)
                buffer[rank, p, : len(part)] = part
        if now == 0:
            _agree(comm, x, scale)
        elif now <= chunks:
            collectives.barrier(comm)
