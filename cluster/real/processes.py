"""Every rank is a process of this computer, and the clock is real.

The parent starts the ranks through a fork server with all modules loaded, and collects their reports a few times a
second. It ends the run when a rank fails, is deadlocked, or cannot continue without a lost rank. It reports which rank,
at what step and why, and leaves no process behind (`cluster.real.supervisor`). A rank ends when its parent ends
(`cluster.real.child`).

Where Python has no fork server (Windows), ranks are spawned, which takes seconds instead of a tenth of a second. A
script that runs its own functions must start runs under `if __name__ == "__main__":`, as with any multiprocessing.
"""

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

from cluster.collectives import check_name
from cluster.devices import Device
from cluster.event_log import EventLog, Outcome
from cluster.faults import NONE, Faults
from cluster.network import Network
from cluster.real.child import main
from cluster.real.rank import loopback
from cluster.real.restart import Past
from cluster.real.returns import Returns
from cluster.real.signals import defer_signals, stop_signals
from cluster.real.supervisor import Supervisor
from kernels import ONE_THREAD

BACKENDS = ("gloo", "sockets", "nccl")
METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
PRELOADED = ["cluster.real.orphan", "cluster.real.preload"]  # imported once by the fork server, in this order
ROOT = Path(__file__).resolve().parents[2]


def run(
    program: Callable[[Any], Any],
    size: int,
    *,
    backend: str = "gloo",
    collective: str = "fast",
    network: Network | None = None,
    device: Device | None = None,
    faults: Faults = NONE,
    timeout: float = 60.0,
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    on_phase: Callable[[str], None] | None = None,
    stop: Any = None,
    warm_up: Callable[[str], Any] | None = None,
    restart: Callable[[EventLog], Callable[[Any], Any]] | None = None,
) -> Outcome:
    """Run `program(comm)` in `size` processes and return their results and event logs.

    `program` must be picklable, i.e. a function of a module or a partial of one, and so must its results. `backend`
    selects the all-reduce: "sockets" is a ring over our own links and does not load torch; "gloo" is the same for small
    vectors, but sums large ones in shared memory and, between computers, with torch.distributed; "nccl" is
    torch.distributed on GPUs, rank r on cuda:r, and ranks that share a GPU sum over our own links. `collective` selects
    an algorithm of `cluster.collectives.ALL_REDUCE` over our own links instead.
    `network`, `device` and `faults`, which `cluster.simulated.run` simulates, are emulated here in real time. Over an
    emulated network all messages use our own links.
    A rank that waits longer than `timeout` seconds ends the run as a deadlock; most deadlocks are detected at once.
    `on_progress(event_logs, seconds)` is called a few times a second, and `on_phase(phase)` before the run's clock
    starts: "loading torch", "warming up, 1 of 2 ready", "connecting". `stop`, an Event or a function, ends the run
    early. So does Ctrl-C if it raises KeyboardInterrupt: in the main thread, unless SIGINT is ignored, as in background
    jobs of a shell. A second Ctrl-C is raised at once. `warm_up(place)` is called on every rank before the clock
    starts, to load data and to compile for its `place`, "cpu" or "cuda:0".
    A rank of `faults.back` that has crashed restarts as a new process, which runs `restart(event_log)`, given the event
    log of its predecessor, or else `program` again. torch.distributed would not accept it again, so in such a run
    "gloo" means "sockets".
    Errors of a rank are not raised: they are the Outcome's `error`. Raise ValueError for invalid arguments.
    """
    if size < 1:
        raise ValueError(f"{size} ranks cannot run; use 1 or more.")
    if backend not in BACKENDS:
        raise ValueError(f"there is no backend {backend!r}; use one of {', '.join(BACKENDS)}.")
    if faults.back and backend == "nccl":
        raise ValueError("backend nccl cannot restart ranks; use gloo or sockets.")
    options = {"backend": backend, "collective": check_name(collective), "timeout": timeout}
    options |= {"network": network, "device": device, "faults": faults}
    if faults.back:
        away = max(back - faults.crash.get(rank, 0.0) for rank, back in faults.back.items())
        options |= {"backend": "sockets", "timeout": timeout + away, "restarts": True}
    try:
        work = pickle.dumps((program, warm_up))
    except Exception as error:
        raise ValueError(
            f"the program cannot be pickled for other processes ({error}); define it at the top level of a module."
        ) from None
    prepare(program, backend)
    start = partial(_start, size=size, options=options)
    if on_phase:  # the fork server answers once it has loaded all modules
        on_phase("loading torch" if METHOD == "forkserver" and backend != "sockets" else "loading the program")

    def again(rank: int, event_log: EventLog, past: Past) -> tuple[Any, Connection]:
        work = pickle.dumps((restart(event_log) if restart else program, warm_up))
        return _start(rank, size, options | {"past": past, "faults": faults.after_restart(rank)}, work)

    return Supervisor(size, on_progress, stop, backend == "nccl", Returns(faults.back, again), on_phase).run(
        partial(start, work=work)
    )


def prepare(program: Callable | None = None, backend: str = "gloo") -> None:
    """Start the fork server without waiting for it, so that later runs start sooner.

    All runs share one server. It imports what every rank needs, the module of `program`, and torch if `backend` needs
    it. If a later run needs more, its ranks import that themselves.
    """
    if METHOD == "forkserver":
        from multiprocessing import resource_tracker
        from multiprocessing.forkserver import ensure_running

        module = getattr(getattr(program, "func", program), "__module__", None)  # also for a partial
        torch = None if backend == "sockets" else "torch.distributed"
        wanted = [name for name in (*PRELOADED, torch, module) if name not in (None, "__main__")]
        multiprocessing.set_forkserver_preload(wanted)
        with defer_signals(*stop_signals()):  # a terminal sends these signals to all processes
            resource_tracker.ensure_running()  # which unblocks two of them, and the server would inherit that
        with _environment(), defer_signals(*stop_signals()):
            ensure_running()


def _start(rank: int, size: int, options: dict[str, Any], work: bytes) -> tuple[Any, Connection]:
    """Start a process as rank `rank`. Return the process and the pipe to it."""
    context: Any = multiprocessing.get_context(METHOD)  # its Process is that of the method
    ours, theirs = context.Pipe()
    process = context.Process(target=main, args=(rank, size, theirs, work, options), name=f"rank {rank}", daemon=True)
    with _environment(), _main_module(needed=b"__main__" in work):
        process.start()
    theirs.close()
    return process, ours


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """During the block, set the environment variables that NumPy, torch and gloo read in a new process.

    They ask for one thread per rank, and name the network interface.

    Processes started in the block also find our modules first, even if the user's folder has modules of the same name:
    the fork server through the environment, and ranks through the path that multiprocessing copies from this process.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    values = {**dict.fromkeys(ONE_THREAD, "1"), **loopback(), "PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    sys.path.insert(0, str(ROOT))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT))
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextlib.contextmanager
def _main_module(needed: bool) -> Iterator[None]:
    """Prevent a new process from importing this process's script, unless the program is defined in the script.

    The import takes time, and fails for code from a pipe, a notebook or a script without a `__main__` guard.
    """
    script = sys.modules["__main__"]
    if not needed:
        sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script
