"""The simulated cluster: one process, virtual time, every rank a greenlet.

Arithmetic is real, only the clock is simulated. A rank runs plain blocking code and keeps its own time: a kernel
moves it on by the kernel's price on the rank's device, a message by the link it takes.

    events.py   the heap of what is still to come, network ports, and who is stuck
    rank.py     one rank: its time, its mailbox, its disturbances; the meter of its kernels
    queue.py    what waits for ports and may be overtaken there: sums with a priority
    comm.py     the Comm contract on top of all this
    lives.py    the same where a lost rank comes back: which life of it a message goes to
    meeting.py  what all ranks of a group do at one moment: the fast all-reduce, split
    memory.py   memory that all ranks of a group see, and who overwrites whom in it
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.devices import DEVICES, Device
from cluster.event_log import EventLog, Outcome
from cluster.faults import NONE, Faults
from cluster.network import NETWORKS, Network
from cluster.simulated.events import Simulation


def run(
    program: Callable[[Any], Any],
    size: int,
    *,
    network: Network = NETWORKS["10GbE"],
    device: Device = DEVICES["laptop"],
    faults: Faults = NONE,
    collective: str = "fast",
    on_progress: Callable[[list[EventLog], float], None] | None = None,
    stop: Any = None,
) -> Outcome:
    """Run `program(comm)` on `size` ranks and give back their results and event logs.

    `collective` names how all_reduce is done: "fast" computes the ring's result and times at once, the others send
    every message (`cluster.collectives.ALL_REDUCE`). `on_progress(event_logs, seconds)` is called a few times a second
    of real time; `stop`, an Event or a function, ends the run early. Errors do not raise: they are in the Outcome.
    """
    return Simulation(size, network, device, faults, collective, on_progress, stop).run(program)
