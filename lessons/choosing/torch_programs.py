"""Programs for `cluster.torch.simulate` that train a chain of dense layers with three strategies that torch offers."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

MEBIBYTE = 1 << 20


def chain(width: int, depth: int) -> nn.Sequential:
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.ReLU()) for _ in range(depth)))


def train(model: nn.Module, width: int, batch: int, steps: int) -> None:
    optimizer, x = torch.optim.Adam(model.parameters()), torch.randn(batch, width)
    for _ in range(steps):
        optimizer.zero_grad()
        mse_loss(model(x), x).backward()
        optimizer.step()


def ddp(width: int, depth: int, batch: int, steps: int, bucket: float) -> None:
    dist.init_process_group("gloo")
    train(DistributedDataParallel(chain(width, depth), bucket_cap_mb=bucket / MEBIBYTE), width, batch, steps)


def fsdp2(width: int, depth: int, batch: int, steps: int, bucket: float) -> None:
    dist.init_process_group("gloo")
    model = chain(width, depth)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    train(model, width, batch, steps)


def one_f_one_b(width: int, depth: int, batch: int, steps: int, bucket: float) -> None:
    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    mine = chain(width, depth)[rank * depth // ranks : (rank + 1) * depth // ranks]
    stage = PipelineStage(mine, rank, ranks, torch.device("cpu"))
    schedule = Schedule1F1B(stage, n_microbatches=ranks, loss_fn=mse_loss)
    optimizer, x = torch.optim.Adam(mine.parameters()), torch.randn(ranks * batch, width)
    for _ in range(steps):
        optimizer.zero_grad()
        schedule.step(*([x] if rank == 0 else []), **({"target": x} if rank == ranks - 1 else {}))
        optimizer.step()


PROGRAMS = {"overlapped": ddp, "ZeRO-3": fsdp2, "1F1B": one_f_one_b}
"""Strategy name -> program(width, depth, batch of a rank, steps, bytes of a bucket)."""
