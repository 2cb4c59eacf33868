"""Lost additions of Hogwild on two threads: counted on real ones, and on the simulated cluster.

`python -m tests.benchmarks.lost_additions ["rows, 8 of 100" dense ...]`: all problems, or those whose names contain one
of these texts. Data are chosen so that every addition is of exactly 1 (or of 1 to a millionth), so what is missing from
w in the end was lost. Before each turn of a millisecond two threads wait for each other, spinning; when one has taken
its steps both stop. A turn counts if each had a processor for all of it. They run the compiled steps that the simulated
cluster prices, in memory that begins with a cache line, as the ranks' does.

How long a line takes from one core to the other is measured before and after. A virtual machine's cores may be moved:
what was lost while they shared a cache is printed apart from what was lost while they did not.

For sparse rows a law is printed beside it, of this machine and this minute: p r / T, with the measured time T of a step
and with the time r from load to store that follows from the time of a line, as a core's stores wait for their lines.
"""

from tests.benchmarks.measure import one_thread

one_thread()

import sys  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402
from threading import Thread  # noqa: E402

import numpy as np  # noqa: E402
from numba import njit  # noqa: E402

from algorithms.shared_memory import hogwild  # noqa: E402
from cluster import simulated  # noqa: E402
from cluster.devices import parse_device  # noqa: E402
from cluster.simulated.cells import LINE  # noqa: E402
from kernels.layers import quadratic  # noqa: E402
from kernels.sparse import hogwild as sparse_steps  # noqa: E402
from kernels.sparse.rows import atomic_add  # noqa: E402
from kernels.updates import sgd  # noqa: E402
from workloads.budget import Budget  # noqa: E402
from workloads.quadratic import Quadratic  # noqa: E402
from workloads.sparse import Sparse  # noqa: E402
from workloads.task import Task  # noqa: E402

FAR = 2.0**40  # where the optimum of the bowl lies: its slope is 1 for as long as w is small
TIMES, TURNS, LONG = 12, 25, 1e-3  # times with new memory; turns of each; s that one takes, about
PATIENCE = 3_000_000  # looks at a thread that does not come
PRESENT = 0.95  # of a turn, the time for which both threads had a processor
ROWS = (16, 16), (100, 8), (200, 8), (1000, 4), (2000, 8), (10_000, 16), (10_000, 32)  # features, and those of a row
APART = 16  # numbers that lie in two cache lines
NEAR = 120e-9  # s that a line takes at most between cores that share a cache; 45 to 85, and 160 to 240 ns else
SOONEST = 20e-9  # s from load to store where no earlier store is waiting
TAKE, ISSUE = 0.12, 6.5e-9  # of the time of a line, for which a store holds up the next; s until the next one comes


def turns_of(step):
    """Return the compiled function of one turn: step(w, g, data, k) until this thread or the other has done `count`."""

    @njit(nogil=True)
    def turn(at, over, me, w, g, data, first, count):
        """Return how many steps were taken, -1 if the other thread did not come."""
        mine, other = me * APART, (1 - me) * APART
        atomic_add(at, mine, 1.0)
        for _ in range(PATIENCE):
            atomic_add(at, other, 0.0)  # or the compiler would look once
            if at[other] >= at[mine]:
                break
        else:
            return -1
        for k in range(count):
            step(w, g, data, (first + k) * (1 - 2 * me))  # one backwards, or they could be at the same rows for long
            if over[0] >= at[mine]:
                return k + 1
        over[0] = at[mine]
        return count

    return turn


@njit(nogil=True)
def bounce(ball, looks, me, count):
    """Wait `count` times for the other thread's number, and answer with the next one."""
    for number in range(me, 2 * count, 2):
        while ball[0] != number:
            looks[me * APART] += 1  # a store, or the compiler would look once
        ball[0] = number + 1


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


def rows(features, nonzeros, count=10_007):
    """Return the same of a sparse one, without popular features: margins are so negative that all slopes are -1."""
    rng = np.random.default_rng(0)
    index = np.stack([np.sort(rng.choice(features, nonzeros, replace=False)) for _ in range(count)])
    data = np.ones(count), np.arange(0, index.size + 1, nonzeros), index.ravel(), np.ones(index.size)
    workload = Sparse(*data, data, features, 0.0)
    workload.start = lambda seed=0: np.full(features, -1e6)
    return workload, nonzeros, sparse_step, (rng.permutation(count), *workload.rows)


def two(thread):
    """Run thread(0) and thread(1) at the same time."""
    crowd = [Thread(target=thread, args=(me,)) for me in range(2)]
    for each in crowd:
        each.start()
    for each in crowd:
        each.join()


