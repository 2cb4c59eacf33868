"""Kernels on a GPU: what a launch takes, steps of models, and every kernel that torch has beside torch's.

`python -m tests.benchmarks.gpu_kernels`, on a machine with a GPU. A launch is `sgd` of 1,000 numbers, which takes no
time on the GPU itself: 2,000 of them in a row, in turn with torch's `add_`, the same update.
"""

from tests.benchmarks.measure import one_thread, pairs, row

one_thread()

import statistics  # noqa: E402

import torch  # noqa: E402

import kernels  # noqa: E402
from experiments.measure.kernel_times import measure, names  # noqa: E402
from tests.benchmarks import mlp_step, transformer_step  # noqa: E402

LAUNCHES = 2000
SIZE = 1_000_000
SHOWN = 12  # kernels, the slowest next to torch's


def launch() -> None:
    """Time launches."""
    w, g = torch.ones(1000, device="cuda"), torch.ones(1000, device="cuda")

    def ours():
        kernels.sgd(w, g, 0.01)

    def theirs():
        w.add_(g, alpha=-0.01)

    mine, other, ratio = pairs(ours, theirs, LAUNCHES, rounds=5)
    row("a launch", f"{mine * 1e6:.1f} us, torch's {other * 1e6:.1f} us", "3 of torch's", ratio > 1 / 3)


def calls() -> None:
    """Time every kernel that torch has, too."""
    ratios = {one.kernel: (one.gpu / one.torch_gpu, one) for one in measure(names(), SIZE).rows if one.torch_gpu}
    middle = statistics.median(ratio for ratio, _ in ratios.values())
    row(f"a call at {SIZE:,} numbers, the median of {len(ratios)}", f"{middle:.1f} of torch's time", "3", middle < 3)
    for name, (ratio, one) in sorted(ratios.items(), key=lambda item: -item[1][0])[:SHOWN]:
        row(name, f"{one.gpu * 1e6:.0f} us, torch's {one.torch_gpu * 1e6:.0f} us", "3 of torch's", ratio < 3)


if __name__ == "__main__":
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    launch()
    mlp_step.main("cuda")
    transformer_step.measure(32, 20, "cuda")
    transformer_step.measure(16, 10, "cuda", context=64, width=128, depth=4)
    calls()
