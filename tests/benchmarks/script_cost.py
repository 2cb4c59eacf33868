"""What it costs to simulate scripts, in seconds of CPU. `python -m tests.benchmarks.script_cost`

A step of DDP on 8 ranks, of an MLP of 64-128-128-10 with a batch of 32, in one process; and 64 ranks that take 100
steps of a smaller one, in a process of its own with its start. The labels of spans and the memory of activations are
included; a row says how much longer a step takes because spans name their modules.
"""

from tests.benchmarks.measure import machine, one_thread, row

one_thread()

import contextlib  # noqa: E402
import os  # noqa: E402
import subprocess  # noqa: E402
import sys  # noqa: E402
import time  # noqa: E402
import warnings  # noqa: E402
from statistics import median  # noqa: E402

import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn.parallel import DistributedDataParallel  # noqa: E402

from cluster.torch import launch, simulate  # noqa: E402
from experiments.measure.script_programs import dense  # noqa: E402

ROUNDS, STEPS = 15, 20


def train(widths: tuple[int, ...], batch: int, steps: int) -> None:
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = DistributedDataParallel(dense(*widths))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    x, y = torch.randn(batch, widths[0]), torch.randint(widths[-1], (batch,))
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


def cpu_seconds(ranks: int, *arguments: object) -> float:
    """Return the CPU time of a run, with its trace."""
    begin = time.process_time()
    outcome = simulate(train, ranks, args=arguments)
    assert len(outcome.trace.spans["start"])
    return time.process_time() - begin


def step() -> float:
    """Return the CPU time of a step of DDP on 8 ranks, in s."""
    model = (64, 128, 128, 10), 32
    return (cpu_seconds(8, *model, 2 + STEPS) - cpu_seconds(8, *model, 2)) / STEPS


def main() -> None:
    """Print the rows."""
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["64"]:
        cpu_seconds(64, (32, 32, 8), 8, 100)
        return
    print(f"{machine()}; load {os.getloadavg()[0]:.1f}", flush=True)
    took, nameless = [], []
    step()
    for _ in range(ROUNDS):
        took.append(step())
        named, launch.named_modules = launch.named_modules, contextlib.nullcontext
        nameless.append(step())
        launch.named_modules = named
    told = f"{1e3 * median(took):.1f} ms ({1e3 * min(took):.1f} to {1e3 * max(took):.1f})"
    row("a step of DDP on 8 simulated ranks, s of CPU", told, "< 40 ms", median(took) < 0.04)
    ratio = median(a / b for a, b in zip(took, nameless, strict=True))
    row("the same, compared with spans that do not name modules", f"{ratio:.2f}x", "<= 1.05x", ratio <= 1.05)
    before = os.times()
    subprocess.run([sys.executable, "-m", "tests.benchmarks.script_cost", "64"], check=True)
    after = os.times()
    whole = after.children_user + after.children_system - before.children_user - before.children_system
    row("100 steps of DDP on 64 simulated ranks, start included, s of CPU", f"{whole:.1f} s", "< 60 s", whole < 60)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
