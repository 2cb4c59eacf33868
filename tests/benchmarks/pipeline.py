"""GPipe on two processes, ours against torch.distributed.pipelining. `python -m tests.benchmarks.pipeline`

Same stages and micro-batches; both run inside the same two processes, ours first. A step is the mini-batch forward,
back, and the update. Neither makes its initial weights within the time, nor ships its model. Arithmetic and bubble are
what the kernels of a stage take on both ranks at the same time, and nothing else, for one micro-batch more than there
are.
"""

from tests.benchmarks.measure import one_thread, row

one_thread()

import statistics  # noqa: E402
import time  # noqa: E402
from functools import partial  # noqa: E402

import numpy as np  # noqa: E402

import kernels  # noqa: E402
from algorithms.pipelined import gpipe  # noqa: E402
from cluster.real import processes  # noqa: E402
from workloads.budget import Budget  # noqa: E402
from workloads.layers import Dense  # noqa: E402
from workloads.sequential import Sequential  # noqa: E402
from workloads.supervised import Supervised  # noqa: E402
from workloads.task import Task  # noqa: E402

CHUNKS, LAYERS, ROUNDS = 8, 8, 7


class Timed(Task):
    """A task that notes when its second step begins, on all ranks."""

    def steps(self, together=False):
        for step in super().steps(together):
            if step == 1:
                self.comm.barrier()
                self.start_of_second = time.perf_counter()
            yield step


def compare(width: int, samples: int, steps: int, comm) -> list[tuple[float, float, float]]:
    """Seconds per step of ours, of torch's, and of arithmetic and bubble alone, in turn."""
    import torch
    from torch.distributed.pipelining import PipelineStage, ScheduleGPipe

    torch.set_num_threads(1)
    batch = CHUNKS * samples
    generator = np.random.default_rng(0)
    x = generator.random((batch, width), np.float32)
    y = generator.integers(0, width, batch)
    chain = Sequential([Dense((width,), width) for _ in range(LAYERS)], kernels.softmax_cross_entropy)
    workload = Supervised("dense", chain, (x, y), (x[:1], y[:1]))

    def ours() -> float:
        task = Timed(workload, comm, budget=Budget(steps=steps + 1), batch=batch, report_every=steps + 2)
        gpipe.ALGORITHM.worker(comm, task, gpipe.Settings(chunks=CHUNKS, learning_rate=0.01))
        comm.barrier()
        return (time.perf_counter() - task.start_of_second) / steps

    part = chain.split(2)[1]
    w, g = part.start(0), np.zeros(part.parameters, np.float32)

    def alone() -> float:
        comm.barrier()
        start = time.perf_counter()
        for _ in range(CHUNKS + 1):
            y, saved = part.forward(w, x[:samples])
            part.backward(w, saved, y, g, True)
        comm.barrier()
        return time.perf_counter() - start

    half = [m for _ in range(LAYERS // 2) for m in (torch.nn.Linear(width, width), torch.nn.ReLU())]
    module = torch.nn.Sequential(*half)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    stage = PipelineStage(module, comm.rank, 2, torch.device("cpu"))
    schedule = ScheduleGPipe(stage, CHUNKS, loss_fn=torch.nn.functional.cross_entropy)
    tx, ty = torch.from_numpy(x), torch.from_numpy(y)

    def step() -> None:
        optimizer.zero_grad()
        schedule.step(tx) if comm.rank == 0 else schedule.step(target=ty)
        optimizer.step()

    def theirs() -> float:
        comm.barrier()
        start = time.perf_counter()
        for _ in range(steps):
            step()
        comm.barrier()
        return (time.perf_counter() - start) / steps

    ours(), theirs(), alone()
    return [(ours(), theirs(), alone()) for _ in range(ROUNDS)]


def main() -> None:
    """Print the rows."""
    for width, samples, steps, bar in [(256, 32, 10, 2.0), (1024, 64, 3, 1.3)]:
        outcome = processes.run(partial(compare, width, samples, steps), 2, backend="gloo", timeout=300)
        if outcome.error:
            raise outcome.error
        mine, theirs, _ = zip(*outcome.results[0], strict=True)
        ratio = statistics.median(b / a for a, b, _ in outcome.results[0])
        what = f"GPipe step, 8 dense {width} x {width}, 2 ranks, 8 x {samples} samples, against torch's pipelining"
        measured = (
            f"{1e3 * statistics.median(mine):.1f} ms, torch {1e3 * statistics.median(theirs):.1f} ms: {ratio:.1f}x"
        )
        row(what, measured, f">= {bar:g}x", ratio >= bar)
        ratio = statistics.median(a / c for a, _, c in outcome.results[0])
        row("the same, against arithmetic and bubble alone", f"{ratio:.2f}x", "<= 1.25x", ratio <= 1.25)


if __name__ == "__main__":
    main()
