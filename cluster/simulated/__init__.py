"""The simulated cluster: one process with virtual time, in which every rank is a strand (`cluster/strands`).

The arithmetic is real; only the clock is simulated. A rank runs plain blocking code and has its own time: a kernel
advances it by the kernel's price on the rank's device, a message by the time it takes on its link.

    event_queue.py        the heap of (time, serial, event), and the clock
    ports.py              network ports, and the route between two ranks
    priority_queue.py     messages with a priority that wait for ports
    mailbox.py            messages in flight, and messages waiting to be received
    actor.py              a process with its own time
    rank.py               an actor that runs the program, and the meter of its kernels
    failures.py           crashes, how other ranks learn of them, restarts
    simulation.py         one run: all of the above, progress and errors

    comm.py               the Comm contract; handles.py has its non-blocking operations
    restart.py            the same if ranks restart: the incarnation to which a message goes
    memory.py             shared memory: who overwrites whom

    compiled_collectives.py   collectives whose messages a compiled loop times: ring, reduce-scatter, barrier
    collective_program.py     the operations of each rank in one of them, recorded once
    compiled_loop.py          the tables of the loop, and its place in the event queue
    compiled_events.py        the loop
    fused_collectives.py      operations computed once for a whole group: the fast all-reduce, split
    ring_recurrence.py        the sums and times of a ring all-reduce
"""

from collections.abc import Callable
from typing import Any

from cluster.devices import DEVICES, Device
from cluster.event_log import EventLog, Outcome
from cluster.faults import NONE, Faults
from cluster.network import NETWORKS, Network
from cluster.simulated.simulation import Simulation
from cluster.strands import FASTEST


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
    strand: Any = FASTEST,
) -> Outcome:
    """Run `program(comm)` on `size` ranks and return their results and event logs.

    `collective` selects the all-reduce. "fast" is the ring: if the ranks wait for the sum, it is computed once for all
    of them; if they continue in the meantime (`async_op`), it is sent message by message, so that sums share their
    ports. "stream" computes every sum once for all ranks, one sum after the other, as on one stream of a GPU. All
    others send every message (`cluster.collectives.ALL_REDUCE`). `on_progress(event_logs, seconds)` is called a few
    times per second of real time; `stop`, an Event or a function, ends the run early. `place` is where the ranks'
    arrays are: with "cuda:0" all ranks share that GPU, and every sum is sent message by message. `strand` is the type
    of strand that runs a rank and is suspended while it waits (`cluster.strands.Strand`). Errors of the run are not
    raised: they are the Outcome's `error`. Raise ValueError for an unknown collective.
    """
    return Simulation(size, network, device, faults, collective, on_progress, stop, place, strand).run(program)
