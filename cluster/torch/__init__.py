"""Unmodified torch.distributed programs on the simulated cluster: real numbers, virtual time.

    from cluster.torch import simulate

    outcome = simulate(train, ranks=8, network="1GbE")        # a function, or the path of a script
    outcome.results, outcome.summary.seconds, outcome.trace

A rank is a thread of this process, and one of them runs at a time (`cluster/strands/threads.py`).

    process_state.py  per-process state of which each rank needs its own copy
    process.py        the process that a rank's script believes it runs in; environment.py what it gets from its system
    world.py          torch.distributed of each rank: groups, rendezvous, losses, steps; store.py is the store
    logged_values.py  values that a script logs
    refusals.py       what is not simulated

    group.py          the process group; collectives.py is what each collective computes, meeting.py one in progress
    work.py           the object with which a rank waits for an operation; futures.py the same with callbacks
    patterns.py       the messages of each collective; durations.py when they arrive
    sums.py           reductions, in the order of gloo
    handshake.py      sends that wait for their receivers
    streams.py        virtual streams, for overlap
    schedules.py      schedules of pipelines, completed once for all ranks
    pricing.py        what a script's work costs; operations.py describes torch operations,
                      python_calls.py counts Python calls
    activity.py       what a rank is doing, in words; memory.py is what it holds

    machines.py       what a script runs on
    launch.py         one run; watchdog.py monitors it, endings.py says how a rank ended
    script.py         runs a file; launcher.py one that starts its ranks itself; opened_files.py the files it reads
    summary.py        a run in numbers
"""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cluster.devices import Device
from cluster.event_log import EventLog
from cluster.faults import NONE, Faults
from cluster.network import Network
from cluster.script_summary import Summary
from cluster.torch.launch import Recorded, run, warn_of_version
from cluster.torch.machines import SimulatedMachines
from cluster.torch.script import run_script
from cluster.torch.summary import summarize
from tracing import Trace

__all__ = ["Simulated", "SimulatedMachines", "Summary", "simulate"]


@dataclass(frozen=True)
class Simulated:
    """The results of a simulated program.

    `results` has what each rank returned or, for a script, the rank's global variables.
    """

    recorded: Recorded

    def __repr__(self) -> str:
        s = self.summary
        waits = f", waiting up to {s.waiting_share:.1%} of it" if s.wait.any() else ""
        return f"<{s.ranks} ranks, {s.steps} steps, {s.seconds:.4g} s of virtual time{waits}>"

    @property
    def results(self) -> list[Any]:
        return self.recorded.outcome.results

    @property
    def event_logs(self) -> list[EventLog]:
        return self.recorded.outcome.event_logs

    @property
    def notes(self) -> tuple[str, ...]:
        return self.recorded.outcome.notes

    @property
    def output(self) -> list[tuple[int, str]]:
        """The lines that ranks printed, as (rank, line)."""
        return self.recorded.printed

    @cached_property
    def trace(self) -> Trace:
        return self.recorded.outcome.trace()

    @cached_property
    def summary(self) -> Summary:
        return summarize(self.recorded)


def simulate(
    program: Callable[..., Any] | str | Path,
    ranks: int,
    *,
    args: Sequence[Any] = (),
    network: str | Network = "10GbE",
    device: str | Device = "laptop",
    faults: Faults = NONE,
    eager: int = 0,
    clock: str = "roofline",
    steps: float = float("inf"),
    on_line: Callable[[int, str], None] | None = None,
) -> Simulated:
    """Run `program` on `ranks` simulated machines. Return what they computed, and when.

    `program` is a function, called as `program(*args)` on every rank, or a script, with `args` as its command line.
    Inside it, torch.distributed works as under torchrun: `dist.init_process_group()` takes any backend. `on_line(rank,
    line)` gets what ranks print; without it, lines are printed. The other arguments are those of `SimulatedMachines`.
    Raise the error that ended the run: a Deadlock, a RankFailed caused by the program's own exception, or another
    ClusterError.
    """
    machines = SimulatedMachines(ranks, network, device, faults, eager, clock, steps)
    if warning := warn_of_version():
        warnings.warn(warning, stacklevel=2)
    if callable(program):
        recorded = run(lambda: program(*args), machines, on_line=on_line)
    else:
        recorded = run_script(program, machines, list(map(str, args)), on_line=on_line)
    if recorded.outcome.error:
        raise recorded.outcome.error
    return Simulated(recorded)
