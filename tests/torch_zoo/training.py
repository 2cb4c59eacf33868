"""What the programs train: a small network on batches drawn by step."""

import torch
import torch.distributed as dist
from torch import nn

IN, HIDDEN, OUT, STEPS = 32, 128, 8, 4


def begin() -> tuple[int, int]:
    """Join the group of all ranks. Return (rank, size)."""
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def network(*first):
    torch.manual_seed(5)
    inner = nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
    return nn.Sequential(*first, *inner, nn.Linear(HIDDEN, OUT))


def batch(step, shards, shard, rows=8):
    """Return this shard of the inputs and targets of a step, `rows` of them."""
    generator = torch.Generator().manual_seed(step)
    x, y = torch.randn(rows * shards, IN, generator=generator), torch.randn(rows * shards, OUT, generator=generator)
    return x.chunk(shards)[shard], y.chunk(shards)[shard]


def train(model, optimizer, shards=1, shard=0, steps=STEPS):
    for step in range(steps):
        x, y = batch(step, shards, shard)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return weights(model)


def weights(model):
    return [whole(p) for p in model.parameters()]


def whole(x):
    """Return a copy of a tensor, put together if ranks hold shards of it."""
    return (x.full_tensor() if hasattr(x, "full_tensor") else x).detach().clone()
