"""All-reduce of two processes, beside gloo's, our sockets' and MPI's. `python -m tests.benchmarks.all_reduce [PYTHON]`

Ours, gloo's and the sockets' take turns inside the same two processes. MPI's has processes of its own, which take turns
with those: give its Python, with mpi4py and NumPy, as the argument, and have `mpirun` (Debian: `openmpi-bin`).
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import json  # noqa: E402
import shutil  # noqa: E402
import statistics  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402

import numpy as np  # noqa: E402

from cluster import collectives  # noqa: E402
from cluster.real import processes  # noqa: E402

SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 26_000_000, 1 << 26)  # bytes
ROUNDS, TURNS = 3, 3
MPI = """
import json, statistics, sys, time
import numpy as np
from mpi4py import MPI
comm, found = MPI.COMM_WORLD, {}
for size in json.loads(sys.argv[1]):
    x, y = np.ones(size // 4, np.float32), np.empty(size // 4, np.float32)
    repeat, times = max(3, min(200, 50_000_000 // size)), []
    for _ in range(4):
        comm.Barrier()
        start = time.perf_counter()
        for _ in range(repeat):
            comm.Allreduce(x, y)
        times.append((time.perf_counter() - start) / repeat)
    found[size] = statistics.median(times[1:])
if comm.rank == 0:
    print(json.dumps(found))
"""


def ours(comm) -> dict[int, dict[str, float]]:
    """Median seconds of each size and way."""
    found = {}
    for size in SIZES:
        x = np.ones(size // 4, np.float32)
        repeat = max(3, min(200, 50_000_000 // size))
        ways = {
            "ours": lambda x=x: comm.all_reduce(x),
            "sockets": lambda x=x: comm._run_collective("all-reduce", collectives.recursive_doubling, x),
            "gloo": lambda x=x: gloo(x),
        }
        times = {name: [] for name in ways}
        for turn in range(TURNS + 1):
            for name, way in ways.items():
                comm.barrier()
                start = time.perf_counter()
                for _ in range(repeat):
                    way()
                if turn:  # the first is to warm up
                    times[name].append((time.perf_counter() - start) / repeat)
        found[size] = {name: statistics.median(some) for name, some in times.items()}
    return found


def gloo(x: np.ndarray) -> None:
    """Sum x over gloo."""
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.from_numpy(x))


def mpi(python: str) -> dict[int, float]:
    """Median seconds of each size."""
    command = ["mpirun", "--allow-run-as-root", "-n", "2", python, "-c", MPI, json.dumps(SIZES)]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {int(size): seconds for size, seconds in json.loads(told).items()}


def main() -> None:
    """Print the rows."""
    runs = []
    for _ in range(ROUNDS):
        outcome = processes.run(ours, 2, backend="gloo", timeout=300)
        if outcome.error:
            raise outcome.error
        found = outcome.results[0]
        if len(sys.argv) > 1 and shutil.which("mpirun"):
            for size, seconds in mpi(sys.argv[1]).items():
                found[size]["OpenMPI"] = seconds
        runs.append(found)
    for size in SIZES:
        best = {way: statistics.median(run[size][way] for run in runs) for way in runs[0][size]}
        told = ", ".join(f"{way} {1e3 * seconds:.3f} ms" for way, seconds in best.items())
        row(f"all-reduce of {size:,} bytes, 2 ranks", told, "< half of gloo's", best["ours"] < best["gloo"] / 2)
    if "OpenMPI" not in runs[0][SIZES[0]]:
        print("OpenMPI was not measured: give a Python that has mpi4py, and have mpirun.")


if __name__ == "__main__":
    main()
