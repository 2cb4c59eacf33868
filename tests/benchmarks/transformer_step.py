"""One training step of the text model, ours against torch eager, one thread.

`python -m tests.benchmarks.transformer_step`; on a GPU it is a part of `gpu_kernels`.
"""

from tests.benchmarks.measure import one_thread, pairs, row, waiting

one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as f  # noqa: E402

import kernels  # noqa: E402
from workloads import text  # noqa: E402


class Attention(nn.Module):
    """x + Wo attention(LN(x))."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.norm, self.heads = nn.LayerNorm(width), heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x):
        h = self.norm(x)
        q, k, v = (part(h).unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        return x + self.o(f.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Mlp(nn.Module):
    """x + W2 gelu(W1 LN(x))."""

    def __init__(self, width: int):
        super().__init__()
        layers = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width)
        self.inner = nn.Sequential(*layers)

    def forward(self, x):
        return x + self.inner(x)


class Tokens(nn.Module):
    """table[x] + places."""

    def __init__(self, tokens: int, time: int, width: int):
        super().__init__()
        self.table, self.places = nn.Embedding(tokens, width), nn.Parameter(torch.randn(time, width))

    def forward(self, x):
        return self.table(x) + self.places


def contestants(batch: int, device: str, s: text.Settings) -> tuple:
    """Return our workload, its parameters and a batch on `device`, and a function that takes a step of torch's."""
    workload = text.build(s)
    tokens = workload.model.outputs[-1]
    samples = tuple(kernels.to_device(part, device) for part in workload.batch(np.arange(batch)))
    w = kernels.to_device(workload.start(0), device)
    blocks = [Mlp(s.width) if i % 2 else Attention(s.width, s.heads) for i in range(s.depth)]
    model = nn.Sequential(
        Tokens(tokens, s.context, s.width), *blocks, nn.LayerNorm(s.width), nn.Linear(s.width, tokens)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, target = map(torch.as_tensor, samples)

    def peer() -> None:
        optimizer.zero_grad()
        f.cross_entropy(model(x).flatten(0, 1), target.flatten()).backward()
        optimizer.step()

    assert len(w) == sum(p.numel() for p in model.parameters())
    return workload, w, samples, peer


def measure(batch: int, repeat: int, device: str = "cpu", **knobs) -> None:
    """Print the row of one size."""
    s = text.Settings(**knobs)
    workload, w, samples, peer = contestants(batch, device, s)
    wait = waiting(device)

    def ours() -> None:
        _, g = workload.gradient(w, samples)
        kernels.sgd(w, g, 0.01)
        wait()

    def theirs() -> None:
        peer()
        wait()

    mine, other, ratio = pairs(ours, theirs, repeat=repeat)
    what = (
        f"text model step (context {s.context}, width {s.width}, depth {s.depth}, batch {batch}) on {device}, "
        "against torch eager"
    )
    row(what, f"{1e3 * mine:.1f} ms, torch {1e3 * other:.1f} ms: {ratio:.2f}x", ">= 1x", ratio >= 1)


def main() -> None:
    """Print the rows: the default, a micro-batch of it in a pipeline, and a larger one."""
    torch.set_num_threads(1)
    measure(32, 20)
    measure(4, 100)
    measure(16, 2, context=64, width=128, depth=4)


if __name__ == "__main__":
    main()
