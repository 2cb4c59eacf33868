"""Many runs: on one and on two Dask workers, and what a job costs beyond its run. `python -m tests.benchmarks.pool`

The runs are the default experiment with other seeds. One and two workers take turns, each time in new processes that
have loaded the kernels before the clock starts.
"""

import contextlib
import os
import statistics
import tempfile
import time
from typing import NamedTuple

import psutil

from experiments.cli.running import pool_at
from experiments.execution.run import run
from experiments.jobs.pool import Pool
from experiments.specification.experiment import Experiment
from experiments.study.sweep import stored_sweep
from tests.benchmarks.measure import machine, row

ROUNDS, RUNS = 4, 250  # runs of each round, on one and on two workers
FEW = 20  # runs in the pool's own processes, each of which has to start


class Cost(NamedTuple):
    """Seconds per run of a sweep: that passed, of CPU in this process, and of CPU in each of its workers."""

    passed: float
    here: float
    workers: list[float]


def cost(count: int, first: int, address: str = "") -> Cost:
    """Return the cost of each of `count` runs on the Dask cluster at `address`, or in the pool's own processes."""
    with tempfile.TemporaryDirectory() as folder:
        opened = pool_at(address, folder) if address else contextlib.closing(Pool(folder, 1))
        with opened as pool:
            list(stored_sweep([Experiment(seed=first + count + n) for n in range(8)], folder, pool=pool))
            workers = psutil.Process().children(recursive=True)
            before, here, began = cpu(workers), time.process_time(), time.perf_counter()
            done = list(stored_sweep([Experiment(seed=first + n) for n in range(count)], folder, pool=pool))
            passed, used, after = time.perf_counter() - began, time.process_time() - here, cpu(workers)
        assert [one.outcome.status for one in done] == ["finished"] * count
    spent = [(now - then) / count for then, now in zip(before, after, strict=True) if now > then]
    return Cost(passed / count, used / count, spent)


def cpu(processes: list[psutil.Process]) -> list[float]:
    """Return the seconds of CPU that these processes have used; 0 for one that has ended."""
    used = []
    for process in processes:
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used.append(times.user + times.system)
            continue
        used.append(0.0)
    return used


def main() -> None:
    """Print the rows."""
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}")
    rounds = []
    for number in range(ROUNDS):
        one, two = (cost(RUNS, number * RUNS, f"local:{workers}") for workers in (1, 2))
        rounds.append((one, two))
        for words, it in ("one worker", one), ("two workers", two):
            spent = " and ".join(f"{1e3 * used:.1f}" for used in it.workers)
            print(
                f"{words}: {1e3 * it.passed:.1f} ms per run; CPU {1e3 * it.here:.1f} ms here with the scheduler, "
                f"{spent} ms in workers; load {os.getloadavg()[0]:.1f}",
                flush=True,
            )
    ratios = [one.passed / two.passed for one, two in rounds]
    whole = sum(one.passed for one, _ in rounds) / sum(two.passed for _, two in rounds)
    here = statistics.median(two.here for _, two in rounds)
    row(
        f"{ROUNDS * RUNS:,} default runs on two Dask workers",
        f"{whole:.2f} times the rate of one ({min(ratios):.2f} to {max(ratios):.2f} in {ROUNDS} rounds); "
        f"scheduler and pool take {1e3 * here:.1f} ms of CPU per run",
        ">= 1.8",
        whole >= 1.8,
    )
    run(Experiment())
    began = time.perf_counter()
    for seed in range(FEW):
        run(Experiment(seed=seed))
    alone = (time.perf_counter() - began) / FEW
    far = statistics.median(one.passed for one, _ in rounds) - alone
    words = (
        f"on a Dask worker {1e3 * far:.0f} ms, in a process of the pool {1e3 * (cost(FEW, 0).passed - alone):.0f} ms"
    )
    print(f"| what a job costs beyond its run of {1e3 * alone:.0f} ms, stored | {words} | | |")


if __name__ == "__main__":
    main()
