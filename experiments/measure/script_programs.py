"""Torch programs whose steps reveal what operations, views and Python calls cost on a machine.

Each runs on a single rank and returns its step, which takes milliseconds. FSDP2 shards over one rank, so its Python
runs, but nothing is sent.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard

Step = Callable[[], object]


def dense(*widths: int) -> nn.Sequential:
    """Return dense layers of these widths with ReLU between them."""
    layers = [layer for a, b in pairwise(widths) for layer in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


class TransformerLayer(nn.Module):
    """A layer of a transformer with four heads."""

    def __init__(self, width: int):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:  # (batch, length, width)
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, 4, width // 4).permute(2, 0, 3, 1, 4)
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
        x = x + self.out(mixed.reshape(batch, length, width))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


def blocks(count: int, width: int) -> nn.Sequential:
    return nn.Sequential(*(TransformerLayer(width) for _ in range(count)))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor) -> Step:
    """Return a step that trains the model towards an output of zero."""

    def step() -> None:
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()

    return step


def small_mlp() -> Step:
    model = dense(64, 128, 128, 10)
    return train(model, torch.optim.SGD(model.parameters(), 0.01), torch.randn(32, 64))


def deep_mlp() -> Step:
    model = dense(*[32] * 40)
    return train(model, torch.optim.Adam(model.parameters(), 1e-3), torch.randn(16, 32))


def wide_mlp() -> Step:
    model = dense(768, 768, 768, 768)
    return train(model, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9), torch.randn(96, 768))


def transformer() -> Step:
    model = blocks(3, 48)
    return train(model, torch.optim.AdamW(model.parameters(), 1e-3), torch.randn(8, 12, 48))


def wide_transformer() -> Step:
    model = blocks(2, 256)
    return train(model, torch.optim.SGD(model.parameters(), 1e-3), torch.randn(8, 16, 256))


def convolutions() -> Step:
    def layer(channels: int, filters: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, filters, 3, padding=1), nn.BatchNorm2d(filters), nn.ReLU()]

    model = nn.Sequential(*layer(3, 16), nn.MaxPool2d(2), *layer(16, 32), nn.AdaptiveAvgPool2d(1))
    return train(model, torch.optim.SGD(model.parameters(), 0.01), torch.randn(8, 3, 32, 32))


def recurrent() -> Step:
    class Unrolled(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = nn.LSTMCell(32, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            state: Any = None
            for part in x:
                state = self.cell(part, state)
            return state[0]

    model = Unrolled()
    return train(model, torch.optim.SGD(model.parameters(), 0.1), torch.randn(12, 16, 32))


def shard_and_train(model: nn.Module, parts: list[nn.Module], x: torch.Tensor) -> Step:
    """Shard the model over one rank with FSDP2, and return a step that trains it."""
    groups = [dist.new_group([rank]) for rank in range(dist.get_world_size())]
    mesh = DeviceMesh.from_group(groups[dist.get_rank()], "cpu")
    for part in (*parts, model):
        fully_shard(part, mesh=mesh)
    return train(model, torch.optim.Adam(model.parameters(), 1e-3), x)


def sharded_mlp() -> Step:
    model = dense(48, 96, 96, 96, 16)
    return shard_and_train(model, list(model)[::2], torch.randn(24, 48))


def sharded_transformer() -> Step:
    model = blocks(2, 96)
    return shard_and_train(model, list(model), torch.randn(4, 16, 96))


PROGRAMS: dict[str, Callable[[], Step]] = {
    program.__name__: program
    for program in (
        *(small_mlp, deep_mlp, wide_mlp, transformer, wide_transformer, convolutions, recurrent),
        *(sharded_mlp, sharded_transformer),
    )
}
