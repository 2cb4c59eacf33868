"""One training step of the default MLP, ours against torch eager, one thread. `python -m tests.benchmarks.mlp_step`

On a GPU it is a part of `gpu_kernels`.
"""

from tests.benchmarks.measure import one_thread, pairs, row, waiting

one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402

import kernels  # noqa: E402
import workloads  # noqa: E402
from experiments.specification.experiment import Experiment  # noqa: E402


def contestants(device: str) -> tuple:
    """Return our workload, its parameters and a batch on `device`, and a function that takes a step of torch's."""
    one = Experiment()
    module = workloads.find(one.workload)
    workload = module.build(module.Settings(**one.data), np.float32)
    batch = tuple(kernels.to_device(part, device) for part in workload.batch(np.arange(32)))
    w = kernels.to_device(workload.start(0), device)
    layers = [
        torch.nn.Linear(64, 128),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 128),
        torch.nn.ReLU(),
        torch.nn.Linear(128, 10),
    ]
    model = torch.nn.Sequential(*layers).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = (torch.as_tensor(part) for part in batch)
    y = y.long()

    def peer() -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    assert len(w) == sum(p.numel() for p in model.parameters())
    return workload, w, batch, peer


def main(device: str = "cpu") -> None:
    """Print the row."""
    torch.set_num_threads(1)
    workload, w, batch, peer = contestants(device)
    wait = waiting(device)

    def ours() -> None:
        _, g = workload.gradient(w, batch)
        kernels.sgd(w, g, 0.01)
        wait()

    def theirs() -> None:
        peer()
        wait()

    mine, other, ratio = pairs(ours, theirs, repeat=200)
    measured = f"{1e6 * mine:.0f} us, torch {1e6 * other:.0f} us: {ratio:.1f}x"
    row(f"default MLP step (64-128-128-10, batch 32) on {device}, against torch eager", measured, ">= 4x", ratio >= 4)


if __name__ == "__main__":
    main()
