"""Grader: run an untrusted solution of an exercise and judge its behaviour.

    report = grade(lessons.chapter("stragglers"), source)      # GradingReport: score, marks, output
    python -m lessons check stragglers my_solution.py

A chapter's `check.py` defines POINTS, the weight of each mark, and `check(solution, seed)`, which yields marks as
(name, whether it is earned, what was observed). The solution acts in an attempt, a process of its own:

    with solution.attempt() as attempt:
        attempt.call("name", 3, vector)                        # a function of plain values
        attempt.run(worker, algorithm="backup", workers=16)    # a run in which `attempt.role("server")` plays a rank

Threat model. The solution's process has limits on time, memory, files and output; on Linux it can neither start a
process nor open a connection, send a signal, write a file, or read ours (`bubblewrap.py` where it works, `sandbox.py`
everywhere; the report says which). Cluster, data, clock, statistics and all expected results stay in the grader's
process, and what the solution returns is parsed as plain data. Seeds are drawn when grading begins. Not covered: a
solution written with knowledge of `check.py`, and systems other than Linux, where only the limits hold. Grade
untrusted solutions on a machine of their own.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import os
import secrets
import shutil
import signal
import site
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from experiments.experiment import Experiment
from experiments.run import run
from experiments.runs.record import Run
from lessons.grading import bubblewrap, sandbox_worker

ROOT = Path(__file__).resolve().parents[2]
CPU, WALL, MEMORY = 30, 60.0, 1_000_000_000  # s, s and bytes of an attempt
PRINTS = 4000  # characters of its output that are kept
SENT = 1_000_000_000  # bytes that it may send in all
LONGEST = 200_000  # characters of a solution
SYSTEM = ("/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null")
WORKER_FILES = [str(ROOT / "lessons" / name) for name in (
    "__init__.py", "grading/__init__.py", "grading/sandbox.py", "grading/sandbox_worker.py"
)]  # fmt: skip
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "65536",  # malloc returns large blocks at once, so that the peak means something
}  # fmt: skip
RANK = {"send", "recv", "recv_any", "poll", "all_reduce", "broadcast", "barrier"}
TASK = {"start", "gradient", "forward", "backward", "report", "measure", "at", "spent"}


class SolutionError(Exception):
    """An error of the solution that ends its grading; the message is a sentence for its author."""


@dataclass(frozen=True)
class Mark:
    """One criterion: the points it is worth, those earned, and what was observed."""

    name: str
    points: int
    earned: int
    observed: str


@dataclass(frozen=True)
class GradingReport:
    """Result of grading. `score` is 0 to 100; `error` is why grading ended early, else "".

    `sandbox` maps what was protected (sandbox.ALL) to the mechanism that did it.
    """

    chapter: str
    score: int
    marks: tuple[Mark, ...]
    seed: int
    seconds: float
    error: str = ""
    printed: str = ""
    sandbox: dict[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


@dataclass
class Solution:
    """Source and limits of a solution; its attempts add what it printed and which sandbox held."""

    source: str
    name: str = "solution.py"
    cpu: int = CPU
    wall: float = WALL
    memory: int = MEMORY
    printed: str = ""
    sandbox: dict[str, str] = field(default_factory=dict)

    def attempt(self) -> Attempt:
        """Return a context manager for a process that runs the solution. SolutionError if it does not load."""
        return Attempt(self)


def grade(chapter, source: str, seed: int | None = None, name: str = "solution.py") -> GradingReport:
    """Judge `source` as a solution of the chapter's exercise. ValueError if the chapter has none."""
    if not chapter.exercise:
        raise ValueError(f"chapter {chapter.name} has no exercise.")
    check = importlib.import_module(f"lessons.{chapter.name}.check")
    seed = secrets.randbelow(2**31) if seed is None else seed
    return judge(check.check, check.POINTS, source, seed, chapter.name, name)


def judge(
    check: Callable[[Solution, int], Iterator[tuple[str, bool, str]]],
    points: dict[str, int],
    source: str,
    seed: int,
    chapter: str = "",
    name: str = "solution.py",
) -> GradingReport:
    """Judge `source` by `check`. A mark that was not reached is not earned."""
    began = time.monotonic()
    solution, seen, error = Solution(source, name), {}, ""
    try:
        if len(source) > LONGEST:
            raise SolutionError(f"the file has {len(source)} characters; at most {LONGEST} are read.")
        for mark, earned, observed in check(solution, seed):
            seen[mark] = bool(earned), observed
    except SolutionError as failure:
        error = str(failure)
    marks = []
    for mark, worth in points.items():
        earned, observed = seen.get(mark, (False, "not reached"))
        marks.append(Mark(mark, worth, worth if earned else 0, observed))
    score = round(100 * sum(mark.earned for mark in marks) / sum(points.values()))
    took = time.monotonic() - began
    return GradingReport(chapter, score, tuple(marks), seed, took, error, solution.printed, solution.sandbox)


@functools.cache
def _readable() -> tuple[str, ...]:
    """Return the paths that Python needs, none of them ours."""
    python = {*sys.path, sys.prefix, sys.base_prefix, *site.getsitepackages()} - {"", str(ROOT)}
    return (*SYSTEM, *(path for path in python if not ROOT.is_relative_to(os.path.abspath(path))))


