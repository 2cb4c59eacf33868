"""Hogwild on sparse rows: one thread against two, and against the usual PyTorch loop.

`python -m tests.benchmarks.hogwild`. Ranks run freely and the best stretch of time counts, since somebody else may be
using the machine. Before and after, two threads that share nothing show how much of two cores there is to be had.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import time  # noqa: E402
from functools import cache, partial  # noqa: E402
from threading import Thread  # noqa: E402

import numpy as np  # noqa: E402
from numba import njit  # noqa: E402

import kernels  # noqa: E402
import workloads  # noqa: E402
from algorithms.shared_memory import hogwild  # noqa: E402
from cluster.real import processes, threads  # noqa: E402
from workloads.budget import Budget  # noqa: E402
from workloads.task import Task  # noqa: E402

FEATURES, ROWS, NONZEROS = 1_000_000, 65_536, 16
RATE, L2 = 1.0, 1e-5
OURS, THEIRS = 1024, 64  # samples in a mini-batch
STRETCH = 0.006  # s: shorter than the turn that another program gets


@cache
def problem():
    """The rows, made once per process."""
    module = workloads.find("sparse")
    return module.build(module.Settings(features=FEATURES, rows=ROWS, nonzeros=NONZEROS, l2=L2), np.float32)


def descend(steps, comm):
    """When each step of one of our ranks ended: the inner loop of `algorithms/shared_memory/hogwild.py`."""
    task = Task(problem(), comm, budget=Budget(steps=steps), batch=OURS, data_shard=comm.rank, data_shards=comm.size)
    shared = comm.shared(task.start())
    comm.barrier()
    times = []
    for _ in task.steps():
        task.descend(shared, hogwild.descend, RATE, compiled=hogwild.descend_rows)
        times.append(time.monotonic())
    return times


def torch_rank(rank, steps, written, w, barrier, results):
    """The same of PyTorch: w is a shared tensor, a sample is a gather, and an update scatters.

    `written` is "autograd", an embedding bag with sparse gradients and the optimizer's step, or "by hand".
    """
    import torch

    torch.set_num_threads(1)
    one = problem()
    target, _, index, values = (torch.from_numpy(x) for x in one.data)
    penalty, offset = torch.from_numpy(one.penalty), torch.zeros(1, dtype=torch.int64)
    index, order = index.long(), np.random.default_rng(rank).permutation(ROWS)
    bag = torch.nn.EmbeddingBag.from_pretrained(w[:, None], freeze=False, mode="sum", sparse=True)
    sgd = torch.optim.SGD(bag.parameters(), lr=RATE)
    assert bag.weight.data_ptr() == w.data_ptr()
    bounds, times = one.data[1], []
    barrier.wait()
    for k in range(steps):
        for i in order[THEIRS * k : THEIRS * (k + 1)]:
            some = slice(bounds[i], bounds[i + 1])
            v, x, y = index[some], values[some], target[i]
            if written == "autograd":
                sgd.zero_grad()
                margin = y * bag(v, offset, per_sample_weights=x)[0, 0]
                ridge = (penalty[v] * bag.weight[v, 0].detach() ** 2).sum() / 2
                (torch.nn.functional.softplus(-margin) + ridge).backward()
                sgd.step()
            else:
                here = w[v]
                pull = -y * torch.sigmoid(-y * torch.dot(here, x))
                w.index_add_(0, v, pull * x + penalty[v] * here, alpha=-RATE)
        times.append(time.monotonic())
    results.put((rank, times))


def theirs(ranks, steps, written):
    """When each step of PyTorch processes over one share_memory_() tensor ended, (ranks, steps)."""
    import torch
    import torch.multiprocessing as mp

    problem()
    context = mp.get_context("fork")  # the rows are there already
    w, barrier, results = torch.zeros(FEATURES).share_memory_(), context.Barrier(ranks), context.Queue()
    args = (steps, written, w, barrier, results)
    started = [context.Process(target=torch_rank, args=(rank, *args)) for rank in range(ranks)]
    for process in started:
        process.start()
    times = dict(results.get() for _ in started)
    for process in started:
        process.join()
    return [times[rank] for rank in range(ranks)]


def ours(run, ranks, steps):
    """When each step of our ranks ended, (ranks, steps)."""
    outcome = run(partial(descend, steps), ranks, warm_up=warm)
    if outcome.error:
        raise outcome.error
    return outcome.results


def warm(place):
    """Compile, and make the rows."""
    one = problem()
    w = one.start(0)
    kernels.hogwild(w, w[:0], np.arange(2), *one.data, one.penalty, 0.1, 1, False)


def best(times, samples, stretch=STRETCH):
    """Samples a second of all ranks together in the best stretch in which all were at it."""
    times = np.array(times)
    begin, end = times[:, 0].max(), times[:, -1].min()
    at = np.linspace(begin, end - stretch, 2000)
    done = np.arange(times.shape[1]) * samples
    return max(sum(np.interp(at + stretch, t, done) - np.interp(at, t, done) for t in times)) / stretch


@njit(nogil=True)
def spin(n):
    """Arithmetic that needs no memory."""
    x = 0.5
    for _ in range(n):
        x = x * 1.0000001 + 1e-9
    return x


def to_be_had(turns=200, n=1_000_000):
    """How much faster two threads of arithmetic are than one that does the work of both, at best."""
    spin(1)
    took = {1: [], 2: []}
    for _ in range(turns):
        for count, times in took.items():
            crowd = [Thread(target=spin, args=(2 * n // count,)) for _ in range(count)]
            start = time.perf_counter()
            for thread in crowd:
                thread.start()
            for thread in crowd:
                thread.join()
            times.append(time.perf_counter() - start)
    return min(took[1]) / min(took[2])


def main() -> None:
    """Print the rows."""
    cores = to_be_had()
    print(f"two threads that share nothing: {cores:.2f}x", flush=True)
    runs = {"threads": threads.run, "processes": processes.run}
    got = {name: np.zeros(2) for name in runs}  # the best so far of 1 and of 2 ranks
    for _ in range(10):
        for name, run in runs.items():
            got[name] = np.maximum(got[name], [best(ours(run, ranks, 400), OURS) for ranks in (1, 2)])
    for name, (one, two) in got.items():
        what = f"Hogwild, {name}, {FEATURES:,} features, {NONZEROS} to a row: samples/s, 1 and 2"
        row(what, f"{one:,.0f} and {two:,.0f}: {two / one:.2f}x", ">= 1.7x", two / one >= 1.7)
    mine = got["threads"][1]
    for written in ("autograd", "by hand"):
        peer = max(best(theirs(2, 60, written), THEIRS, 16 * STRETCH) for _ in range(2))
        what = f"Hogwild, 2 threads, against 2 processes of PyTorch, {written}"
        row(what, f"{mine:,.0f} and {peer:,.0f}: {mine / peer:.0f}x", ">= 10x", mine / peer >= 10)
    print(f"two threads that share nothing: {to_be_had():.2f}x", flush=True)


if __name__ == "__main__":
    main()
