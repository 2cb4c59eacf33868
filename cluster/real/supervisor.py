"""The parent's side of a run of processes or threads.

The supervisor collects the ranks' reports a few times a second, calls on_progress, and ends the run when a rank fails,
is deadlocked, or cannot continue without a lost rank. It determines the first cause, keeps everything that was
recorded, and leaves no process behind.
"""

import contextlib
import math
import pickle
import signal
import time
from collections.abc import Callable
from multiprocessing import connection
from typing import Any, NamedTuple, cast

from cluster.comm import Cancelled
from cluster.event_log import Outcome
from cluster.real.event_log_stream import MergedEventLogs
from cluster.real.failure import Failure, deadlock, rank_lost, start_failed, unreadable_result
from cluster.real.gpus import Allotment
from cluster.real.rank_state import RankStatus
from cluster.real.returns import Returns
from cluster.real.signals import catch_signals, interrupt_signals
from kernels import compiling
from tracing import IDLE, WAIT

PERIOD = 0.2  # s between two calls of on_progress
MOMENT = 0.1  # s to wait for further failures, since the first one in time is the cause
GRACE = 1.0  # s that a failure caused by another rank waits for that rank's own report
LAST_WORDS = 0.5  # s that ranks get for their last report when the run ends


class StatusReport(NamedTuple):
    """What a rank is doing, and when it first and last reported that, on the machine's clock."""

    first: float
    last: float
    status: RankStatus


