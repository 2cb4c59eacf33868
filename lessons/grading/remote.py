"""The stubs of comm and task that a solution gets in the sandbox. Every call of a stub is a request to the grader.

The grader holds the cluster and the task (`hosted.py`). On the channel, communicators, shared vectors and handles are
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Request = Callable[..., Any]
"""Send a request, (what, number of the object, arguments ...), and return the answer."""


class Remote:
    """A proxy for an object of the grader. Access to a missing attribute raises an error that lists the existing
    ones.
    """

    name = ""

    def __getattr__(self, missing: str) -> Any:
        offered = sorted(
            part for part in {*dir(type(self)), *vars(self)} if not part.startswith("_") and part != "name"
        )
        raise AttributeError(f"{self.name} has no {missing}; it has {', '.join(offered)}")


class RemoteComm(Remote):
    """Stub of `cluster.comm.Comm`."""

    name = "comm"

    def __init__(self, request: Request, number: int, rank: int, size: int):
        self._request, self._number, self.rank, self.size = request, number, rank, size

    def _ask(self, what: str, *given: Any) -> Any:
        return self._request(what, self._number, *given)

    @property
    def nodes(self) -> list[Any]:
        return self._ask("nodes")

    def send(self, x: Any, dst: int, tag: int = 0) -> None:
        self._ask("send", x, dst, tag)

    def recv(self, src: int, tag: int = 0) -> Any:
        return self._ask("recv", src, tag)

    def recv_any(self, tag: int = 0) -> tuple[int, Any]:
        return self._ask("recv_any", tag)

    def poll(self, tag: int = 0) -> list[int]:
        return self._ask("poll", tag)

    def isend(self, x: Any, dst: int, tag: int = 0) -> RemoteHandle:
        return RemoteHandle(self._request, self._ask("isend", x, dst, tag))

    def irecv(self, src: int, tag: int = 0) -> RemoteHandle:
        return RemoteHandle(self._request, self._ask("irecv", src, tag))

    def all_reduce(self, x: np.ndarray, op: str = "sum", async_op: bool = False, priority: int = 0) -> Any:
        if async_op:
            return RemoteHandle(self._request, self._ask("all_reduce", x, op, True, priority), x)
        x[...] = self._ask("all_reduce", x, op)
        return x

    def reduce_scatter(self, x: np.ndarray, op: str = "sum") -> np.ndarray:
        return self._ask("reduce_scatter", x, op)

    def all_gather(self, x: Any) -> list[Any]:
        return self._ask("all_gather", x)

    def broadcast(self, x: Any, src: int = 0) -> Any:
        return self._ask("broadcast", x, src)

    def barrier(self) -> None:
        self._ask("barrier")

    def split(self, color: int | None) -> RemoteComm | None:
        made = self._ask("split", color)
        return None if made is None else RemoteComm(self._request, *made)

    def shared(self, like: np.ndarray, guard: str = "none") -> RemoteShared:
        return RemoteShared(self._request, self._ask("shared", like, guard))


class RemoteHandle(Remote):
    """Stub of `cluster.comm.Handle`. For an all-reduce, `x` is the array that receives the result."""

    name = "a handle"

    def __init__(self, request: Request, number: int, x: np.ndarray | None = None):
        self._request, self._number, self._x, self._waited = request, number, x, False

    def wait(self) -> Any:
        if not self._waited:
            self._result, self._waited = self._request("wait", self._number), True
            if self._x is not None:
                self._x[...] = self._result
                self._result = self._x
        return self._result


class RemoteShared(Remote):
    """Stub of `cluster.shared_memory.Shared`. `vector` is a copy of the memory. Only some checks offer `write`."""

    name = "a shared vector"

    def __init__(self, request: Request, number: int):
        self._request, self._number = request, number

    @property
    def vector(self) -> np.ndarray:
        return self._request("vector", self._number)

    def read(self, where: Any = None) -> np.ndarray:
        return self._request("read", self._number, _place(where))

    def add(self, delta: np.ndarray, where: Any = None) -> None:
        self._request("add", self._number, delta, _place(where))

    def write(self, values: np.ndarray, where: Any = None) -> None:
        self._request("write", self._number, values, _place(where))


def _place(where: Any) -> Any:
    """Return coordinates as a plain value: a slice as (start, stop, step)."""
    return (where.start, where.stop, where.step) if isinstance(where, slice) else where


class RemoteTask(Remote):
    """Stub of `workloads.task.Task`. The check defines what the methods from `forward` to `classify` do.

    It also defines `start(places)`, in exercises in which a rank asks only for some of the numbers.
    """

    name = "task"

    def __init__(self, request: Request, per_epoch: int):
        self._request, self.per_epoch = request, per_epoch

    def start(self, *places: Any) -> np.ndarray:
        return self._request("start", 0, *places)

    def steps(self, together: bool = False) -> Iterator[int]:
        while (step := self._request("step", 0, together)) is not None:
            yield step

    def gradient(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        return self._request("gradient", 0, w)

    def forward(self, *given: Any) -> Any:
        return self._request("forward", 0, *given)

    def backward(self, *given: Any) -> Any:
        return self._request("backward", 0, *given)

    def head(self) -> np.ndarray:
        return self._request("head", 0)

    def classify(self, *given: Any) -> Any:
        return self._request("classify", 0, *given)

    def report(self, w: np.ndarray) -> None:
        self._request("report", 0, w)

    def measure(self, quantity: str, value: float) -> None:
        self._request("measure", 0, quantity, value)

    def at(self, step: int) -> None:
        self._request("at", 0, step)

    def spent(self) -> bool:
        return self._request("spent", 0)


class RemoteSettings:
    """The settings that the exercise offers."""

    def __init__(self, settings: dict[str, Any]):
        vars(self).update(settings)

    def __getattr__(self, missing: str) -> Any:
        offered = list(vars(self))
        known = " and ".join([", ".join(offered[:-1]), offered[-1]][len(offered) < 2 :]) if offered else "nothing"
        raise AttributeError(f"s has {known}, no {missing}")
