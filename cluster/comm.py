"""Comm: the contract between an algorithm and the cluster it runs on.

    send(x, dst)        copies x, hands it to the network and does not wait for the receiver
    recv(src)           waits; messages between two ranks with the same tag arrive in the order of sending
    recv_any()          waits for the first message from any rank; poll() lists the ranks whose messages have arrived
    all_reduce(x)       sums x over all ranks, in place; async_op=True returns a handle to wait for

A message is None, a number, an array of numbers, or a tuple of messages. It is a snapshot: the sender may overwrite `x`
in the next line.

A rank may be lost: it crashed or was killed. `recv_any` then returns one last None from it, which tells a server that a
worker will not return; `recv` from it raises `RankLost`. Both come after every message that has left the lost rank. A
rank that will restart is not reported as lost; messages sent while it is down are dropped.

A call that raises ValueError because of its own arguments (an invalid message, rank or tag, an array that cannot be
reduced) has sent nothing and has no effect: a program that catches the error may continue. A collective that fails
later, because a rank is lost or the ranks disagree about what they sum, ends the run or raises an error. If a program
catches that error, its group can run no more collectives: each raises the same error. Other groups, send and recv still
work.

Names follow torch.distributed. All clusters implement this contract: `simulated`, and `processes`, `threads` and
`torchrun` of `real`. `test_comm.py` and `test_survived.py` in `tests/contract/cluster/` check every clause of it on
all of them except `torchrun`, whose ranks use the communicator of `processes`.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, Protocol

import numpy as np

from cluster.event_log import EventLog
from cluster.shared_memory import Guard, Shared
from cluster.waits import Wait
from kernels import copy
from kernels.arrays import shares as shares  # part of the contract: the pieces that reduce_scatter returns

Message = Any  # None | float | int | array | tuple[Message, ...]
Op = Literal["sum", "mean"]

COLLECTIVE = -1
"""The tag of collectives; tags of an algorithm are 0 or more."""

MOST_TAG = 2**31 - 1  # traces keep tags in 32 bits


class Comm(Protocol):
    """A communicator, through which a rank exchanges messages with the other ranks of its group."""

    rank: int  # of this process, 0 to size - 1
    size: int
    device: str  # where this rank's arrays are: "cpu" or "cuda:0"

    @property
    def nodes(self) -> Sequence[Hashable]:
        """The node of each rank of the group."""

    @property
    def event_log(self) -> EventLog:
        """The event log of this rank. The cluster and the task use it; algorithms should not."""

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        """Send a copy of `x` to rank `dst` and continue."""

    def recv(self, src: int, tag: int = 0) -> Message:
        """Wait for the next message from `src` with `tag`, and return it.

        Raise RankLost if `src` is lost and no such message is left.
        """

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        """Wait for a message with `tag` from any rank, and return (src, message) for the earliest one.

        For a rank that is lost, return (src, None), once for each tag.
        """

    def poll(self, tag: int = 0) -> Sequence[int]:
        """Return the ranks that recv_any with `tag` would return now, in the same order.

        These are the senders of messages that have arrived but have not been received, earliest first, once per
        message, followed by lost ranks not yet reported.
        """

    def isend(self, x: Message, dst: int, tag: int = 0) -> Handle:
        """Send like `send`. Return a handle whose wait() returns once the message has left this rank."""

    def irecv(self, src: int, tag: int = 0) -> Handle:
        """Post a receive. Return a handle whose wait() returns the next message from `src` with `tag`.

        That message is reserved for this handle: later receives, recv_any and poll do not see it.
        """

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        """Reduce `x` in place. Return it, or with async_op a handle whose wait() returns it.

        Shape and type of `x` and `op` must be the same on all ranks; otherwise at least one rank raises ValueError.

        With async_op the array belongs to the cluster until wait(). `priority` is a hint for several all-reduces in
        progress at once: at each port, the lowest number leaves first, and equal numbers leave in the order of the
        calls. Messages with priority 0, like all other messages, do not wait for any of these. The priority changes
        when an all-reduce is done, never its result. Raise ValueError if `x` is read-only or not contiguous, for a mean
        of integers, or for a type of number that kernels do not support.
        """

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        """Reduce `x` over all ranks, and return this rank's piece of the result.

        The piece of rank r is slice r of `shares(len(x), size)`.

        Raise ValueError if `x` is not a vector, and in the same cases as all_reduce.
        """

    def all_gather(self, x: Message) -> list[Message]:
        """Return the messages of all ranks, in rank order. They may differ in size."""

    def all_to_all(self, parts: Sequence[Message]) -> list[Message]:
        """Send parts[r] to each rank r. Return what each rank sent to this one, in rank order.

        Parts may differ in size. Raise ValueError unless there is one for each rank.
        """

    def broadcast(self, x: Message, src: int = 0) -> Message:
        """Return the message of `src` on every rank."""

    def barrier(self) -> None:
        """Wait until every rank has called this."""

    def split(self, color: int | None) -> Comm | None:
        """Return a communicator of the ranks that pass the same color, in rank order; None if the color is None."""

    def shared(self, like: np.ndarray, guard: Guard = "none") -> Shared:
        """Return a vector in memory shared by all ranks, initially rank 0's `like`. Every rank must call this."""


class Handle(Protocol):
    """An operation in progress."""

    def wait(self) -> Any:
        """Wait until the operation is done. Return the received message or the reduced array; None for a send.

        A second call returns the same, or waits once more if the first call raised an error.
        """


