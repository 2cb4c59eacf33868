"""The same ring in other simulators: messages a second of CPU. `python -m tests.benchmarks.simulators [PYTHON ...]`

Every rank of 64 sends pieces of 320 bytes round a ring, as in all-reduces of 5,120 float32 numbers, over 10 GbE. Peers
are the programs of `peers/`, run by the first interpreter that has them: this one, the system's, or one that is given.
They send messages without numbers in them; ours also adds up the vectors, and has every message in its trace.
"""

import subprocess
import sys
from pathlib import Path

from tests.benchmarks.measure import machine, one_thread

one_thread()

import math  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

from cluster import simulated  # noqa: E402
from cluster.devices import Device  # noqa: E402
from cluster.simulated import compiled_collectives  # noqa: E402

RANKS, NUMBERS = 64, 64 * 80
FREE = Device(math.inf, math.inf, 0.0)
PEERS = {"simpy": ("SimPy", 100), "salabim": ("salabim", 5), "simgrid": ("SimGrid, Python", 10)}  # so many sums


def ours(sums: int) -> tuple[float, float]:
    """The processor's seconds and the simulated ones, the trace included."""

    def program(comm):
        x = np.ones(NUMBERS, np.float32)
        for _ in range(sums):
            comm.all_reduce(x, "mean")
        return comm.event_log.clock()

    start = time.process_time()
    outcome = simulated.run(program, RANKS, device=FREE, collective="ring")
    assert len(outcome.trace().messages["sent"]) == messages(sums), outcome.error
    return time.process_time() - start, max(outcome.results)


def peer(name: str, sums: int, interpreters: list[str]) -> tuple[float, float] | None:
    """The same of a peer, None if no interpreter has it."""
    program = Path(__file__).parent / "peers" / f"ring_{name}.py"
    for python in interpreters:
        if subprocess.run([python, "-c", f"import {name}"], capture_output=True, check=False).returncode == 0:
            numbers = map(str, (RANKS, sums, 4 * NUMBERS))
            done = subprocess.run([python, program, *numbers], capture_output=True, check=True, text=True)
            return tuple(map(float, done.stdout.split()))
    return None


def messages(sums: int) -> int:
    """How many messages so many all-reduces send."""
    return sums * RANKS * 2 * (RANKS - 1)


def main() -> None:
    """Print the rows."""
    print(machine())
    interpreters = [sys.executable, "/usr/bin/python3", *sys.argv[1:]]
    ours(1)  # compile, and write the program down
    rate, simulated_seconds = 0.0, 0.0

    def show(what: str, sums: int, took: tuple[float, float]) -> None:
        each = messages(sums) / took[0]
        print(f"| {what} | {each:,.0f} | {rate / each:.1f}x | {1e3 * took[1] / sums:.3f} ms |", flush=True)

    took = ours(100)
    rate, simulated_seconds = messages(100) / took[0], took[1] / 100
    show("Lockstep, compiled, with sums and trace", 100, took)
    compiled_collectives.COMPILED = {}
    show("Lockstep, message by message, with sums and trace", 10, ours(10))
    for name, (title, sums) in PEERS.items():
        took = peer(name, sums, interpreters)
        if took is None:
            print(f"{title} is not there; name a Python that has it.")
            continue
        show(title, sums, took)
        assert math.isclose(took[1] / sums, simulated_seconds, rel_tol=1e-2)  # they simulate the same


if __name__ == "__main__":
    main()