class Attempt:
    """A process that runs the solution (`lessons.grading.sandbox_worker`), and the grader's end of its channel."""

    def __init__(self, solution: Solution):
        self.solution = solution
        self.received, self.baseline = 0, 0
        self.folder = tempfile.mkdtemp(prefix="lockstep-check-")
        self.sealed = bubblewrap.works(_readable())
        self.channel, theirs = socket.socketpair()
        with theirs:
            program = [sys.executable, "-I", "-B", "-u", sandbox_worker.__file__, str(theirs.fileno())]
            options = {
                "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "cwd": self.folder,
                "env": ENVIRONMENT, "pass_fds": [theirs.fileno()], "start_new_session": True,
            }  # fmt: skip
            if self.sealed:
                visible = [*_readable(), *WORKER_FILES, self.folder]
                self.process, self.worker = bubblewrap.start(program, visible, **options)
            else:
                self.process = subprocess.Popen(program, **options)
                self.worker = self.process.pid
        self.deadline = time.monotonic() + solution.wall
        self.collector = threading.Thread(target=self._collect_output, daemon=True)
        self.collector.start()

    def __enter__(self) -> Attempt:
        s = self.solution
        try:
            readable = None if self.sealed else [*_readable(), self.folder]
            self._send({"cpu": s.cpu, "memory": s.memory, "readable": readable, "root": str(ROOT)})
            s.sandbox = self._receive()["sandbox"]
            self.baseline = self._high_water_mark()
            self._send((s.name, s.source))
            self._result(self._receive())
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: Any) -> None:
        with contextlib.suppress(OSError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.collector.join(5)
        self.channel.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, function: str, *given: Any) -> Any:
        """Return what `function` of the solution returns for these plain values; see `sandbox_worker.pack`."""
        return self._result(self._request("call", function, *given))

    def role(self, function: str) -> Callable[[Any, Any, Any], Any]:
        """Return a program for ranks, (comm, task, s) -> w, that has `function` of the solution run in the sandbox."""

        def play(comm, task, s) -> Any:
            steps = None
            words = ("play", comm.rank, function, comm.size, task.per_epoch, s.model_dump())
            while True:
                reply = self._request(*words)
                if not (isinstance(reply, dict) and "request" in reply):
                    return self._result(reply)
                what, *given = reply["request"]
                if what == "step":
                    steps = steps or task.steps(bool(given[0]))
                    value = next(steps, None)
                elif what in RANK:
                    value = getattr(comm, what)(*given)
                elif what in TASK:
                    value = getattr(task, what)(*given)
                else:
                    raise SolutionError(f"comm and task have no {str(what)[:40]!r}.")
                words = ("go on", comm.rank, list(value) if what == "poll" else value)

        return play

    def server_program(self, probe: Any, trainer: Callable[[Any, Any], Any]) -> Callable[[Any, Any, Any], Any]:
        """Return a program for all ranks: the solution's `server` on rank 0, `trainer(comm, task)` on the others.

        The server gets what `probe.between(comm, task, s)` returns in place of these.
        """
        serve = self.role("server")

        def worker(comm, task, s) -> Any:
            return serve(*probe.between(comm, task, s)) if comm.rank == 0 else trainer(comm, task)

        return worker

    def run(self, worker: Callable[[Any, Any, Any], Any], **values: Any) -> Run:
        """Return the Run of the experiment with these flat values and `worker` in place of the algorithm's own."""
        done = run(Experiment.of(values), worker_override=worker)
        if done.status == "failed":
            raise SolutionError(done.error.replace(f"{SolutionError.__name__}: ", ""))
        return done

    def peak_memory(self) -> int | None:
        """Return peak memory of the solution beyond the interpreter's, in bytes; None where it cannot be measured."""
        return self._high_water_mark() - self.baseline if self.baseline else None

    def _high_water_mark(self) -> int:
        with contextlib.suppress(OSError, StopIteration, ValueError):
            lines = Path(f"/proc/{self.worker}/status").read_text().splitlines()
            return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])
        return 0

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
                self.channel.settimeout(max(0.01, self.deadline - time.monotonic()))
                self.channel.sendall(part)
        except TimeoutError:
            raise SolutionError(self._timeout()) from None
        except OSError:
            raise SolutionError(self._exit_reason()) from None

    def _receive(self) -> Any:
        def receive(rest: memoryview) -> int:
            self.channel.settimeout(max(0.01, self.deadline - time.monotonic()))
            got = self.channel.recv_into(rest)
            self.received += got
            if self.received > SENT:
                raise SolutionError(f"it sent more than {SENT // 10**6} MB.")
            return got

        try:
            return sandbox_worker.read_frame(receive)
        except TimeoutError:
            raise SolutionError(self._timeout()) from None
        except (EOFError, OSError):
            raise SolutionError(self._exit_reason()) from None
        except ValueError as error:
            raise SolutionError(f"what it returned cannot be read: {error}.") from None

    def _timeout(self) -> str:
        return (
            f"no answer within {self.solution.wall:g} s; is there an endless loop, or a receive that no send matches?"
        )

    def _exit_reason(self) -> str:
        """Return why the process has ended, in a sentence."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        code = self.process.returncode
        if self.sealed and code and code > 128:
            code = 128 - code  # how bwrap reports a signal
        if code == -signal.SIGXCPU or (code == -signal.SIGKILL and self.solution.cpu):
            return f"it used more than {self.solution.cpu} s of processor time; is there an endless loop?"
        if code is not None and code < 0:
            return f"its process was ended by {signal.Signals(-code).name}."
        return f"it ended its own process with code {code}." if code is not None else "it closed the channel."

    def _collect_output(self) -> None:
        """Keep the first PRINTS characters of its output, and drain the rest."""
        with self.process.stdout as pipe:
            while chunk := pipe.read1(1 << 16):
                rest = PRINTS - len(self.solution.printed)
                if rest > 0:
                    self.solution.printed += chunk.decode(errors="replace")[:rest]
