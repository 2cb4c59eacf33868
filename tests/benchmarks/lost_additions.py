"""Lost additions of Hogwild on two threads: counted on real ones, and on the simulated cluster.

`python -m tests.benchmarks.lost_additions`. Data are chosen so that every addition is of exactly 1 (or of 1 to a
millionth), so what is missing from w in the end was lost. Before each turn of a fraction of a millisecond two threads
wait for each other, spinning, and a turn counts if neither got a tenth ahead of the other: then both were on a
processor all the time, however busy the machine. They run the compiled steps that the simulated cluster prices.
"""

from tests.benchmarks.measure import one_thread

one_thread()

import time  # noqa: E402
from functools import partial  # noqa: E402
from threading import Thread  # noqa: E402

import numpy as np  # noqa: E402
from numba import njit  # noqa: E402

from algorithms.shared_memory import hogwild  # noqa: E402
from cluster import simulated  # noqa: E402
from cluster.devices import parse_device  # noqa: E402
from kernels.layers import quadratic  # noqa: E402
from kernels.sparse import hogwild as sparse_steps  # noqa: E402
from kernels.sparse.rows import atomic_add  # noqa: E402
from kernels.updates import sgd  # noqa: E402
from workloads.budget import Budget  # noqa: E402
from workloads.quadratic import Quadratic  # noqa: E402
from workloads.sparse import Sparse  # noqa: E402
from workloads.task import Task  # noqa: E402

FAR = 2.0**40  # where the optimum of the bowl lies: its slope is 1 for as long as w is small
TURNS, LONG = 150, 1.5e-4  # turns; s that one takes, about
PATIENCE = 3_000_000  # looks at a thread that does not come
APART = 16  # numbers that lie in two cache lines


def turns_of(step):
    """Return the compiled function of one turn: so many times step(w, g, data, k), together with another thread."""

    @njit(nogil=True)
    def turn(at, done, me, w, g, data, first, count):
        """Return whether the other thread came, and was within a tenth of these steps when they were done."""
        mine, other = me * APART, (1 - me) * APART
        atomic_add(at, mine, 1.0)
        for _ in range(PATIENCE):
            atomic_add(at, other, 0.0)  # or the compiler would look once
            if at[other] >= at[mine]:
                break
        else:
            return False
        for k in range(count):
            step(w, g, data, first + k)
            atomic_add(done, mine, 1.0)
        atomic_add(done, other, 0.0)
        return abs(done[mine] - done[other]) < 0.1 * count

    return turn


@njit
def dense_step(w, g, data, k):
    points, curvature = data
    quadratic.cpu(g, w, points, curvature)
    sgd.cpu(w, g, 1.0)


@njit
def sparse_step(w, g, data, k):
    order, target, indptr, index, values, penalty = data
    sparse_steps.cpu(w, w[:0], order[k % order.size :][:1], target, indptr, index, values, penalty, 1.0, 1, False)


def bowl(dimension):
    """Return the dense workload, how much a step adds to w, its step and data."""
    points, curvature = np.full((1 << 12, dimension), FAR), np.full(dimension, 1 / FAR)
    return Quadratic(points, curvature, np.zeros(dimension)), dimension, dense_step, (points[:1], curvature)


def rows(features, nonzeros, count=8192):
    """Return the same of a sparse one, without popular features: margins are so negative that all slopes are -1."""
    rng = np.random.default_rng(0)
    index = np.stack([np.sort(rng.choice(features, nonzeros, replace=False)) for _ in range(count)])
    data = np.ones(count), np.arange(0, index.size + 1, nonzeros), index.ravel(), np.ones(index.size)
    workload = Sparse(*data, data, features, 0.0)
    workload.start = lambda seed=0: np.full(features, -1e6)
    return workload, nonzeros, sparse_step, (rng.permutation(count), *workload.rows)


def real(workload, width, step, data):
    """Return (share of additions lost in the turns that count, how many these are, s of a step)."""
    turn, start = turns_of(step), workload.start(0)
    w, g = start.copy(), [start.copy() for _ in range(2)]
    at, done = np.zeros((2, 2 * APART))
    at[APART], count, took = np.inf, 1, 0.0
    turn(at, done, 0, w, g[0], data, 0, 1)  # compiles
    while took < LONG:
        count *= 2
        began = time.perf_counter()
        turn(at, done, 0, w, g[0], data, 0, count)
        took = time.perf_counter() - began
    w[:], at[:], done[:] = start, 0, 0
    together, moved = np.zeros((2, TURNS), bool), np.zeros(TURNS)

    def thread(me):
        for number in range(TURNS):
            together[me, number] = turn(at, done, me, w, g[me], data, (2 * number + me) * count, count)
            turn(at, done, me, w, g[me], data, 0, 0)
            if me == 0:
                moved[number] = np.abs(w - start).sum()
                w[:] = start

    crowd = [Thread(target=thread, args=(me,)) for me in range(2)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()
    kept = together.all(0) & (moved > 0.5 * 2 * count * width)
    lost = 1 - moved[kept] / (2 * count * width)
    return lost.mean() if kept.any() else np.nan, kept.sum(), took / count


def train(workload, batch, steps, comm):
    """One rank of Hogwild."""
    task = Task(workload, comm, budget=Budget(steps=steps), batch=batch, data_shard=comm.rank, data_shards=comm.size)
    shared = comm.shared(task.start())
    for _ in task.steps():
        task.descend(shared, hogwild.descend, 1.0, compiled=hogwild.descend_rows)


def simulate(workload):
    """Return the share of additions that two simulated threads lose."""
    passes = 16 if workload.rows else 1  # what is rare wants many steps
    outcome = simulated.run(partial(train, workload, 64, 64 * passes), 2, device=parse_device("laptop"))
    if outcome.error:
        raise outcome.error
    return np.mean([row[-1] for log in outcome.event_logs for row in log.measures if "lost" in row])


def main() -> None:
    """Print a row for each problem."""
    problems = {f"dense, {d:,} parameters": partial(bowl, d) for d in (100, 1000, 10_000)}
    problems |= {
        f"rows, {k} of {d:,}": partial(rows, d, k) for d, k in ((16, 16), (100, 8), (200, 8), (2000, 8), (10_000, 16))
    }
    for name, make in problems.items():
        workload, *how = make()
        found = [real(workload, *how) for _ in range(3)]
        lost, kept, took = np.transpose(found)
        print(
            f"{name}: real {100 * np.nanmin(lost):.4f} to {100 * np.nanmax(lost):.4f} %, median "
            f"{100 * np.nanmedian(lost):.4f} % ({int(kept.sum())} turns, {1e6 * np.min(took):.3f} us a step); "
            f"simulated {100 * simulate(workload):.4f} %",
            flush=True,
        )


if __name__ == "__main__":
    main()
