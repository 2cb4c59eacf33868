"""A script that starts its own ranks, with mp.spawn or mp.Process. It runs once; the processes it starts are ranks."""

from __future__ import annotations

import contextlib
import multiprocessing
import queue
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import CodeType, ModuleType
from typing import Any

import torch
import torch.multiprocessing as mp

from cluster.comm import Cancelled, ClusterError, RankFailed
from cluster.real.signals import interrupt_at_once
from cluster.torch.launch import Recorded, run
from cluster.torch.machines import SimulatedMachines
from cluster.torch.process import current, error_line, script_line, this
from cluster.torch.refusals import PROCESSES, refuse_inside
from cluster.torch.replaced import replace_names


class RanksFailed(BaseException):
    """Raised where a script waits for ranks that failed, to end the script. Not an Exception, so that no script catches
    it.
    """


class Launcher:
    """The process that starts the ranks. `options` are those of `launch.run`."""

    def __init__(self, module: ModuleType, code: CodeType, machines: SimulatedMachines, options: dict[str, Any]):
        self._module, self._code, self._machines, self._options = module, code, machines, options
        self._recorded: list[Recorded] = []
        self._started: list[Started] = []

    def run(self) -> Recorded:
        """Run the script and return what it produced. Raise ValueError if it starts no ranks after all, RankFailed if
        the script itself fails.
        """
        main, name = sys.modules["__main__"], self._module.__file__
        sys.modules["__main__"] = self._module
        try:
            with interrupt_at_once(), self._in_place(), contextlib.suppress(SystemExit, RanksFailed):
                exec(self._code, self._module.__dict__)
                self.run_started()
        except (ClusterError, MemoryError):
            raise
        except KeyboardInterrupt as stop:
            raise Cancelled(f"cancelled outside its ranks{_where(stop)}") from None
        except Exception as error:
            failure = f"{name} failed outside its ranks{_where(error)}: {type(error).__name__}: {error}"
            raise RankFailed(failure, -1) from error
        finally:
            sys.modules["__main__"] = main
        if not self._recorded:
            raise ValueError(
                f"{name} contains a call of mp.spawn or mp.Process, but ended without starting any ranks; make sure"
                " that the script reaches the call, or remove it: a script without one runs once per rank."
            )
        recorded = self._recorded[-1]
        size = len(recorded.outcome.results)
        if size != self._machines.ranks:
            note = f"the script itself starts {size} ranks, not the {self._machines.ranks} requested"
            recorded.outcome.notes = (note, *recorded.outcome.notes)
        return recorded

    @contextlib.contextmanager
    def _in_place(self) -> Iterator[None]:
        def make_queue(*_: Any) -> SharedQueue:
            return SharedQueue(self)

        spawn = refuse_inside("starts processes", PROCESSES, self._spawn)
        names = {
            "Process": refuse_inside("starts a process", PROCESSES, self._process),
            "Queue": make_queue,
            "SimpleQueue": make_queue,
            "JoinableQueue": make_queue,
            "Manager": lambda: SharedObjects(make_queue),
            "get_context": lambda *_: mp,
            "set_start_method": lambda *_, **__: None,
        }
        with (
            replace_names(multiprocessing, **names),
            replace_names(mp, spawn=spawn, start_processes=spawn, **names),
            replace_names(torch.cuda, device_count=lambda: self._machines.ranks),  # the ranks that a script will start
        ):
            yield

    def _spawn(self, fn: Callable, args: tuple = (), nprocs: int = 1, *_: Any, **__: Any) -> None:
        self._run([(fn, (rank, *args), {}) for rank in range(nprocs)])

    def _process(
        self, group: Any = None, target: Any = None, name: Any = None, args: tuple = (), kwargs: Any = None, **_: Any
    ) -> Started:
        return Started(self, target, tuple(args), dict(kwargs or {}))

    def start(self, process: Started) -> None:
        self._started.append(process)

    def run_started(self) -> None:
        """Run all started processes as ranks. This is called when the script first waits for one of them."""
        if self._started:
            calls = [(one.target, one.arguments, one.options) for one in self._started]
            self._started = []
            self._run(calls)

    def _run(self, calls: list[tuple[Callable, tuple, dict]]) -> None:
        def program() -> Any:
            function, arguments, options = calls[this().comm.rank]
            return function(*arguments, **options)

        machines = replace(self._machines, ranks=len(calls))
        recorded = run(program, machines, main=lambda: self._module, **self._options)
        self._recorded.append(recorded)
        if recorded.outcome.error:
            raise RanksFailed


def _where(error: BaseException) -> str:
    line = error_line(error)
    return f" ({line})" * bool(line)


@dataclass
class Started:
    """The return value of mp.Process: a rank that has not started yet."""

    launcher: Launcher
    target: Callable
    arguments: tuple
    options: dict[str, Any] = field(default_factory=dict)
    exitcode = 0
    daemon = False

    def start(self) -> None:
        self.launcher.start(self)

    def join(self, timeout: float | None = None) -> None:
        self.launcher.run_started()

    def is_alive(self) -> bool:
        return False


class SharedQueue(queue.SimpleQueue):
    """A queue between the ranks and the script that starts them."""

    def __init__(self, launcher: Launcher):
        super().__init__()
        self._launcher = launcher

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """Return the next value. If the script itself calls this, first run the ranks that it has started.

        If the queue is empty, raise ClusterError with `block`, since a real process would wait, else queue.Empty.
        """
        if not current():
            self._launcher.run_started()
        try:
            return super().get_nowait()
        except queue.Empty:
            if not block:
                raise
        at = script_line()
        raise ClusterError(
            f"a queue is empty{f' ({at})' * bool(at)}: waiting for another rank at a queue is not simulated; use send "
            "and recv."
        )

    def join(self) -> None:
        self._launcher.run_started()

    def task_done(self) -> None:
        """Do nothing: no process waits for the tasks of a queue."""

    close = join_thread = cancel_join_thread = task_done


class SharedObjects:
    """The return value of mp.Manager(). Ranks share memory, so its objects are ordinary ones."""

    dict, list = dict, list

    def __init__(self, make_queue: Callable[[], SharedQueue]):
        self.Queue = make_queue

    def __enter__(self) -> SharedObjects:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there is no process to end."""

    def shutdown(self) -> None:
        """Do nothing: there is no process to end."""
