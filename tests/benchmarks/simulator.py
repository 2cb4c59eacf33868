"""Simulator: events a second, and clusters of 64 and 1,024 workers. `python -m tests.benchmarks.simulator`

An event is one thing that happens to a rank: a message handed over, a message taken. The peer of the first row is a
bare heap of the same depth, one pop and one push per message: what no event simulation in Python can beat.
Seconds of runs are those of the processor, which are those of the clock where nothing else wants it.
"""

from tests.benchmarks.measure import one_thread, pairs, row

one_thread()

import time  # noqa: E402
from heapq import heappop, heappush  # noqa: E402

from cluster import simulated  # noqa: E402
from experiments.execution.run import run  # noqa: E402
from experiments.specification.experiment import Experiment  # noqa: E402

MESSAGES = 20_000


def ping_pong(comm) -> None:
    """Rank 0 and rank 1 send one number to and fro."""
    for _ in range(MESSAGES // 2):
        if comm.rank == 0:
            comm.send(1.0, 1)
            comm.recv(1)
        else:
            comm.recv(0)
            comm.send(1.0, 0)


def bare_heap() -> None:
    """One pop and one push per message."""
    heap = [(0.0, 0, None), (0.5, 1, None)]
    for serial in range(MESSAGES):
        at, _, x = heappop(heap)
        heappush(heap, (at + 1.0, serial + 2, x))


def seconds(experiment: Experiment) -> float:
    """The processor's seconds for a run, the arithmetic of every worker included."""
    start = time.process_time()
    finished = run(experiment)
    assert finished.status == "finished", finished.error
    return time.process_time() - start


def main() -> None:
    """Print the rows."""
    ours, _, ratio = pairs(lambda: simulated.run(ping_pong, 2), bare_heap, repeat=1, rounds=9)
    events = 2 * MESSAGES / ours
    row("simulator, events/s", f"{events:,.0f} ({ratio:.2f} of a bare heap's rate)", ">= 500,000", events >= 5e5)

    base = Experiment.of({"algorithm": "sync_sgd", "steps": 100, "evaluations": 1, "batch": 16})
    for collective in ("ring", "fast"):
        seconds(base.change(workers=4, collective=collective, steps=3))  # compile
    took = seconds(base.change(workers=64, collective="ring"))
    row("64 workers x 100 steps, ring with all its messages", f"{took:.2f} s of CPU", "< 2 s", took < 2)

    base = base.change(batch=1, workers=1024, workload="spirals", points=2400)
    took = seconds(base)
    row("1,024 workers x 100 steps, fast path", f"{took:.2f} s of CPU", "< 8 s", took < 8)


if __name__ == "__main__":
    main()
