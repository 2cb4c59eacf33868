"""Comm: the contract between an algorithm and the cluster it runs on.

    send(x, dst)        never waits for the receiver: x is copied and handed to the network
    recv(src)           waits; messages of one pair with one tag arrive in the order they were sent
    recv_any()          waits for whoever comes first; poll() tells who has come, without waiting
    all_reduce(x)       every rank ends with the same sum, in place; async_op=True gives a handle to wait on

A message is None, a number, an array, or a tuple of messages. It is a snapshot: the sender may overwrite `x` in
the next line. A rank that is lost (crashed, killed) is heard by `recv_any` as one last None from it, which is how a
server learns that a worker will not come back; waiting for that rank by name raises `RankLost`. Of one that will come
back, having forgotten everything, nobody is told; what it is sent meanwhile is lost.

Names follow torch.distributed. Several clusters keep this contract; `tests/contract/cluster/test_comm.py` holds each
clause of it against every one of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, get_args

import numpy as np

from cluster.event_log import EventLog
from kernels import copy
from kernels.arrays import shares as shares  # part of the contract: reduce_scatter deals by it

Message = Any  # None | float | int | array | tuple[Message, ...]
NUMBERS = int, float, np.generic
Op = Literal["sum", "mean"]
Guard = Literal["none", "atomic", "writes", "locked"]
GUARDS: tuple[Guard, ...] = get_args(Guard)

COLLECTIVE = -1
"""The tag of collectives; an algorithm's own tags are not negative."""


class Handle(Protocol):
    """An operation under way."""

    def wait(self) -> Any:
        """Block until it is done; gives the received message, the reduced array, or None for a send."""


class SharedSteps(Protocol):
    """Work on shared memory, step by step: what a thread of Hogwild does with a mini-batch.

    `where` says which coordinates a step touches, an index array or slice(None) for all, and `price` what it costs,
    (FLOPs, bytes), or None if its kernels say so themselves. Both are of a single step, as `parts` gives them.
    """

    where: Any
    price: tuple[float, float] | None

    def __call__(self, w: np.ndarray, atomic: bool) -> float:
        """Take all steps in w, in place; gives the sum of the losses on the way."""

    def parts(self) -> Iterable[SharedSteps]:
        """The single steps."""


@dataclass
class WriteCounts:
    """What became of a walk in shared memory, in coordinates; staleness in steps, one number for each step."""

    written: int
    conflicts: int  # written by others between look and write
    lost: int  # additions of others that were overwritten, less those that came back
    staleness: list[int]


class Shared(Protocol):
    """One vector that every rank of a communicator sees (Hogwild).

    Its guard says what is promised to ranks that write at the same time:

        none      nothing: of two additions to one number one may be lost
        atomic    no addition is lost; a look may see half of somebody's step
        writes    one step is written at a time, under a lock
        locked    and nobody looks meanwhile
    """

    @property
    def vector(self) -> np.ndarray:
        """The memory itself, to be looked at, at no cost."""

    def read(self, where: Any = None) -> np.ndarray:
        """A copy of the vector, or of the coordinates `where` (a slice or an index array) of it."""

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        """Add `delta` to the vector, or to the coordinates `where` of it."""

    def walk(self, walk: SharedSteps) -> tuple[float, WriteCounts | None]:
        """Do a walk in the memory; gives its loss and, where that can be seen, what became of it."""


class Comm(Protocol):
    """What a rank can do with the others. `rank` is this one's number, 0 to `size` - 1."""

    rank: int
    size: int
    nodes: Sequence[Hashable]  # where each rank is, by rank: the same for ranks that share a node
    device: str  # where this rank's arrays live: "cpu" or "cuda:0"
    event_log: EventLog  # what this rank writes down; for cluster and task, never for an algorithm

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        """Hand a copy of `x` to the network and go on."""

    def recv(self, src: int, tag: int = 0) -> Message:
        """The next message from `src` with `tag`. Raises RankLost if `src` is gone and left none."""

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        """(src, message) of the earliest message with `tag`; (src, None), once, for a rank that was lost."""

    def poll(self, tag: int = 0) -> Sequence[int]:
        """The ranks whose message with `tag` has arrived and was not taken, earliest first."""

    def isend(self, x: Message, dst: int, tag: int = 0) -> Handle:
        """Like send; the handle's wait() returns when the message has left this rank."""

    def irecv(self, src: int, tag: int = 0) -> Handle:
        """Ask for the next message from `src`; the handle's wait() returns it."""

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        """Reduce `x` (one shape on all ranks) in place and return it, or a handle whose wait() returns it.

        With async_op the array belongs to the cluster until wait(). `priority` is a hint to a cluster that has several
        of these to carry at once: what waits at a port leaves lowest number first, equal numbers in the order in which
        they came; 0, like every other message, does not wait for any of them. It changes when, never what.
        """

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        """This rank's piece of the reduced vector: piece r of `shares(len(x), size)` on rank r."""

    def all_gather(self, x: Message) -> list[Message]:
        """The messages of all ranks, by rank; they may differ in size."""

    def broadcast(self, x: Message, src: int = 0) -> Message:
        """`src`'s message, on every rank."""

    def barrier(self) -> None:
        """Wait until every rank is here."""

    def split(self, color: int | None) -> Comm | None:
        """The communicator of the ranks that gave the same color, ranked as here; None for color None."""

    def shared(self, like: np.ndarray, guard: Guard = "none") -> Shared:
        """A vector in memory that all ranks see, starting with rank 0's `like`. Called by every rank."""


def guarded(guard: Guard) -> Guard:
    """This guard, if there is one. ValueError if not."""
    if guard not in GUARDS:
        raise ValueError(f"there is no guard {guard!r} of shared memory; allowed are {', '.join(GUARDS)}.")
    return guard


def snapshot(x: Message) -> Message:
    """A copy of a message that shares no memory with it."""
    if x is None or isinstance(x, NUMBERS):
        return x
    return tuple(snapshot(part) for part in x) if isinstance(x, tuple) else copy(x)


def nbytes(x: Message) -> int:
    """Payload bytes of a message: 8 for a number, nothing for None. ValueError if it is no message."""
    if x is None:
        return 0
    if isinstance(x, np.ndarray):
        return x.nbytes
    if isinstance(x, tuple):
        return sum(nbytes(part) for part in x)
    if isinstance(x, NUMBERS):
        return 8
    if hasattr(x, "numel"):
        return x.numel() * x.element_size()
    raise ValueError(f"a message is None, a number, an array or a tuple of these, not a {type(x).__name__}.")


class ClusterError(RuntimeError):
    """Something went wrong on the cluster; the message names the rank."""


class Deadlock(ClusterError):
    """Ranks wait for each other and nothing is under way; the message says who waits for whom since when."""


class Cancelled(ClusterError):
    """Somebody asked the run to stop."""


class RankLost(ClusterError):
    """A rank crashed or was killed. `rank` says which, `step` how far it had come (-1 if unknown)."""

    def __init__(self, message: str, rank: int, step: int = -1):
        super().__init__(message)
        self.rank, self.step = rank, step


class RankFailed(ClusterError):
    """A rank's program raised: `rank`, `step`, and the original exception as __cause__ where it is at hand."""

    def __init__(self, message: str, rank: int, step: int = -1):
        super().__init__(message)
        self.rank, self.step = rank, step
