"""Hogwild on sparse rows: one thread against two, and against the usual PyTorch loop.

`python -m tests.benchmarks.hogwild`. Rounds are a few milliseconds long and begin together; of many the best one
counts, since somebody else may be using the machine. Before and after, two threads that share nothing show how much of
two cores there is to be had.
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
from cluster import processes, threads  # noqa: E402
from workloads.task import Budget, Task  # noqa: E402

FEATURES, ROWS, NONZEROS = 1_000_000, 65_536, 16
RATE, L2 = 1.0, 1e-5
OURS, THEIRS = 4096, 64  # samples in a round


@cache
def problem():
    """The rows, made once per process."""
    module = workloads.find("sparse")
    return module.build(module.Settings(features=FEATURES, rows=ROWS, nonzeros=NONZEROS, l2=L2), np.float32)


def walk(rounds, comm):
    """(start, end) of each round of one of our ranks: a step of `algorithms/shared_memory/hogwild.py`."""
    task = Task(problem(), comm, budget=Budget(steps=rounds), batch=OURS, shard=comm.rank, shards=comm.size)
    shared = comm.shared(task.start())
    times = []
    for _ in task.steps():
        comm.barrier()
        start = time.monotonic()
        task.walk(shared, RATE)
        times.append((start, time.monotonic()))
    return np.array(times)


def torch_rank(rank, ranks, rounds, written, w, barrier, results):
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
    for k in range(rounds):
        barrier.wait()
        start = time.monotonic()
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
        times.append((start, time.monotonic()))
    results.put((rank, times))


def torch_rounds(ranks, rounds, written):
    """(ranks, rounds, 2) times of PyTorch processes over one share_memory_() tensor."""
    import torch.multiprocessing as mp

    problem()
    context = mp.get_context("fork")  # the rows are there already
    import torch

    w, barrier, results = torch.zeros(FEATURES).share_memory_(), context.Barrier(ranks), context.Queue()
    args = (ranks, rounds, written, w, barrier, results)
    started = [context.Process(target=torch_rank, args=(rank, *args)) for rank in range(ranks)]
    for process in started:
        process.start()
    times = dict(results.get() for _ in started)
    for process in started:
        process.join()
    return np.array([times[rank] for rank in range(ranks)])


def ours(run, ranks, rounds):
    """(ranks, rounds, 2) times of our ranks."""
    outcome = run(partial(walk, rounds), ranks, warm_up=warm)
    if outcome.error:
        raise outcome.error
    return np.array(outcome.results)


def warm():
    """Compile, and make the rows."""
    one = problem()
    w = one.start(0)
    kernels.hogwild(w, w[:0], np.arange(2), *one.data, one.penalty, 0.1, 1, False)


def best(times, samples):
    """Samples a second in the best round, all ranks together."""
    took = times[:, :, 1].max(0) - times[:, :, 0].min(0)
    return len(times) * samples / took.min()


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
    for name, run in (("threads", threads.run), ("processes", processes.run)):
        one, two = (max(best(ours(run, ranks, 150), OURS) for _ in range(3)) for ranks in (1, 2))
        what = f"Hogwild, {name}, {FEATURES:,} features, {NONZEROS} to a row: samples/s, 1 and 2"
        row(what, f"{one:,.0f} and {two:,.0f}: {two / one:.2f}x", ">= 1.7x", two / one >= 1.7)
        if name == "threads":
            mine = two
    for written in ("autograd", "by hand"):
        theirs = max(best(torch_rounds(2, 60, written), THEIRS) for _ in range(2))
        what = f"Hogwild, 2 threads, against 2 processes of PyTorch, {written}"
        row(what, f"{mine:,.0f} and {theirs:,.0f}: {mine / theirs:.0f}x", ">= 10x", mine / theirs >= 10)
    print(f"two threads that share nothing: {to_be_had():.2f}x", flush=True)


if __name__ == "__main__":
    main()
