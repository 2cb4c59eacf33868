"""Processes: every rank is a process of this computer, and the clock is real.

The parent starts the ranks through a fork server that has everything loaded, hears from them a few times a second,
and ends the run when one of them fails, dies or waits for ever: it says which, at what step and why, and leaves no
process behind. A rank that loses its parent ends itself.

Where Python has no fork server (Windows) ranks are started afresh, which takes seconds instead of a tenth. A script
whose own functions are to run starts runs under `if __name__ == "__main__":`, as with any multiprocessing.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections.abc import Callable, Iterator
from multiprocessing import connection
from pathlib import Path
from types import ModuleType
from typing import Any

from cluster.comm import Cancelled
from cluster.real.child import main
from cluster.real.failure import Failure, deadlock, lost
from cluster.real.notebook import Record
from cluster.real.rank import loopback
from cluster.trace import Journal, Outcome

BACKENDS = ("gloo", "sockets", "nccl")
PERIOD = 0.2  # s between two calls of on_progress
MOMENT = 0.1  # s in which the first of several failures is found out
GRACE = 1.0  # s that a complaint about another rank waits for that rank's own words
LAST_WORDS = 0.5  # s that ranks have for their last notes when a run is ended
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
ROOT = Path(__file__).resolve().parent.parent


def run(
    program: Callable[[Any], Any],
    size: int,
    *,
    backend: str = "gloo",
    timeout: float = 60.0,
    on_progress: Callable[[list[Journal], float], None] | None = None,
    stop: Any = None,
    warm_up: Callable[[], Any] | None = None,
) -> Outcome:
    """Run `program(comm)` in `size` processes and give back their results and journals.

    `program` must be picklable, a function of a module or a partial of one; so must its results. `backend` names who
    sums: "sockets" a ring over our own links, without loading torch; "gloo" the same for what is small and
    torch.distributed for what is large; "nccl" torch.distributed on GPUs, rank r on cuda:r.
    A rank that waits longer than `timeout` seconds ends the run as a deadlock; most deadlocks are found at once.
    `on_progress(journals, seconds)` is called a few times a second; `stop`, an Event or a function, ends the run
    early, and so does Ctrl-C. `warm_up()` is called on every rank before the clock starts: to load data, to compile.
    What goes wrong in a rank does not raise here: it is the Outcome's error.
    """
    if size < 1:
        raise ValueError(f"{size} ranks cannot run; allowed is 1 or more.")
    if backend not in BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; allowed are {', '.join(BACKENDS)}.")
    try:
        work = pickle.dumps((program, warm_up))
    except Exception as error:
        raise ValueError(
            f"the program cannot be sent to other processes ({error}); define it at the top level of a module."
        ) from None
    prepare(program, backend)
    return Watch(size, on_progress, stop).run(work, backend, timeout)


def prepare(program: Callable | None = None, backend: str = "gloo") -> None:
    """Start the fork server and do not wait for it: a run that begins while it loads, or later, starts sooner.

    There is one for all runs. It loads what every rank needs, the module of `program`, and torch if `backend` does;
    what a later run needs beyond that its ranks load themselves.
    """
    if METHOD == "forkserver":
        from multiprocessing.forkserver import ensure_running

        module = getattr(getattr(program, "func", program), "__module__", None)  # also of a partial
        torch = None if backend == "sockets" else "torch.distributed"
        wanted = [name for name in ("cluster.real.preload", torch, module) if name not in (None, "__main__")]
        multiprocessing.set_forkserver_preload(wanted)
        with _environment():
            ensure_running()


class Watch:
    """The parent's side of one run."""

    def __init__(self, size: int, on_progress: Callable | None, stop: Any):
        self.size, self.on_progress = size, on_progress
        self.stopped = getattr(stop, "is_set", stop)
        self.record = Record(size)
        self.results: list[Any] = [None] * size
        self.notes: list[tuple[int, list[str]]] = []
        self.processes: list = []
        self.pipes: dict[connection.Connection, int] = {}
        self.offers: dict[int, Any] = {}
        self.states: dict[int, tuple] = {}  # rank -> (since when, until when, its state): see rank.state
        self.seconds = 0.0  # of the run's clock
        self.closed: set[int] = set()
        self.failures: list[Failure] = []
        self.decided = math.inf  # when the run ends because of them
        self.over = False
        self.told = time.monotonic()

    def run(self, work: bytes, backend: str, timeout: float) -> Outcome:
        """Everything, from the first process to the last."""
        cancelled = False
        try:
            self._start(work, backend, timeout)
            while len(self.closed) < self.size and time.monotonic() < self.decided:
                self._hear(min(PERIOD / 2, max(0.0, self.decided - time.monotonic())))
                self._look()
                if self.stopped and self.stopped():
                    cancelled = True
                    break
        except KeyboardInterrupt:
            cancelled = True
        finally:
            self._end()
        self.record.settle(over=True)
        error = min(self.failures).error() if self.failures else None
        if cancelled:
            error = Cancelled(f"cancelled at {self.seconds:.4g} s of the run's clock")
        notes = [line for _, lines in sorted(self.notes) for line in lines]
        return Outcome(self.results, self.record.journals, error, tuple(notes))

    def _start(self, work: bytes, backend: str, timeout: float) -> None:
        context = multiprocessing.get_context(METHOD)
        with _environment(), _main_module(needed=b"__main__" in work):
            for rank in range(self.size):
                ours, theirs = context.Pipe()
                args = (rank, self.size, theirs, work, backend, timeout)
                process = context.Process(target=main, args=args, name=f"rank {rank}", daemon=True)
                self.pipes[ours] = rank
                self.processes.append(process)
                process.start()
                theirs.close()

    def _hear(self, seconds: float) -> None:
        """Take what the ranks say, waiting at most so long for it."""
        for pipe in connection.wait(list(self.pipes), seconds):
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

    def _offer(self, rank: int, x: Any) -> None:
        self.offers[rank] = x
        if len(self.offers) == self.size:
            for pipe in self.pipes:
                with contextlib.suppress(OSError):
                    pipe.send([self.offers[other] for other in range(self.size)])

    def _news(self, rank: int, news: tuple) -> None:
        notes, at, seconds, state = news
        self.record.add(rank, notes)
        self.seconds = max(self.seconds, seconds)
        since, _, before = self.states.get(rank, (at, at, state))
        self.states[rank] = (since if state == before else at, at, state)

    def _notes(self, rank: int, lines: list[str]) -> None:
        self.notes.append((-1, lines))

    def _result(self, rank: int, result: Any) -> None:
        self.results[rank] = result

    def _closed(self, rank: int, unread: list[str]) -> None:
        self.notes.append((rank, unread))
        self.closed.add(rank)

    def _failed(self, rank: int, failure: Failure) -> None:
        self.closed.add(rank)
        if failure.severity == 1:
            others = [state[-1] for r, (_, _, state) in sorted(self.states.items()) if r != rank and state[-1]]
            failure = failure._replace(text="; ".join([failure.text, *others]))
        self._fail(failure)

    def _lost(self, rank: int) -> None:
        """The pipe of a rank that had not finished is closed."""
        process = self.processes[rank]
        process.join(GRACE)
        code = process.exitcode
        if code is None:
            why = "it does not answer any more"
        elif code < 0:
            why = f"it was killed by {signal.Signals(-code).name}"
        else:
            why = f"its process ended with exit code {code}"
        if rank not in self.states:
            why += '; a script starts runs under `if __name__ == "__main__":`'
        self._fail(lost(rank, self.seconds, self.record.journals[rank].step, why))

    def _fail(self, failure: Failure) -> None:
        if not self.over:
            self.failures.append(failure)
            self.decided = min(self.decided, time.monotonic() + (MOMENT if failure.severity < 2 else GRACE))

    def _look(self) -> None:
        """Now and then: tell the reader how far it has come, and see whether anything will ever move again."""
        now = time.monotonic()
        if now - self.told < PERIOD:
            return
        self.told = now
        if self.on_progress and self.states:
            self.record.settle()
            self.on_progress(self.record.journals, self.seconds)
        if len(self.states) == self.size and not self.failures:
            since, until, states = zip(*self.states.values(), strict=True)
            stuck, _, sent, received, complaints = zip(*states, strict=True)
            if all(stuck) and any(complaints) and max(since) < min(until) and sum(sent) == sum(received):
                self._fail(deadlock([line for line in complaints if line]))

    def _end(self) -> None:
        """Let the ranks say their last words, then see to it that none is left."""
        self.over = True
        for pipe in self.pipes:
            with contextlib.suppress(OSError):
                pipe.send("over")
        deadline = time.monotonic() + LAST_WORDS
        while self.pipes and time.monotonic() < deadline:
            self._hear(max(0.0, deadline - time.monotonic()))
        started = [process for process in self.processes if process.pid]
        for process in started:
            process.kill()
        while self.pipes:
            self._hear(0.0)
        for process in started:
            process.join()


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """What has to be known before NumPy and torch are loaded: one thread per rank, and where the ranks meet."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    values = {**dict.fromkeys(ONE_THREAD, "1"), **loopback(), "PYTHONPATH": path}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _main_module(needed: bool) -> Iterator[None]:
    """Keep a new process from importing the script that was started here, unless the program is a part of it.

    That takes time, and goes wrong with what came from a pipe, a notebook or a script without a guard.
    """
    script = sys.modules["__main__"]
    if not needed:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
