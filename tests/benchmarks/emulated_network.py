"""How precisely an emulated network delivers. `python -m tests.benchmarks.emulated_network`

On quiet cores and on busy ones two real ranks send a message to and fro; half of a round trip, the median, is held
against what the simulated cluster computes for the same network. A burner is a process that never waits, one for each
core.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import math  # noqa: E402
import multiprocessing  # noqa: E402
import os  # noqa: E402
from contextlib import contextmanager  # noqa: E402
from functools import partial  # noqa: E402

import numpy as np  # noqa: E402

from cluster import simulated  # noqa: E402
from cluster.network import NETWORKS, Link, Network  # noqa: E402
from cluster.real import processes  # noqa: E402

WAVES = Link(1e-3, math.inf)
CASES = {
    "8 bytes over a latency of 1 ms": (1, Network(WAVES, WAVES)),
    "8 bytes over 1GbE": (1, NETWORKS["1GbE"]),
    "1 MB over 1GbE": (1 << 17, NETWORKS["1GbE"]),
}
TRIPS = 101
SHARE, LEAST = 0.05, 1e-4  # by which share, or by how many seconds, a message may be late or early


def to_and_fro(comm, length: int) -> list[float]:
    """Return the seconds of half a round trip, for each one but the first."""
    x, other, ends = np.zeros(length), 1 - comm.rank, []
    comm.barrier()
    for _ in range(TRIPS + 1):
        if comm.rank == 0:
            comm.send(x, other)
        comm.recv(other)
        if comm.rank == 1:
            comm.send(x, other)
        ends.append(comm.event_log.clock())
    return (np.diff(ends) / 2).tolist()


def burn() -> None:
    """Keep a core busy."""
    while True:
        pass


@contextmanager
def burners(count: int):
    """Run the block beside so many processes that never wait."""
    context = multiprocessing.get_context("spawn")
    made = [context.Process(target=burn, daemon=True) for _ in range(count)]
    for process in made:
        process.start()
    try:
        yield
    finally:
        for process in made:
            process.kill()
            process.join()


def delivered(length: int, network: Network) -> list[float]:
    """Return half round trips of real ranks, s."""
    outcome = processes.run(partial(to_and_fro, length=length), 2, network=network, backend="sockets")
    if outcome.error:
        raise outcome.error
    return outcome.results[0]


def main() -> None:
    """Print the rows."""
    cores = os.cpu_count()
    for busy in (0, cores):
        with burners(busy):
            where = f"{busy} burners on {cores} cores" if busy else "quiet cores"
            for name, (length, network) in CASES.items():
                wanted = simulated.run(partial(to_and_fro, length=length), 2, network=network).results[0][-1]
                took = np.array(delivered(length, network))
                middle, late = np.quantile(took, (0.5, 0.9))
                told = f"{1e6 * middle:,.0f} us, nine of ten below {1e6 * late:,.0f}; asked {1e6 * wanted:,.0f}"
                near = abs(middle - wanted) <= max(SHARE * wanted, LEAST)
                row(f"{name}, {where}", told, "within 5 % or 100 us", near)


if __name__ == "__main__":
    main()
