"""Many runs: on one and on two Dask workers, and what a job costs beyond its run. `python -m tests.benchmarks.pool`

The runs are the default experiment with other seeds. Each side has warmed up: its processes have loaded the kernels.
"""

import tempfile
import time

from experiments.execution.run import run
from experiments.jobs.pool import Pool
from experiments.specification.experiment import Experiment
from experiments.study.sweep import stored_sweep
from tests.benchmarks.measure import machine, row

RUNS = 1000
FEW = 20  # runs in the pool's own processes, each of which has to start


def seconds_per_run(count: int, first: int, **options) -> float:
    """Return the seconds that each of `count` runs takes in a pool with these options, all of them together."""
    with tempfile.TemporaryDirectory() as folder:
        pool = Pool(folder, 1, **options)
        warm = [Experiment(seed=first + count + n) for n in range(4)]
        list(stored_sweep(warm, folder, pool=pool))
        began = time.perf_counter()
        done = list(stored_sweep([Experiment(seed=first + n) for n in range(count)], folder, pool=pool))
        took = time.perf_counter() - began
        pool.close()
        assert [one.outcome.status for one in done] == ["finished"] * count
    return took / count


def main() -> None:
    """Print the rows."""
    print(machine())
    run(Experiment())
    began = time.perf_counter()
    for seed in range(FEW):
        run(Experiment(seed=seed))
    alone = (time.perf_counter() - began) / FEW
    one, two = (seconds_per_run(RUNS, 0, dask=f"local:{workers}") for workers in (1, 2))
    row(
        f"{RUNS:,} default runs on two Dask workers",
        f"{one / two:.2f} times the rate of one",
        ">= 1.8",
        one / two >= 1.8,
    )
    own = seconds_per_run(FEW, 0)
    words = f"on a Dask worker {1e3 * (one - alone):.0f} ms, in a process of the pool {1e3 * (own - alone):.0f} ms"
    print(f"| what a job costs beyond its run of {1e3 * alone:.0f} ms, stored | {words} | | |")


if __name__ == "__main__":
    main()