def transfer(count=20_000):
    """Return the s that it takes until one thread sees what the other has written, the least of five times."""
    bounce(*np.zeros((2, 2 * APART)), 0, 1)  # compiles
    took = []
    for _ in range(5):
        ball, looks = np.zeros((2, 2 * APART))
        began = time.perf_counter()
        two(lambda me, ball=ball, looks=looks: bounce(ball, looks, me, count))
        took.append((time.perf_counter() - began) / (2 * count))
    return min(took)


def in_lines(vector):
    """Return a copy that begins with a cache line, as the memory that ranks share does."""
    room = np.empty(vector.size + APART)
    copy = room[-room.ctypes.data // 8 % APART :][: vector.size]
    copy[:] = vector
    return copy


def real(workload, width, step, data):
    """Return (share of additions lost, s of a step, steps of the slower by the faster), of each turn that counts."""
    turn, start = turns_of(step), workload.start(0)
    w, g = in_lines(start), [start.copy() for _ in range(2)]
    at, over = np.zeros((2, 2 * APART))
    at[APART], count, took = np.inf, 1, 0.0
    turn(at, over, 0, w, g[0], data, 0, 1)  # compiles
    while took < LONG:
        count *= 2
        began = time.perf_counter()
        turn(at, over, 0, w, g[0], data, 0, count)
        took = time.perf_counter() - began
    w[:], at[:], over[:] = start, 0, 0
    steps, present, seconds = np.zeros((3, TURNS, 2))
    moved, ended = np.zeros(TURNS), np.zeros((TURNS + 1, 2))

    def thread(me):
        for number in range(TURNS):
            clocks = time.perf_counter(), time.thread_time()
            steps[number, me] = turn(at, over, me, w, g[me], data, (2 * number + me) * count, count)
            seconds[number, me] = time.perf_counter() - clocks[0]
            present[number, me] = (time.thread_time() - clocks[1]) / seconds[number, me]
            ended[number + 1, me] = turn(at, over, me, w, g[me], data, 0, 0)
            if me == 0:
                moved[number] = np.abs(w - start).sum()
                w[:] = start

    two(thread)
    alone = (ended[:-1] == 0) & (ended[1:] == 0)  # else what a late thread still adds is counted in the next turn
    kept = (present.min(1) > PRESENT) & (steps.min(1) > 0) & alone.all(1)
    steps, seconds = steps[kept], seconds[kept].min(1)
    lost = 1 - moved[kept] / (steps.sum(1) * width)
    return lost, 2 * seconds / steps.sum(1), steps.min(1) / steps.max(1)


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


def law(features, nonzeros, line, seconds):
    """Return the share lost of rows without popular features: a line in `line` s, a step in `seconds`.

    Stores are made in order, so each waits for the lines of those before it, as far as lines come more slowly than
    stores. Its constants were fitted to two cores that pass a line in 54 to 230 ns. Not for rows that touch all lines
    in each step, such as 16 of 16: their threads wait for each other.
    """
    lines = features * 8 / LINE
    touched = lines * (1 - (1 - 1 / lines) ** nonzeros)
    window = SOONEST + (touched - 1) / 2 * max(TAKE * line - ISSUE, 0.0)
    return nonzeros / features * window / seconds


def measure(workload, width, step, data):
    """Return (s that a line takes, mean share lost, s of a step, slower by faster) of each time with enough turns."""
    found, before = [], transfer()
    for _ in range(TIMES):
        lost, seconds, even = real(workload, width, step, data)
        after = transfer()
        if lost.size > TURNS / 5 and (before < NEAR) == (after < NEAR):
            found.append(((before + after) / 2, lost.mean(), np.median(seconds), np.median(even)))
        before = after
    return np.array(found).reshape(-1, 4)


def main(chosen: list[str]) -> None:
    """Print rows for each problem, or for those whose name contains one of these texts."""
    problems = {f"dense, {d:,} parameters": partial(bowl, d) for d in (100, 1000, 10_000)}
    problems |= {f"rows, {k} of {d:,}": partial(rows, d, k) for d, k in ROWS}
    for name, make in problems.items():
        if chosen and not any(text in name for text in chosen):
            continue
        workload, *how = make()
        found = measure(workload, *how)
        for near in (True, False):
            line, lost, seconds, even = found[(found[:, 0] < NEAR) == near].T
            if lost.size:
                print(
                    f"{name}: a line in {1e9 * np.median(line):.0f} ns: real {100 * lost.mean():.4f} %, of {lost.size} "
                    f"times {100 * lost.min():.4f} to {100 * lost.max():.4f} %; {1e6 * np.median(seconds):.3f} us a "
                    f"step, slower by faster {np.median(even):.2f}"
                )
            if lost.size and workload.rows and workload.start(0).size > how[0]:
                predicted = law(workload.start(0).size, how[0], np.median(line), np.median(seconds))
                print(f"{name}: by the law {100 * predicted:.4f} %, real / law {lost.mean() / predicted:.2f}")
        print(f"{name}: simulated {100 * simulate(workload):.4f} %", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
