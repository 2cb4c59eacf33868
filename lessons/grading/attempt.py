"""An attempt: a process that runs a solution in the sandbox, with the grader's end of the channel to it."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.execution.run import run
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from installation import ROOT
from lessons.grading import bubblewrap, reachable, sandbox_worker, timelines
from lessons.grading.footprint import Footprint
from lessons.grading.hosted import HostedRank, Quota, SolutionError
from lessons.grading.patience import LOOK, Exhausted, Limits, Patience
from lessons.grading.plain_words import crash, deadlock, failure

CPU, MEMORY = 30, 1_000_000_000  # s and bytes of an attempt
START = 120.0  # s for Python and NumPy to be loaded
YOURS, TEXTBOOK = "yours", "the textbook's"
PRINTS = 4000  # characters of its output that are kept
SENT = 1_000_000_000  # bytes that an attempt may send
WORKER_FILES = tuple(str(ROOT / "lessons" / name) for name in (
    "__init__.py", "grading/__init__.py", "grading/remote.py", "grading/sandbox.py", "grading/sandbox_worker.py"
))  # fmt: skip
IMPOSSIBLE = "this system cannot confine a process, so nothing was run; grade on Linux, in WSL, or on macOS."
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",  # malloc returns large blocks at once, so that the peak means something
}  # fmt: skip


@dataclass
class Solution:
    """The source of a solution, its limits, and what its attempts have recorded: its output, the sandbox and errors.

    `signatures` maps each required function to its arguments, such as "(comm, task, s)". `settings` are the names of
    the settings that the solution gets, or None for all. An error in the first attempt ends grading. In a later one it
    ends only that attempt and is added to `errors`.
    """

    source: str
    name: str = "solution.py"
    cpu: int = CPU
    memory: int = MEMORY
    limits: Limits = field(default_factory=Limits)
    quota: Quota = field(default_factory=Quota)
    printed: str = ""
    sandbox: dict[str, str] = field(default_factory=dict)
    signatures: dict[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] | None = None
    attempts: int = 0
    errors: list[str] = field(default_factory=list)
    timelines: dict[str, Any] = field(default_factory=dict)
    starts: Callable[[Solution], Attempt] | None = None
    """The factory of attempts; by default Attempt, a process in the sandbox."""

    def attempt(self) -> Attempt:
        """Start a process for the solution and return it as a context manager. Entering it raises SolutionError if the
        solution does not load.
        """
        return (self.starts or Attempt)(self)

    @contextlib.contextmanager
    def ranks(self, count: int) -> Iterator[list[Attempt]]:
        """Start a separate attempt for each of `count` ranks, so that ranks share no variables."""
        with contextlib.ExitStack() as stack:
            attempts = [self.attempt() for _ in range(count)]
            for attempt in attempts:
                stack.callback(attempt.close)
            for attempt in attempts:
                attempt.__enter__()
            stack.push(attempts[0])  # a failure in any of them is reported once
            yield attempts


class Attempt:
    """A process that runs the solution (`lessons.grading.sandbox_worker`), with the grader's end of the channel to
    it.
    """

    def __init__(self, solution: Solution):
        if not hasattr(os, "killpg"):
            raise SolutionError(IMPOSSIBLE)
        self.solution, self.first = solution, not solution.attempts
        self.received, self.footprint, self.patience = 0, None, None
        self.folder = tempfile.mkdtemp(prefix="lockstep-check-")
        self.reachable = reachable.python()
        self.sealed = bubblewrap.works(self.reachable)
        self.channel, theirs = socket.socketpair()
        with theirs:
            program = [sys.executable, "-I", "-B", "-u", sandbox_worker.__file__, str(theirs.fileno())]
            options = {
                "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": self.folder,
                "env": ENVIRONMENT, "pass_fds": [theirs.fileno()], "start_new_session": True,
            }  # fmt: skip
            if self.sealed:
                visible = replace(self.reachable, readable=(*self.reachable.readable, *WORKER_FILES, self.folder))
                self.process, self.worker = bubblewrap.start(program, visible, **options)
            else:
                self.process = subprocess.Popen(program, **options)
                self.worker = self.process.pid
        self.deadline = time.monotonic() + START
        self.collector = threading.Thread(target=self._collect_output, daemon=True)
        self.collector.start()

    def __enter__(self) -> Attempt:
        s = self.solution
        try:
            readable, listed = self.reachable.apart()
            self._send({
                "cpu": s.cpu, "memory": s.memory, "readable": None if self.sealed else [*readable, self.folder],
                "listed": list(listed), "unreachable": [str(ROOT), *self._packages()],
            })  # fmt: skip
            s.sandbox = self._receive()["sandbox"]
            self.footprint = Footprint(self.worker)
            self.patience = Patience(s.limits, self.worker)
            self._send((s.name, s.source, s.signatures))
            self._result(self._receive())
            s.attempts += 1
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, _=None, error: BaseException | None = None, *__: Any) -> bool:
        self.close()
        if self.first or not isinstance(error, SolutionError):
            return False
        self.solution.errors.append(str(error))
        return True

    def close(self) -> None:
        """Kill the process and everything it started."""
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.collector.join(5)
        self.channel.close()
        if self.footprint:
            self.footprint.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, function: str, *given: Any) -> Any:
        """Call `function` of the solution with plain values and return its result. For the kinds of values see
        `sandbox_worker.pack`.
        """
        return self._result(self._request("call", function, *given))

    def role(self, function: str) -> Callable[[Any, Any, Any], Any]:
        """Return a program for ranks, (comm, task, s) -> w, that runs `function` of the solution in the sandbox.

        `s` holds an algorithm's settings or is a dict of others. Raise SolutionError if the solution has no such
        function.
        """
        self._result(self._request("find", function))

        def play(comm, task, s) -> Any:
            rank = HostedRank(comm, task, self.solution.quota)
            words = ("play", comm.rank, function, comm.size, task.per_epoch, self.settings_for_solution(s))
            while True:
                reply = self._request(*words)
                if not (isinstance(reply, dict) and "request" in reply):
                    return self._result(reply)
                words = ("go on", comm.rank, rank.do(reply["request"]))

        return play

    def settings_for_solution(self, s: Any) -> dict[str, Any]:
        """Return the settings in `s` that the solution uses. `s` holds an algorithm's settings or is a dict of
        others.
        """
        settings = s if isinstance(s, dict) else s.model_dump()
        names = self.solution.settings or settings
        return {name: settings[name] for name in names if name in settings}

    def server_program(self, probe: Any, trainer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        """Return a program for all ranks. It runs the solution's `server` on rank 0, and `trainer(comm, task)` on the
        others.

        The arguments of `server` are what `probe.wrap(comm, task, s)` returns.
        """
        serve = self.role("server")

        def worker(comm, task, s) -> Any:
            return serve(*probe.wrap(comm, task, s)) if comm.rank == 0 else trainer(comm, task)

        return worker

    def run(self, worker: Callable[[Any, Any, Any], Any], beside: Run | None = None, **values: Any) -> Run:
        """Run the experiment with `worker` in place of the algorithm's own, and return the Run. Raise SolutionError if
        it fails.

        `values` are the settings of the experiment. `beside` is the textbook's run: if it is given, the timelines of
        both runs are kept for the report, even if this run fails.
        """
        experiment = Experiment.of(values)
        self.solution.quota = Quota()
        try:
            done = run(experiment, worker_override=worker)
        except ValueError as error:  # such as a rank that does not exist
            raise SolutionError(str(error)) from None
        if beside:
            runs = {YOURS: done, TEXTBOOK: beside}
            self.solution.timelines = {name: timelines.plain(one.trace) for name, one in runs.items()}
        if done.status == "failed":
            told = deadlock(done) or failure(done.error.replace(f"{SolutionError.__name__}: ", ""))
            raise SolutionError(crash(values) + told)
        return done

    def peak_memory(self) -> float | None:
        """Return the solution's peak memory in bytes, without the interpreter's memory.

        It is None if it cannot be measured, and infinity if the process ended before it could be measured.
        """
        return self.footprint.peak() if self.footprint else None

    def _request(self, *words: Any) -> Any:
        self._send(words)
        return self._receive()

    def _result(self, reply: Any) -> Any:
        if not isinstance(reply, dict) or "result" not in reply:
            raised = reply.get("raised") if isinstance(reply, dict) else None
            raise SolutionError(str(raised or "it returned nothing")[:600])
        return reply["result"]

    def _send(self, value: Any) -> None:
        try:
            for part in sandbox_worker.pack(value):
                while len(part):
                    part = part[self._patiently(lambda part=part: self.channel.send(part)) :]
        except OSError:
            raise SolutionError(self._exit_reason()) from None

    def _receive(self) -> Any:
        def receive(rest: memoryview) -> int:
            got = self._patiently(lambda: self.channel.recv_into(rest))
            self.received += got
            if self.received > SENT:
                raise SolutionError(f"it sent more than {SENT // 10**6} MB.")
            return got

        try:
            value = sandbox_worker.read_frame(receive)
        except (EOFError, OSError):
            raise SolutionError(self._exit_reason()) from None
        except ValueError as error:
            raise SolutionError(f"its return value cannot be read: {error}.") from None
        if self.patience:
            self.patience.heard()
        if self.footprint:
            self.footprint.look()
        return value

    def _patiently(self, transfer: Callable[[], int]) -> int:
        """Wait until the channel is ready, call `transfer`, and return its result. Raise SolutionError if the wait is
        too long.
        """
        while True:
            self.channel.settimeout(LOOK)
            began = time.perf_counter()
            try:
                return transfer()
            except TimeoutError:
                if not self.patience and time.monotonic() > self.deadline:
                    raise SolutionError(f"the sandbox did not start within {START:g} s.") from None
            finally:
                self._waited(time.perf_counter() - began)

    def _waited(self, seconds: float) -> None:
        try:
            if self.patience:
                self.patience.wait(seconds)
        except Exhausted as limit:
            raise SolutionError(str(limit)) from None

    def _exit_reason(self) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        code = self.process.returncode
        if self.sealed and code and code > 128:
            code = 128 - code  # how bwrap reports a signal
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return f"it used more than {self.solution.cpu} s of CPU time; is there an endless loop?"
        if code is not None and code < 0:
            return f"its process was ended by {signal.Signals(-code).name}."
        return f"it ended its own process with code {code}." if code is not None else "it closed the channel."

    @staticmethod
    def _packages() -> list[str]:
        """Return the folders of installed packages, which solutions must not import from."""
        return [place for place in sys.path if Path(place).name in reachable.PACKAGES]

    def _collect_output(self) -> None:
        """Keep the first PRINTS characters of the solution's output, and discard the rest."""
        with self.process.stdout as pipe:
            while chunk := pipe.read1(1 << 16):
                rest = PRINTS - len(self.solution.printed)
                if rest > 0:
                    self.solution.printed += chunk.decode(errors="replace")[:rest]
