"""Comm: the contract between an algorithm and the cluster it runs on.

    send(x, dst)        does not wait for the receiver: x is copied and handed to the network
    recv(src)           waits; messages of one pair of ranks with one tag arrive in the order of sending
    recv_any()          waits for the first message from any rank; poll() lists the ranks whose messages have arrived
    all_reduce(x)       sums x over all ranks, in place; async_op=True returns a handle to wait for

A message is None, a number, an array of numbers, or a tuple of messages. It is a snapshot: the sender may overwrite `x`
in the next line.

A rank may be lost: it crashed or was killed. `recv_any` then returns one last None from it, by which a server learns
that a worker will not return; `recv` from it raises `RankLost`. Both come after every message that has left it. A
rank that will restart is not reported as lost; messages sent while it is down are dropped.

What is refused with a ValueError for what this rank has given (no message, no rank, no tag, an array that cannot be
reduced) has sent nothing and counts for nothing: a program that catches it goes on. A collective that fails later, as
a rank is lost or ranks disagree about what they sum, ends the run or raises an error. A program that catches that has a
group without collectives: each one after it raises the same error there. Other groups, send and recv go on.

Names follow torch.distributed. All clusters implement this contract: `simulated`, and `processes`, `threads` and
`torchrun` of `real`. `test_comm.py` and `test_survived.py` in `tests/contract/cluster/` check every clause of it on
each of them but torchrun, whose ranks have the communicator of `processes`.
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
from kernels.arrays import shares as shares  # part of the contract: the pieces of reduce_scatter

Message = Any  # None | float | int | array | tuple[Message, ...]
Op = Literal["sum", "mean"]

COLLECTIVE = -1
"""The tag of collectives; tags of an algorithm are 0 or more."""

MOST_TAG = 2**31 - 1  # traces keep tags in 32 bits


class Comm(Protocol):
    """A communicator: what a rank can do with the ranks of its group."""

    rank: int  # of this process, 0 to size - 1
    size: int
    device: str  # where this rank's arrays are: "cpu" or "cuda:0"

    @property
    def nodes(self) -> Sequence[Hashable]:
        """The node of each rank of the group."""

    @property
    def event_log(self) -> EventLog:
        """What this rank records; for cluster and task, not for algorithms."""

    def send(self, x: Message, dst: int, tag: int = 0) -> None:
        """Send a copy of `x` to rank `dst` and continue."""

    def recv(self, src: int, tag: int = 0) -> Message:
        """Return the next message from `src` with `tag`. Raises RankLost if `src` is lost and has left none."""

    def recv_any(self, tag: int = 0) -> tuple[int, Message]:
        """Return (src, message) of the earliest message with `tag`; (src, None), once a tag, for a lost rank."""

    def poll(self, tag: int = 0) -> Sequence[int]:
        """Return the ranks that recv_any with `tag` would return now, in its order.

        These are the senders of messages that have arrived and were not received, the earliest first, once for each
        message; then lost ranks of which it has not said so yet.
        """

    def isend(self, x: Message, dst: int, tag: int = 0) -> Handle:
        """Send as `send` does; return a handle whose wait() returns when the message has left this rank."""

    def irecv(self, src: int, tag: int = 0) -> Handle:
        """Post a receive; return a handle whose wait() returns the next message from `src` with `tag`.

        That message is for this handle: receives that come later, recv_any and poll do not see it.
        """

    def all_reduce(self, x: np.ndarray, op: Op = "sum", async_op: bool = False, priority: int = 0) -> Any:
        """Reduce `x` in place; return it, or with async_op a handle whose wait() does.

        `x` has one shape and one type on all ranks, and `op` is the same, or ValueError is raised on one of them at
        least.

        With async_op the array belongs to the cluster until wait(). `priority` is a hint for several of these in
        progress at once: at each port, the lowest number leaves first, equal numbers in the order of the calls. 0, like
        every other message, does not wait for any of them. It changes when, never what. Raises ValueError if `x` is not
        contiguous or read-only, for a mean of integers, or for numbers that kernels do not know.
        """

    def reduce_scatter(self, x: np.ndarray, op: Op = "sum") -> np.ndarray:
        """Return this rank's piece of the reduced vector: piece r of `shares(len(x), size)` on rank r.

        Raises ValueError if `x` is no vector, and otherwise as all_reduce.
        """

    def all_gather(self, x: Message) -> list[Message]:
        """Return the messages of all ranks, by rank; they may differ in size."""

    def broadcast(self, x: Message, src: int = 0) -> Message:
        """Return `src`'s message on every rank."""

    def barrier(self) -> None:
        """Wait until every rank has called this."""

    def split(self, color: int | None) -> Comm | None:
        """Return the communicator of the ranks with the same color, in the order of rank; None for color None."""

    def shared(self, like: np.ndarray, guard: Guard = "none") -> Shared:
        """Return a vector in memory shared by all ranks, initially rank 0's `like`. Called by every rank."""


