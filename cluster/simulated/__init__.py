"""The simulated cluster: one process, virtual time, every rank a greenlet.

Arithmetic is real, only the clock is simulated. A rank runs plain blocking code and has its own time: a kernel
advances it by the kernel's price on the rank's device, a message by the time of the link it takes.

    event_queue.py        the heap of (time, serial, event), and the clock
    ports.py              network ports, the route between two ranks
    priority_queue.py     messages with a priority that wait for ports
    mailbox.py            messages: on their way, and waiting to be received
    actor.py              a process with its own time
    rank.py               an actor that runs the program; the meter of its kernels
    failures.py           crashes, how other ranks learn of them, restarts
    simulation.py         one run: all of the above, progress and errors

    comm.py               the Comm contract; handles.py has its non-blocking operations
    restart.py            the same where ranks restart: the incarnation to which a message goes
    memory.py             shared memory: who overwrites whom

    compiled_collectives.py   collectives whose messages a compiled loop times: ring, reduce-scatter, barrier
    collective_program.py     what each rank does in one of them, written down once
    compiled_loop.py          the tables of the loop, and its place in the event queue
    compiled_events.py        the loop
    fused_collectives.py      operations of a whole group computed once: the fast all-reduce, split
    ring_recurrence.py        the sums and times of a ring all-reduce
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cluster.devices import DEVICES, Device
from cluster.event_log import EventLog, Outcome
from cluster.faults import NONE, Faults
from cluster.network import NETWORKS, Network
from cluster.simulated.simulation import Simulation


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
    place: str = "cpu",
) -> Outcome:
    """Run `program(comm)` on `size` ranks and return their results and event logs.

    `collective` selects the all-reduce. "fast" is the ring, computed at once for all ranks where they wait for the sum,
    and sent message by message where they continue meanwhile (`async_op`), so that sums share their ports. "stream"
    computes all sums at once, each after the one before it, as on one stream of a GPU. The others send every message
    (`cluster.collectives.ALL_REDUCE`). `on_progress(event_logs, seconds)` is called a few times per second of
    real time; `stop`, an Event or a function, ends the run early. `place` is where the ranks' arrays are: on a GPU,
    "cuda:0", all of them share it, and every sum is sent message by message. Errors of the run are not raised: they
    are the Outcome's `error`. Raises ValueError for an unknown collective.
    """
    return Simulation(size, network, device, faults, collective, on_progress, stop, place).run(program)
