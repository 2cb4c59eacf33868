"""One run of ranks that use torch: give each rank its own per-process state, and restore the original afterwards.

The run has its own thread, and the caller's thread waits for it: an interrupt that reached a rank's thread would make
two threads run at once. Ctrl-C ends the run as `stop` does. A watchdog checks that the run makes progress.
"""

import contextlib
import random
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import torch._dynamo  # torch imports these at first use; inside a rank they would take its state for everyone's

from cluster.comm import Deadlock
from cluster.event_log import EventLog, Outcome
from cluster.script_summary import Waited
from cluster.simulated.comm import SimulatedComm
from cluster.simulated.simulation import Simulation
from cluster.strands.threads import BATON, ThreadStrand
from cluster.torch.activity import named_modules
from cluster.torch.deadlocks import explain
from cluster.torch.endings import failed_threads, live
from cluster.torch.environment import own_environment
from cluster.torch.futures import call_back
from cluster.torch.logged_values import log_line
from cluster.torch.machines import CLOCKS, SimulatedMachines
from cluster.torch.process import Process, SharedState, become
from cluster.torch.process_state import OWN, ProcessState, own_random
from cluster.torch.refusals import refusals
from cluster.torch.schedules import shared_schedules
from cluster.torch.store import Values
from cluster.torch.streams import virtual_streams
from cluster.torch.watchdog import watch
from cluster.torch.world import own_world

TRIED = "2.13"
"""The version of torch with which this was tested. It relies on non-public names of torch."""


def warn_of_version() -> str:
    """Return a warning if this version of torch was not tested, else ""."""
    if torch.__version__.startswith(f"{TRIED}."):
        return ""
    return (
        f"torch is {torch.__version__}, but only {TRIED} was tested here; scripts may fail, or their times may differ"
    )


@dataclass
class Recorded:
    """What a run produced: its outcome, who waited for whom, and the lines printed, as (rank, line).

    `files` are the files in the script's folder that it imported or read.
    """

    outcome: Outcome
    waits: list[Waited]
    printed: list[tuple[int, str]]
    files: tuple[str, ...] = ()


_one_run = threading.Lock()


def run(
    program: Callable[[], Any],
    machines: SimulatedMachines,
    *,
    main: Callable[[], ModuleType] | None = None,
    on_line: Callable[[int, str], None] | None = None,
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> Recorded:
    """Run `program()` on every rank of `machines`, and return what the run produced. Its errors are in the outcome.

    `main()` makes each rank's __main__. `on_line(rank, line)` is called with each line that ranks print; without it,
    lines are printed after the rank's number. `on_progress` and `stop` are those of `cluster.simulated.run`. These
    three are called in the caller's thread. Raise Blocked if a rank blocks in C++, after which the process can run no
    more ranks, and ValueError inside another run.
    """
    if not _one_run.acquire(blocking=False):
        raise ValueError("another script is being simulated in this process; wait for it, or start a new process.")
    interrupted, done = threading.Event(), threading.Event()
    ended: list[Recorded | BaseException] = []
    lines: deque[tuple[int, str]] = deque()
    latest: deque[tuple[Any, ...]] = deque(maxlen=1)

    def whole() -> None:
        BATON.holder = None  # so that this thread is the hub
        try:
            ended.append(
                _run(program, machines, main, lines, lambda *progress: latest.append(progress), interrupted.is_set)
            )
        except BaseException as error:
            ended.append(error)
        _one_run.release()
        done.set()

    def look() -> None:
        while lines:
            (on_line or _print_line)(*lines.popleft())
        if on_progress and latest:
            on_progress(*latest.pop())
        if stop and stop():
            interrupted.set()

    threading.Thread(target=whole, name="hub", daemon=True).start()
    watch(done, interrupted, machines.patience, look)
    look()
    result = ended[0]
    if isinstance(result, BaseException):
        raise result
    return result


def _print_line(rank: int, line: str) -> None:
    print(f"rank {rank}: {line}")


def _run(
    program: Callable,
    machines: SimulatedMachines,
    main: Callable | None,
    lines: deque,
    on_progress: Any,
    stop: Callable[[], bool],
) -> Recorded:
    ThreadStrand.getcurrent().state = ProcessState()
    sim = Simulation(
        *(
            machines.ranks,
            machines.links,
            machines.processor,
            machines.faults,
            "fast",
            on_progress,
            stop,
            "cpu",
            ThreadStrand,
        )
    )
    printed: list[tuple[int, str]] = []

    def keep(rank: int, line: str) -> None:
        printed.append((rank, line))
        lines.append((rank, line))
        log_line(line)

    shared = SharedState(sim, machines.eager, Values(sim), keep, steps=machines.steps)
    processes: dict[int, Process] = {}

    def body(comm: SimulatedComm) -> Any:
        number = comm.rank
        ThreadStrand.getcurrent().state = ProcessState(number, main() if main else None)
        ThreadStrand.getcurrent().state.put_back()
        OWN.random = random.Random(number)
        pricer = CLOCKS[machines.clock](comm.owner)
        process = processes[number] = Process(comm, shared, pricer, machines.environment(number))
        become(process)
        pricer.poll = lambda: call_back(process)
        return live(program, process, stop)

    with _in_place(), failed_threads(shared.notes):
        outcome = sim.run(body)
        if isinstance(outcome.error, Deadlock):
            early = any(process.has_enough for process in processes.values())
            outcome.error = None if early else explain(outcome.error, sim, processes)
    outcome.notes = (*outcome.notes, *sorted(shared.notes))
    return Recorded(outcome, shared.waits, printed)


@contextlib.contextmanager
def _in_place() -> Iterator[None]:
    """During a run, replace shared state by each rank's own, and use one thread per rank, as under torchrun."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with (
            own_environment(),
            own_world(),
            virtual_streams(),
            own_random(),
            named_modules(),
            shared_schedules(),
            refusals(),
        ):
            yield
    finally:
        torch.set_num_threads(threads)