class Handle(Protocol):
    """An operation in progress."""

    def wait(self) -> Any:
        """Wait until it is done; return the received message, the reduced array, or None for a send.

        May be called again: it returns the same, or waits once more for what it has raised an error instead of.
        """


REDUCED = frozenset(map(np.dtype, "?bhilqBHILQfdFD"))
"""The types of numbers that ranks reduce: those that compiled kernels know."""


def scale_of(op: Op, x: np.ndarray, size: int) -> float:
    """Return what turns the sum of the `x` of `size` ranks into what `op` asks for.

    Raises ValueError for another `op`, for what is no array of numbers that kernels know, and for a mean of integers,
    which they cannot hold.
    """
    if isinstance(x, np.ndarray):
        if x.dtype not in REDUCED:
            raise ValueError(f"ranks cannot reduce {x.dtype}; reduce integers, or floats of 4 or 8 bytes.")
        if op == "mean" and x.dtype.kind not in "fc":
            raise ValueError(f"{x.dtype} cannot hold a mean; reduce floats, or to a sum.")
    elif not hasattr(x, "numel"):
        raise ValueError(f"ranks reduce an array, not a {type(x).__name__}.")
    if op == "sum":
        return 1.0
    if op != "mean":
        raise ValueError(f"ranks reduce to a sum or a mean, not to {op!r}.")
    return 1.0 / size


def flat(x: Any) -> Any:
    """Return `x` as a vector that shares its memory. Raises ValueError if it is not contiguous, or read-only."""
    if isinstance(x, np.ndarray):
        flags = x.flags
        if not flags.writeable:
            raise ValueError("all_reduce works in place, and this array is read-only: give it a copy.")
        contiguous = flags.c_contiguous
    else:
        contiguous = x.is_contiguous()
    if not contiguous:
        raise ValueError("all_reduce works in place: give it a contiguous array, or a copy of this one.")
    return x if x.ndim == 1 else x.reshape(-1)


def vector(x: Any) -> Any:
    """Return `x`, which is to be reduced piece by piece. Raises ValueError if it is no vector."""
    if x.ndim != 1:
        raise ValueError(
            f"reduce_scatter cuts a vector, not an array of shape {tuple(x.shape)}: give it x.reshape(-1)."
        )
    return x


def check_tag(tag: Any, collective: str = "") -> None:
    """Raise ValueError unless `tag` is one: a whole number up to MOST_TAG, below 0 only inside a `collective`."""
    if not isinstance(tag, int | np.integer) or tag > MOST_TAG or (tag < 0 and not collective):
        raise ValueError(f"a tag is a whole number from 0 to {MOST_TAG}, not {tag!r}.")


NUMBERS = int, float, np.generic


def snapshot(x: Message) -> Message:
    """Return a copy of a message that shares no memory with it. Raises ValueError if it is not a message."""
    if x is None or isinstance(x, NUMBERS):
        return x
    if isinstance(x, tuple):
        return tuple(snapshot(part) for part in x)
    nbytes(x)
    return copy(x)


def nbytes(x: Message) -> int:
    """Return the payload bytes of a message: 8 for a number, 0 for None. Raises ValueError if it is not a message."""
    if x is None:
        return 0
    if isinstance(x, np.ndarray):
        if x.dtype.kind not in "biufc":
            raise ValueError(f"an array of {x.dtype} cannot be sent; send arrays of numbers.")
        return x.nbytes
    if isinstance(x, tuple):
        return sum(nbytes(part) for part in x)
    if isinstance(x, NUMBERS):
        return 8
    if hasattr(x, "numel"):
        return x.numel() * x.element_size()
    raise ValueError(f"a message is None, a number, an array or a tuple of these, not a {type(x).__name__}.")


class ClusterError(RuntimeError):
    """An error of the cluster; the message names the rank."""


class Deadlock(ClusterError):
    """Ranks wait for each other and no message is on its way; `waits` says who waits for whom since when."""

    def __init__(self, message: str, waits: Iterable[Wait] = ()):
        super().__init__(message)
        self.waits = tuple(waits)


class Cancelled(ClusterError):
    """The run was asked to stop."""


class RankLost(ClusterError):
    """A rank crashed or was killed: `rank`, the last `step` known of it (-1 if none), and when, NaN if unknown.

    `seconds` are those of the run's clock at which it was lost, or on a real cluster at which that was noticed.
    """

    def __init__(self, message: str, rank: int, step: int = -1, seconds: float = math.nan):
        super().__init__(message)
        self.rank, self.step, self.seconds = rank, step, seconds


class RankFailed(ClusterError):
    """A rank's program raised: `rank`, `step`, and the original exception as __cause__ where it is available."""

    def __init__(self, message: str, rank: int, step: int = -1):
        super().__init__(message)
        self.rank, self.step = rank, step


def describe_loss(rank: int, seconds: float, step: int) -> str:
    """Return that a rank was lost, and when, without the end of the sentence."""
    return f"rank {rank} was lost at {seconds:.4g} s" + (f" (step {step})" if step >= 0 else "")  # a server takes none
