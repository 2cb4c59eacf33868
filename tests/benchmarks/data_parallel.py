"""Synchronous SGD on two processes, ours against DistributedDataParallel. `python -m tests.benchmarks.data_parallel`

Same model, ranks and batch; the two take turns inside the same two processes, on the same gloo.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import statistics  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402
from itertools import pairwise  # noqa: E402

import numpy as np  # noqa: E402

import kernels  # noqa: E402
from cluster.real import processes  # noqa: E402
from workloads.layers import Dense  # noqa: E402
from workloads.sequential import Sequential  # noqa: E402

ROUNDS = 11


def chain(widths: tuple[int, ...]) -> Sequential:
    """Dense layers with ReLU between."""
    layers = [Dense((a,), b, "relu" if b != widths[-1] else "none") for a, b in pairwise(widths)]
    return Sequential(layers, kernels.softmax_cross_entropy)


def compare(widths: tuple[int, ...], batch: int, steps: int, place: str, comm) -> list[tuple[float, float]]:
    """Seconds per step of ours and of DDP, in turn."""
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    torch.set_num_threads(1)
    if not dist.is_initialized():
        dist.init_process_group("gloo", init_method=f"file://{place}", rank=comm.rank, world_size=comm.size)
    model = chain(widths)
    w = model.start(0)
    generator = np.random.default_rng(comm.rank)
    x = generator.random((batch, widths[0]), np.float32)
    y = generator.integers(0, widths[-1], batch)

    def ours() -> None:
        _, g = model.gradient(w, x, y)
        comm.all_reduce(g, op="mean")
        kernels.sgd(w, g, 0.01)

    layers = []
    for a, b in pairwise(widths):
        layers += [torch.nn.Linear(a, b), torch.nn.ReLU()]
    peer = DistributedDataParallel(torch.nn.Sequential(*layers[:-1]))
    optimizer = torch.optim.SGD(peer.parameters(), lr=0.01)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def theirs() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(peer(tx), ty).backward()
        optimizer.step()

    def seconds(step) -> float:
        comm.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        return (time.perf_counter() - start) / steps

    seconds(ours), seconds(theirs)
    return [(seconds(ours), seconds(theirs)) for _ in range(ROUNDS)]


def main() -> None:
    """Print the rows."""
    sizes = [
        ("default MLP", (64, 128, 128, 10), 32, 50, 2.0),
        ("1024-2048-2048-10", (1024, 2048, 2048, 10), 64, 3, 1.2),
    ]
    for backend in sys.argv[1:] or ["gloo", "sockets"]:
        for name, widths, batch, steps, bar in sizes:
            with tempfile.TemporaryDirectory() as folder:
                work = partial(compare, widths, batch, steps, f"{folder}/meet")
                outcome = processes.run(work, 2, backend=backend, timeout=300)
            if outcome.error:
                raise outcome.error
            mine, theirs = zip(*outcome.results[0], strict=True)
            ratio = statistics.median(b / a for a, b in outcome.results[0])
            measured = (
                f"{1e3 * statistics.median(mine):.2f} ms, DDP {1e3 * statistics.median(theirs):.2f} ms: {ratio:.1f}x"
            )
            row(f"sync SGD step, {name}, 2 ranks, {backend}, against DDP", measured, f">= {bar:g}x", ratio >= bar)


if __name__ == "__main__":
    main()
