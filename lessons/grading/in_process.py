"""An attempt in the grader's own process, for browsers, which cannot start other processes. There, a web worker is the
sandbox.

Nothing separates the solution from its grader, so this is for practice only. Memory is not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lessons.grading import remote
from lessons.grading.attempt import Attempt, Solution
from lessons.grading.hosted import HostedRank
from lessons.grading.sandbox_worker import LoadedSolution, pack, read_frame


class InProcess(Attempt):
    """An attempt that runs the solution in this process. Arguments and results are copied, as on the channel to another
    process.
    """

    def __init__(self, solution: Solution):
        self.solution, self.first, self.footprint = solution, not solution.attempts, None
        self.program = LoadedSolution(remote, solution.name, solution.source, solution.signatures)

    def __enter__(self) -> InProcess:
        self._result(self.program.load())
        self.solution.attempts += 1
        return self

    def close(self) -> None:
        """Do nothing: there is no process to end."""

    def call(self, function: str, *given: Any) -> Any:
        """Call `function` of the solution with these plain values and return its result."""
        return self._result(_copy(self.program.call(function, *_copy(given))))

    def role(self, function: str) -> Callable[[Any, Any, Any], Any]:
        """Return a program for ranks, (comm, task, s) -> w, that runs `function` of the solution."""
        self._result(self.program.find(function))

        def play(comm, task, s) -> Any:
            rank, failures = HostedRank(comm, task, self.solution.quota), []

            def request(*words: Any) -> Any:
                try:
                    return _copy(rank.do(_copy(words)))
                except BaseException as error:  # of the cluster or the check, not of the solution
                    failures.append(error)
                    raise

            reply = self.program.play(
                request, comm.rank, function, comm.size, task.per_epoch, self.settings_for_solution(s)
            )
            if failures:
                raise failures[0]
            return self._result(_copy(reply))

        return play


def _copy(value: Any) -> Any:
    """Return a copy of a plain value. It is packed and unpacked as on the channel to another process."""
    frame = b"".join(pack(value))
    at = 0

    def receive(rest: memoryview) -> int:
        nonlocal at
        part = frame[at : at + len(rest)]
        rest[: len(part)] = part
        at += len(part)
        return len(part)

    return read_frame(receive)