REDUCED = frozenset(map(np.dtype, "?bhilqBHILQfdFD"))
"""The types of numbers that ranks can reduce: those that compiled kernels support."""


def scale_of(op: Op, x: np.ndarray, size: int) -> float:
    """Return the factor that turns the sum of `x` over `size` ranks into the result of `op`.

    Raise ValueError for an unknown `op`, if `x` is not an array of numbers that kernels support, and for a mean of
    integers, since an integer array cannot hold it.
    """
    if isinstance(x, np.ndarray):
        if x.dtype not in REDUCED:
            raise ValueError(f"ranks cannot reduce {x.dtype}; use integers, or floats of 4 or 8 bytes.")
        if op == "mean" and x.dtype.kind not in "fc":
            raise ValueError(f"{x.dtype} cannot hold a mean; use floats, or the op sum.")
    elif not hasattr(x, "numel"):
        raise ValueError(f"ranks can only reduce an array, not a {type(x).__name__}.")
    if op == "sum":
        return 1.0
    if op != "mean":
        raise ValueError(f"there is no op {op!r}; use sum or mean.")
    return 1.0 / size


def flat(x: Any) -> Any:
    """Return `x` as a vector that shares its memory. Raise ValueError if `x` is read-only or not contiguous."""
    if isinstance(x, np.ndarray):
        flags = x.flags
        if not flags.writeable:
            raise ValueError("all_reduce works in place, but this array is read-only; pass a copy.")
        contiguous = flags.c_contiguous
    else:
        contiguous = x.is_contiguous()
    if not contiguous:
        raise ValueError(
            "all_reduce works in place, but this array is not contiguous; pass a contiguous copy "
            "(numpy.ascontiguousarray, or x.contiguous() in torch)."
        )
    return x if x.ndim == 1 else x.reshape(-1)


def vector(x: Any) -> Any:
    """Return `x`. Raise ValueError if it is not a vector, and so cannot be reduced piece by piece."""
    if x.ndim != 1:
        raise ValueError(
            f"reduce_scatter needs a vector, but got an array of shape {tuple(x.shape)}; pass x.reshape(-1)."
        )
    return x


def one_for_each(parts: Sequence[Message], size: int) -> list[Message]:
    """Return copies of `parts`. Raise ValueError unless there is one for each of `size` ranks."""
    if len(parts) != size:
        raise ValueError(
            f"all_to_all needs one part for each of {size} ranks, but got {len(parts)}; pass None for an empty part."
        )
    return [snapshot(part) for part in parts]


def check_tag(tag: Any, collective: str = "") -> None:
    """Raise ValueError unless `tag` is an integer from 0 to MOST_TAG. Inside a `collective`, the tag may be
    negative.
    """
    if not isinstance(tag, int | np.integer) or tag > MOST_TAG or (tag < 0 and not collective):
        raise ValueError(f"a tag must be a whole number from 0 to {MOST_TAG}, not {tag!r}.")


NUMBERS = int, float, np.generic


def snapshot(x: Message) -> Message:
    """Return a copy of the message `x` that shares no memory with it. Raise ValueError if `x` is not a message."""
    if x is None or isinstance(x, NUMBERS):
        return x
    if isinstance(x, tuple):
        return tuple(snapshot(part) for part in x)
    nbytes(x)
    return copy(x)


def nbytes(x: Message) -> int:
    """Return the size of a message's payload in bytes: 8 for a number, 0 for None. Raise ValueError if `x` is not a
    message.
    """
    if x is None:
        return 0
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biufc":
            raise ValueError(f"an array of type {x.dtype} cannot be sent; send arrays of numbers.")
        return x.nbytes
    if isinstance(x, tuple):
        return sum(nbytes(part) for part in x)
    if isinstance(x, NUMBERS):
        return 8
    if hasattr(x, "numel"):
        return x.numel() * x.element_size()
    raise ValueError(f"a message must be None, a number, an array or a tuple of these, not a {type(x).__name__}.")


class ClusterError(RuntimeError):
    """An error of the cluster. The message names the rank."""


class Deadlock(ClusterError):
    """Raised when the ranks wait for each other and no message is on its way. `waits` lists who waits for whom."""

    def __init__(self, message: str, waits: Iterable[Wait] = ()):
        super().__init__(message)
        self.waits = tuple(waits)


class Cancelled(ClusterError):
    """Raised when the run was asked to stop."""


class RankLost(ClusterError):
    """Raised when a rank crashed or was killed. `step` is its last known step, -1 if it took none.

    `seconds` is the time on the run's clock at which it was lost or, on a real cluster, at which this was noticed; NaN
    if unknown.
    """

    def __init__(self, message: str, rank: int, step: int = -1, seconds: float = math.nan):
        super().__init__(message)
        self.rank, self.step, self.seconds = rank, step, seconds


class RankFailed(ClusterError):
    """Raised when the program of `rank` raised an exception at `step`.

    That exception is the __cause__, if it is available.
    """

    def __init__(self, message: str, rank: int, step: int = -1):
        super().__init__(message)
        self.rank, self.step = rank, step


def describe_loss(rank: int, seconds: float, step: int) -> str:
    """Return the start of a sentence on a lost rank: which rank it was, and when it was lost."""
    return f"rank {rank} was lost at {seconds:.4g} s" + (f" (step {step})" if step >= 0 else "")  # servers take none