class Supervisor:
    """The parent's side of one run.

    With `fragile`, every lost rank ends the run, since an all-reduce by NCCL would wait for that rank until the
    timeout. A rank of `returns` that crashes is not lost but away: a new process will take its place.
    """

    def __init__(
        self,
        size: int,
        on_progress: Callable | None,
        stop: Any,
        fragile: bool = False,
        returns: Returns | None = None,
        on_phase: Callable[[str], None] | None = None,
    ):
        self.size, self.on_progress, self.on_phase, self.fragile = size, on_progress, on_phase, fragile
        self.returns = returns or Returns()
        self.stopped = getattr(stop, "is_set", stop)
        self.merged = MergedEventLogs(size)
        self.results: list[Any] = [None] * size
        self.notes: list[tuple[int, list[str]]] = []
        self.gpus: int | None = None  # number of GPUs that the ranks use, if they asked for some
        self.processes: list = []
        self.pipes: dict[connection.Connection, int] = {}
        self.offers: dict[int, Any] = {}
        self.reports: dict[int, StatusReport] = {}  # the last one of each rank
        self.seconds = 0.0  # the latest time of the run's clock
        self.zero = 0.0  # the clock's start on the machine's monotonic clock
        self.closed: set[int] = set()
        self.done: set[int] = set()  # ranks that have returned their result
        self.noticed = -math.inf  # when all others will have noticed that a rank was lost
        self.lost: dict[int, Failure] = {}  # lost ranks without which the others may continue
        self.failures: list[Failure] = []
        self.decided = math.inf  # when these failures end the run
        self.over = False
        self.compiling = ""  # what ranks say they are doing before they are ready
        self.compiled = 0.0  # s of the run's clock in which a rank compiled, at most
        self.told = time.monotonic()

    def run(self, start: Callable[[int], tuple[Any, connection.Connection]]) -> Outcome:
        """Run all ranks until the last one ends. `start(rank)` returns a process and the pipe to it."""
        with catch_signals(*interrupt_signals()) as interrupted:
            try:
                cancelled = self._watch(start, interrupted)
            finally:
                self._end()
            cancelled = cancelled or interrupted()
        self.merged.match(over=True)
        if self.failures or len(self.lost) == self.size:
            self.failures += self.lost.values()
        error = min(self.failures).error() if self.failures else None
        for rank, failure in sorted((self.lost | self.returns.away).items()):
            event_log = self.merged.event_logs[rank]
            event_log.spans.append((IDLE, event_log.mark, max(event_log.mark, self.seconds), event_log.step, "lost"))
            if not error:
                self.notes.append((-1, [failure.text]))
        for rank in self._blocked():
            event_log = self.merged.event_logs[rank]
            event_log.spans.append((WAIT, event_log.mark, self.seconds, event_log.step, "receive"))
        if cancelled:
            error = Cancelled(f"cancelled at t = {self.seconds:.4g} s")
        if self.compiled:
            took = (
                "Kernels were compiled during the run, which happens only once and took "
                f"{self.compiled:.3g} s; run it again."
            )
            self.notes.append((-1, [took]))
        notes = [line for _, lines in sorted(self.notes) for line in lines]
        gone = tuple(sorted({*self.lost} - self.done))
        return Outcome(self.results, self.merged.event_logs, error, tuple(notes), gone, self.gpus)

    def _blocked(self) -> list[int]:
        """Return the ranks that were waiting for another rank when the run ended."""
        gone = self.lost | self.returns.away
        waited = [rank for rank, one in sorted(self.reports.items()) if one.status.wait and rank not in gone]
        return [rank for rank in waited if self.merged.event_logs[rank].mark < self.seconds]

    def _watch(self, start: Callable[[int], tuple[Any, connection.Connection]], interrupted: Callable) -> bool:
        """Start the ranks and handle their messages until all have finished or some have failed.

        Return True if asked to stop before that.
        """

        def asked() -> bool:
            return interrupted() or bool(self.stopped and self.stopped())

        for rank in range(self.size):
            if asked():
                return True
            try:
                process, pipe = start(rank)
            except (EOFError, ConnectionError) as error:
                self._fail(start_failed(rank, error))
                break
            self.processes.append(process)
            self.pipes[pipe] = rank
        while len(self.closed) < self.size and time.monotonic() < self.decided:
            self._hear(min(PERIOD / 2, max(0.0, self.decided - time.monotonic())))
            self._look()
            if asked():
                return True
        return False

    def _hear(self, seconds: float) -> bool:
        """Handle the ranks' messages, waiting at most `seconds` for the first. Return whether there were any."""
        ready = cast(list[connection.Connection], connection.wait(list(self.pipes), seconds))
        for pipe in ready:
            rank = self.pipes[pipe]
            try:
                kind, content = pipe.recv()
            except (EOFError, OSError):
                del self.pipes[pipe]
                pipe.close()
                if rank not in self.closed and not self.over:
                    self._lost(rank)
            else:
                getattr(self, f"_{kind}")(rank, content)
        return bool(ready)

    def _offer(self, rank: int, x: Any) -> None:
        self.offers[rank] = x
        if rank in self.returns.away:
            del self.reports[rank]  # its predecessor's
            found = self.returns.come(rank, self.offers, self.closed)
            with contextlib.suppress(OSError):  # it has just been lost again
                next(pipe for pipe, other in self.pipes.items() if other == rank).send(found)
        elif len(self.offers) == self.size:
            for pipe in self.pipes:
                with contextlib.suppress(OSError):
                    pipe.send([self.offers[other] for other in range(self.size)])

    def _news(self, rank: int, news: tuple) -> None:
        notes, at, seconds, status = news
        self.merged.add(rank, notes)
        self.seconds, self.zero = max(self.seconds, seconds), at - seconds
        before = self.reports.get(rank)
        self.reports[rank] = StatusReport(before.first if before and before.status == status else at, at, status)

    def _allotment(self, rank: int, allotment: Allotment) -> None:
        self.gpus = allotment.gpus
        self.notes.append((-1, [*allotment.notes]))

    def _compiling(self, rank: int, _: None) -> None:
        self.compiling = f"{compiling.WORDS}; "

    def _compiled(self, rank: int, seconds: float) -> None:
        self.compiled = max(self.compiled, seconds)

    def _returned(self, rank: int, born: float) -> None:
        self.notes.append((-1, [self.returns.record_return(self.merged.event_logs[rank], born)]))

    def _result(self, rank: int, result: bytes) -> None:
        try:
            self.results[rank] = pickle.loads(result)
        except Exception as error:
            self._fail(unreadable_result(rank, error))
        self.done.add(rank)

    def _closed(self, rank: int, unread: list[str]) -> None:
        self.notes.append((rank, unread))
        self.closed.add(rank)

    def _failed(self, rank: int, failure: Failure) -> None:
        self.closed.add(rank)
        if failure.severity == 1:
            others = [one.status.wait for r, one in sorted(self.reports.items()) if r != rank and one.status.wait]
            text = "; ".join([failure.text, *map(str, others)])
            failure = failure._replace(text=text, waits=(*failure.waits, *others))
        self._fail(failure)

    def _lost(self, rank: int) -> None:
        """Handle the closed pipe of a rank that had not finished: restart it, continue without it, or end the run."""
        process = self.processes[rank]
        process.join(GRACE)
        code = process.exitcode
        if code is None:
            why = "it no longer responds"
        elif code < 0:
            why = f"it was killed by {signal.Signals(-code).name}"
        else:
            why = f"its process ended with exit code {code}"
            if code == 1 and rank not in self.reports:  # Python's exit code after a traceback, as without that line
                why += '; a script must start runs under `if __name__ == "__main__":`'
        failure = rank_lost(rank, self.seconds, self.merged.event_logs[rank].step, why)
        if self.fragile or self.failures or rank not in self.reports or rank in self.returns.away:
            self._fail(failure)
        elif rank in self.returns.awaited:
            try:
                self.processes[rank], pipe = self.returns.leave(self.merged.event_logs[rank], failure, self.zero)
            except (EOFError, ConnectionError) as error:
                self._fail(start_failed(rank, error))
            else:
                self.pipes[pipe] = rank
        else:
            self.lost[rank] = failure
            self.closed.add(rank)
            self.noticed = time.monotonic() + GRACE

    def _fail(self, failure: Failure) -> None:
        if not self.over:
            self.failures.append(failure)
            self.decided = min(
                self.decided, time.monotonic() + (MOMENT if failure.severity < 2 or self.lost else GRACE)
            )

    def _look(self) -> None:
        """Once per PERIOD, report progress (or the phase, before the run's clock starts) and look for a deadlock."""
        now = time.monotonic()
        if now - self.told < PERIOD:
            return
        self.told = now
        if self.on_phase and not self.seconds:
            ready = len(self.offers)
            self.on_phase(
                "connecting"
                if ready == self.size
                else f"{self.compiling or 'warming up, '}{ready} of {self.size} ready"
            )
        if len(self.reports) < self.size:
            return  # not all ranks have started
        if self.on_progress:
            self.merged.match()
            self.on_progress(self.merged.event_logs, self.seconds)
        finished = {rank for rank, one in self.reports.items() if one.status.is_finished}
        if len(self.lost) < self.size and not self.failures and not self.returns.is_return_expected(finished):
            alive = [one for rank, one in self.reports.items() if rank not in self.lost]
            waits = [one.status.wait for one in alive if one.status.wait]
            steady = max(self.noticed, *(one.first for one in alive)) < min(one.last for one in alive)
            arrived = sum(one.status.sent - one.status.received for one in alive) == 0
            if all(one.status.stuck for one in alive) and waits and steady and arrived:
                self._fail(deadlock(waits, self.returns.notes.values()))

    def _end(self) -> None:
        """Collect the ranks' last reports, then kill and join all ranks, even if interrupted meanwhile."""
        self.over = True
        try:
            for pipe in self.pipes:
                with contextlib.suppress(OSError):
                    pipe.send("over")
            self._hear_out(LAST_WORDS)
        finally:
            for process in self.processes:
                process.kill()
            self._hear_out(GRACE)
            for process in self.processes:
                process.join()
            self._hear_out(0.0)

    def _hear_out(self, silence: float) -> None:
        """Handle remaining messages from the ranks until all pipes are closed or none arrives for `silence` seconds.

        The pipe of an ended rank can stay open if its program forked a process that inherited it.
        """
        while self.pipes and self._hear(silence):
            pass
