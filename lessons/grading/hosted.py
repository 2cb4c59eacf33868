"""The grader's side of a rank that a solution plays. It makes the calls of cluster and task that the solution requests.

Nothing that a solution sends is trusted: it can request only the words below, objects are looked up by number, and
arrays are checked before they reach compiled code.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cluster.comm import nbytes
from lessons.grading.contract import Misuse, check

MESSAGES = {"send", "recv", "recv_any", "poll", "broadcast", "barrier", "all_gather"}
STARTED = {"isend", "irecv"}
REDUCED = {"all_reduce", "reduce_scatter"}
COMM = MESSAGES | STARTED | REDUCED | {"poll", "nodes", "split", "shared"}
TASK = {"start", "gradient", "forward", "backward", "head", "classify", "report", "measure", "at", "spent"}
MOST = 10_000  # objects that a rank may have at once
SHARED = 8_000_000  # bytes of a shared vector
CALLS = 20_000  # calls of comm and task in one run, several times what any exercise needs
SENT = 400_000_000  # bytes of messages and shared vectors in one run, which wait in the grader's memory
HELD = {"send", "isend", "broadcast", "all_gather", "all_reduce", "reduce_scatter", "shared"}


class SolutionError(Exception):
    """Raised for an error of the solution that ends its grading. The message is a sentence for the solution's
    author.
    """


@dataclass
class Quota:
    """The number of calls and bytes that all ranks of a solution have used in one run."""

    calls: int = 0
    sent: int = 0

    def count(self, what: str, given: tuple[Any, ...]) -> None:
        """Count a call and the bytes that it sends. Raise SolutionError if there are too many of either."""
        self.calls += 1
        if self.calls > CALLS:
            raise SolutionError(
                f"it has called comm and task {CALLS} times in one run, most recently {what[:40]}; "
                "is there an endless loop?"
            )
        if what in HELD and given:
            self.sent += nbytes(given[0])
            if self.sent > SENT:
                raise SolutionError(f"it has sent more than {SENT // 10**6} MB in one run; is there an endless loop?")


class HostedRank:
    """The objects that a solution's rank uses: its task, and its communicators, shared vectors and handles by
    number.
    """

    def __init__(self, comm: Any, task: Any, quota: Quota | None = None):
        self.task, self.steps, self.quota = task, None, quota or Quota()
        self.objects: dict[int, Any] = {0: comm}
        self.made = 0

    def do(self, request: Any) -> Any:
        """Carry out a request, (what, number, arguments ...), and return its result. Raise SolutionError if the request
        is invalid.
        """
        if not isinstance(request, tuple) or len(request) < 2:
            raise SolutionError("it sent an invalid request.")
        what, number, *given = request
        if not isinstance(what, str):
            raise SolutionError("it sent a request without the name of a method.")
        try:
            thing = self.objects.get(number) if isinstance(number, int) else None
            takes = getattr(type(self.task), "takes", None)  # of a check
            check(what, tuple(given), getattr(thing, "size", 0), lambda: self.length, takes)
            self.quota.count(what, tuple(given))
            return self._do(what, number, *given)
        except Misuse as misuse:
            raise SolutionError(str(misuse)) from None
        except (TypeError, IndexError, KeyError) as error:
            told = str(error) or type(error).__name__
            raise SolutionError(f"{what[:40]} was called with invalid arguments: {told}.") from None

    @cached_property
    def length(self) -> int:
        """The length of this rank's parameters."""
        return len(self.task.start())

    def _do(self, what: str, number: Any, *given: Any) -> Any:
        if what == "step":
            self.steps = self.steps or self.task.steps(bool(given[0]))
            return next(self.steps, None)
        if what in TASK:
            return getattr(self._part(self.task, "task", what), what)(*given)
        thing = self.objects.get(number) if isinstance(number, int) else None
        if what == "wait" and hasattr(thing, "wait"):
            return self.objects.pop(number).wait()
        if what in ("vector", "read", "add", "write") and hasattr(thing, "read"):
            return _shared(self._part(thing, "shared", what), what, *given)
        if what in COMM and hasattr(thing, "size"):
            return self._communicate(self._part(thing, "comm", what), what, *given)
        raise SolutionError(f"comm and task have no {what[:40]!r}.")

    def _communicate(self, comm: Any, what: str, *given: Any) -> Any:
        if what == "poll":
            return list(comm.poll(*given))
        if what == "nodes":
            return list(comm.nodes)
        if what in MESSAGES:
            return getattr(comm, what)(*given)
        if what in STARTED:
            return self._keep(getattr(comm, what)(*given))
        if what in REDUCED:
            done = getattr(comm, what)(_vector(given[0], what), *given[1:])
            return done if isinstance(done, np.ndarray) else self._keep(done)
        if what == "split":
            part = comm.split(*given)
            return None if part is None else (self._keep(part), part.rank, part.size)
        if _vector(given[0], what).nbytes > SHARED:
            raise SolutionError(f"a shared vector may have at most {SHARED} bytes, not {given[0].nbytes}.")
        return self._keep(comm.shared(*given))

    def _keep(self, thing: Any) -> int:
        if len(self.objects) >= MOST:
            raise SolutionError(f"it has {MOST} handles at once; wait for some of them.")
        self.made += 1
        self.objects[self.made] = thing
        return self.made

    @staticmethod
    def _part(thing: Any, name: str, what: str) -> Any:
        """Return `thing`, or raise SolutionError if it lacks `what`.

        It may lack it because a check may offer only part of a cluster or task.
        """
        if not hasattr(thing, what):
            raise SolutionError(f"there is no {name}.{what} in this exercise.")
        return thing


def _vector(x: Any, what: str) -> np.ndarray:
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f" or x.ndim != 1:
        given = f"{x.dtype} of shape {x.shape}" if isinstance(x, np.ndarray) else type(x).__name__
        raise SolutionError(f"{what} takes a vector of floats; it was given {given}.")
    return x


def _shared(thing: Any, what: str, *given: Any) -> np.ndarray | None:
    """Read a shared vector and return its numbers, or change it and return None.

    `what` says whether numbers are read, added or written. Raise SolutionError if coordinates or values do not fit the
    vector.

    A probe may have `write`, which overwrites numbers. It may have `blank`, of the same shape, instead of `vector`,
    since a solution could read `vector` at no cost.
    """
    vector = thing.blank if hasattr(thing, "blank") else thing.vector
    if what == "vector":
        return vector.copy()
    *numbers, where = given
    if isinstance(where, tuple) and len(where) == 3 and all(n is None or isinstance(n, int) for n in where):
        where = slice(*where)
        if where.step == 0:
            raise SolutionError("a slice of a shared vector has step 0.")
    elif where is not None:
        where = np.asarray(where)
        if where.dtype.kind not in "iu" or where.ndim != 1 or np.any((where < 0) | (where >= len(vector))):
            raise SolutionError(f"coordinates of a shared vector are whole numbers from 0 to {len(vector) - 1}.")
    if what == "read":
        return thing.read(where)
    fits = len(vector) if where is None else len(vector[where])
    if len(_vector(numbers[0], what)) != fits:
        done = "added to" if what == "add" else "stored in"
        raise SolutionError(f"{len(numbers[0])} numbers cannot be {done} {fits} coordinates of a shared vector.")
    getattr(thing, what)(numbers[0].astype(vector.dtype), where)
    return None
