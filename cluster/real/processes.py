"""Processes: every rank is a process of this computer, and the clock is real.

The parent starts the ranks through a fork server that has everything loaded, hears from them a few times a second,
and ends the run when one of them fails, waits for ever, or cannot go on without one that is lost: it says which, at
what step and why, and leaves no process behind (`cluster.real.supervisor`). A rank that loses its parent ends itself
(`cluster.real.child`).

Where Python has no fork server (Windows) ranks are started afresh, which takes seconds instead of a tenth. A script
whose own functions are to run starts runs under `if __name__ == "__main__":`, as with any multiprocessing.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Iterator
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from cluster.collectives import known
from cluster.event_log import EventLog, Outcome
from cluster.real.child import main
from cluster.real.rank import loopback
from cluster.real.supervisor import Watch
from kernels import ONE_THREAD

BACKENDS = ("gloo", "sockets", "nccl")
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PRELOADED = ["cluster.real.preload"]  # by the fork server, once for all ranks; who has many programs may add to it
ROOT = Path(__file__).resolve().parents[2]


def run(
    program: Callable[[Any], Any],
    size: int,
    *,
    backend: str = "gloo",
    collective: str = "fast",
    timeout: float = 60.0,
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    stop: Any = None,
    warm_up: Callable[[], Any] | None = None,
) -> Outcome:
    """Run `program(comm)` in `size` processes and give back their results and event logs.

    `program` must be picklable, a function of a module or a partial of one; so must its results. `backend` names who
    sums: "sockets" a ring over our own links, without loading torch; "gloo" the same for what is small and
    torch.distributed for what is large; "nccl" torch.distributed on GPUs, rank r on cuda:r. `collective` names one of
    `cluster.collectives.ALL_REDUCE` to sum by instead, over our own links.
    A rank that waits longer than `timeout` seconds ends the run as a deadlock; most deadlocks are found at once.
    `on_progress(event_logs, seconds)` is called a few times a second; `stop`, an Event or a function, ends the run
    early, and so does Ctrl-C. `warm_up()` is called on every rank before the clock starts: to load data, to compile.
    What goes wrong in a rank does not raise here: it is the Outcome's error.
    """
    if size < 1:
        raise ValueError(f"{size} ranks cannot run; allowed is 1 or more.")
    if backend not in BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; allowed are {', '.join(BACKENDS)}.")
    options = {"backend": backend, "collective": known(collective), "timeout": timeout}
    try:
        work = pickle.dumps((program, warm_up))
    except Exception as error:
        raise ValueError(
            f"the program cannot be sent to other processes ({error}); define it at the top level of a module."
        ) from None
    prepare(program, backend)
    start = partial(_start, size=size, work=work, options=options)
    return Watch(size, on_progress, stop, fragile=backend == "nccl").run(start)


def prepare(program: Callable | None = None, backend: str = "gloo") -> None:
    """Start the fork server and do not wait for it: a run that begins while it loads, or later, starts sooner.

    There is one for all runs. It loads what every rank needs, the module of `program`, and torch if `backend` does;
    what a later run needs beyond that its ranks load themselves.
    """
    if METHOD == "forkserver":
        from multiprocessing.forkserver import ensure_running

        module = getattr(getattr(program, "func", program), "__module__", None)  # also of a partial
        torch = None if backend == "sockets" else "torch.distributed"
        wanted = [name for name in (*PRELOADED, torch, module) if name not in (None, "__main__")]
        multiprocessing.set_forkserver_preload(wanted)
        with _environment():
            ensure_running()


def _start(rank: int, size: int, work: bytes, options: dict[str, Any]) -> tuple[Any, Connection]:
    """A process that is rank `rank`, and the pipe to it."""
    context = multiprocessing.get_context(METHOD)
    ours, theirs = context.Pipe()
    process = context.Process(target=main, args=(rank, size, theirs, work, options), name=f"rank {rank}", daemon=True)
    with _environment(), _main_module(needed=b"__main__" in work):
        process.start()
    theirs.close()
    return process, ours


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
