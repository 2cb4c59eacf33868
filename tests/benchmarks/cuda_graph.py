"""A step on a GPU with its gradient replayed from a CUDA graph, against the same launched kernel by kernel and torch.

`python -m tests.benchmarks.cuda_graph`, on a machine with a GPU. Steps are measured in pairs, in turn; each waits for
the GPU. A step is a gradient, its loss on the host, and SGD; torch's is eager and reads no loss.
"""

from tests.benchmarks.measure import one_thread, pairs, row, waiting

one_thread()

from collections.abc import Callable  # noqa: E402

import torch  # noqa: E402

import kernels  # noqa: E402
from kernels.graph import ReplayedGradient  # noqa: E402
from tests.benchmarks import mlp_step, transformer_step  # noqa: E402
from workloads import text  # noqa: E402


def stop(why: str) -> None:
    """End the program: the gradient could not be captured."""
    raise SystemExit(f"the gradient was not captured, because {why}")


def measure(what: str, contestants: tuple, repeat: int, bar: float, device: str) -> None:
    """Print two rows: replayed against torch, which must take `bar` times as long, and against launched."""
    workload, w, batch, peer = contestants
    wait, start = waiting(device), kernels.copy(w)
    replayed = ReplayedGradient(lambda w, *batch: workload.gradient(w, batch), stop)

    def step(gradient: Callable) -> Callable:
        def once() -> None:
            _, g = gradient(w, *batch)
            kernels.sgd(w, g, 0.01)
            wait()

        return once

    def theirs() -> None:
        peer()
        wait()

    launching, replaying = step(lambda w, *batch: workload.gradient(w, batch)), step(replayed)
    ends = []
    for once in (launching, replaying):  # the first replays are launched and compared
        w.copy_(start)
        for _ in range(5):
            once()
        ends.append(kernels.to_numpy(w).tobytes())
    row(f"{what}: parameters after 5 steps", "equal" if ends[0] == ends[1] else "differ", "equal", ends[0] == ends[1])
    mine, other, ratio = pairs(replaying, theirs, repeat)
    row(what, f"{1e6 * mine:.0f} us, torch {1e6 * other:.0f} us: {ratio:.2f}x", f">= {bar:g}x", ratio >= bar)
    mine, other, ratio = pairs(replaying, launching, repeat)
    row(f"{what}, against launches", f"{1e6 * mine:.0f} us, {1e6 * other:.0f} us: {ratio:.2f}x", "> 1x", ratio > 1)


def main(device: str = "cuda", repeat: int = 100) -> None:
    """Print the rows of the models whose steps `gpu_kernels` measures without graphs."""
    measure("default MLP step (batch 32)", mlp_step.contestants(device), repeat, 2, device)
    for batch, s in ((32, text.Settings()), (16, text.Settings(context=64, width=128, depth=4))):
        sizes = f"context {s.context}, width {s.width}, depth {s.depth}, batch {batch}"
        contestants = transformer_step.contestants(batch, device, s)
        measure(f"text model step ({sizes})", contestants, max(1, repeat // 4), 1, device)


if __name__ == "__main__":
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    main()
