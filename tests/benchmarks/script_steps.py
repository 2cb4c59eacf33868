"""Steps of four scripts, predicted and on two real processes. `python -m tests.benchmarks.script_steps`

The same functions run on the simulated cluster, with the device and the network that `lockstep fit` measures for
scripts, and on two processes with gloo. They measure their steps by their own clock, which is virtual on the simulated
cluster, and a run counts by its median step.

The machine is fitted before the real runs, between them and after them, and the median of the three predictions is
held against the quickest real run, since whatever else the machine does only slows down.
"""

from tests.benchmarks.measure import machine, one_thread, row

one_thread()

import os  # noqa: E402
import sys  # noqa: E402
import tempfile  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from collections.abc import Callable  # noqa: E402
from statistics import median  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import torch.multiprocessing as mp  # noqa: E402
from torch import nn  # noqa: E402
from torch.distributed.fsdp import fully_shard  # noqa: E402
from torch.distributed.pipelining import PipelineStage, Schedule1F1B  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from cluster.torch import simulate  # noqa: E402
from experiments.measure.script_fit import ScriptFit, fit_scripts  # noqa: E402
from experiments.measure.script_programs import blocks, dense  # noqa: E402

WARM_UP, STEPS, TURNS = 3, 20, 7
BAR = 0.2


def timed(step: Callable[[], object]) -> float:
    """Return the median time of a step after the first ones, in s."""
    took = []
    for _ in range(WARM_UP + STEPS):
        start = time.perf_counter()
        step()
        took.append(time.perf_counter() - start)
    return median(took[WARM_UP:])


def ddp(model: nn.Module, batch: int, inputs: int, momentum: float) -> float:
    model = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=momentum)
    x, y = torch.randn(batch, inputs), torch.randint(10, (batch,))

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return timed(step)


def small_ddp() -> float:
    """An MLP of 64-128-128-10, with a batch of 32: calls, and one small all-reduce."""
    return ddp(dense(64, 128, 128, 10), 32, 64, 0.0)


def large_ddp() -> float:
    """An MLP of 16 MB, with a batch of 128: products, and an all-reduce that partly overlaps with them."""
    return ddp(dense(512, 1536, 1536, 512, 10), 128, 512, 0.9)


def fsdp2() -> float:
    """A transformer of 4 layers with 0.2 MB each, sharded by layer: Python, and 14 collectives."""
    model = blocks(4, 64)
    for block in model:
        fully_shard(block)
    fully_shard(model)
    optimizer, x = torch.optim.AdamW(model.parameters(), 1e-3), torch.randn(8, 16, 64)

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return timed(step)


def pipeline() -> float:
    """Two stages of 4 dense layers of 256, 8 micro-batches of 32 samples by 1F1B: messages of 32 kB."""
    rank, size = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(dense(*[256] * 5), rank, size, torch.device("cpu"))
    schedule = Schedule1F1B(stage, 8, loss_fn=nn.functional.mse_loss)
    optimizer = torch.optim.SGD(stage.submod.parameters(), 0.01)
    x, y = torch.randn(256, 256), torch.randn(256, 256)

    def step() -> None:
        optimizer.zero_grad()
        schedule.step(*([x] * (rank == 0)), **({"target": y} if rank == size - 1 else {}))
        optimizer.step()

    return timed(step)


PROGRAMS = {
    "DDP, MLP of 0.1 MB": small_ddp,
    "DDP, MLP of 16 MB": large_ddp,
    "FSDP2, transformer": fsdp2,
    "pipelining, 1F1B": pipeline,
}


def _process(rank: int, folder: str) -> None:
    """Run all programs on this real process. Rank 0 writes their steps into a file."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as torchrun sets it
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    steps = {}
    for name, program in PROGRAMS.items():
        torch.manual_seed(0)
        steps[name] = program()
        dist.barrier()
    if rank == 0:
        torch.save(steps, f"{folder}/steps")
    dist.destroy_process_group()


def real() -> dict[str, float]:
    """Return the step of each program on two processes, in s."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_process, (folder,), 2)
        return torch.load(f"{folder}/steps")


def predicted(here: ScriptFit) -> dict[str, float]:
    """Return the step of each program on this machine as it was measured, in s."""

    def run(program: Callable[[], float]) -> float:
        dist.init_process_group("gloo")
        torch.manual_seed(0)
        return program()

    return {
        name: simulate(run, 2, args=(program,), device=here.device, network=here.network).results[0]
        for name, program in PROGRAMS.items()
    }


def main() -> None:
    """Print the rows."""
    warnings.simplefilter("ignore")
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}", flush=True)
    turns = int(sys.argv[1]) if sys.argv[1:] else TURNS
    guesses, runs = [], []
    for turn in range(turns + 1):
        if turn in (0, turns // 2, turns):
            here = fit_scripts()
            print(f"device {here.device}, network {here.network}", flush=True)
            guesses.append(predicted(here))
        if turn < turns:
            runs.append(real())
    guess = {name: median(one[name] for one in guesses) for name in PROGRAMS}
    took = {name: min(one[name] for one in runs) for name in PROGRAMS}
    for name in PROGRAMS:
        some, ratio = sorted(1e3 * one[name] for one in runs), guess[name] / took[name]
        told = f"{1e3 * guess[name]:.2f} ms, real {some[0]:.2f} ms ({some[0]:.2f} to {some[-1]:.2f}): {ratio:.2f}x"
        row(f"step of {name}, predicted against real", told, "within 20 %", abs(ratio - 1) <= BAR)
    orders = [sorted(PROGRAMS, key=times.__getitem__) for times in (guess, took)]
    row("order of the four", ", ".join(orders[0]), "that of the real ones", orders[0] == orders[1])
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
