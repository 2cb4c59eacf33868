"""Programs of torch.distributed that run on simulated ranks and on real processes (gloo), and how far they differ.

python -m tests.torch_zoo 2 [NAME ...]        a table of all, or of these
"""

from __future__ import annotations

import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    SequenceParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD, Adam
from torch.utils.checkpoint import checkpoint

IN, HIDDEN, OUT, STEPS = 32, 128, 8, 4


def begin() -> tuple[int, int]:
    if not dist.is_initialized():
        dist.init_process_group("gloo")
    return dist.get_rank(), dist.get_world_size()


def network(*first):
    torch.manual_seed(5)
    inner = nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
    return nn.Sequential(*first, *inner, nn.Linear(HIDDEN, OUT))


def batch(step, shards, shard):
    generator = torch.Generator().manual_seed(step)
    x, y = torch.randn(8 * shards, IN, generator=generator), torch.randn(8 * shards, OUT, generator=generator)
    return x.chunk(shards)[shard], y.chunk(shards)[shard]


def train(model, optimizer, shards=1, shard=0, steps=STEPS):
    for step in range(steps):
        x, y = batch(step, shards, shard)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return weights(model)


def weights(model):
    return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone() for p in model.parameters()]


def replicated(model=None, **options):
    return DistributedDataParallel(model or network(), bucket_cap_mb=0.05, **options)


def ddp():
    rank, size = begin()
    model = replicated()
    return train(model, SGD(model.parameters(), 0.05, momentum=0.9), size, rank)


def ddp_unused():
    rank, size = begin()
    model = network()
    model.extra = nn.Linear(3, 3)
    model.forward = nn.Sequential(*list(model)[:5]).forward
    model = replicated(model, find_unused_parameters=True)
    return train(model, SGD(model.parameters(), 0.05), size, rank)


def ddp_batch_norm():
    rank, size = begin()
    model = replicated(network(nn.BatchNorm1d(IN)))
    return train(model, SGD(model.parameters(), 0.05), size, rank)


def ddp_join():
    rank, size = begin()
    model = replicated()
    with Join([model]):
        train(model, SGD(model.parameters(), 0.05), size, rank, steps=2 + rank % 2)
    return weights(model)


def ddp_no_sync():
    rank, size = begin()
    model = replicated()
    optimizer = SGD(model.parameters(), 0.05)
    for step in range(STEPS):
        x, y = batch(step, size, rank)
        if step % 2 == 0:
            with model.no_sync():
                nn.functional.mse_loss(model(x), y).backward()
        else:
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    return weights(model)


def ddp_fp16():
    rank, size = begin()
    model = replicated()
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return train(model, SGD(model.parameters(), 0.05), size, rank)


def ddp_checkpointing():
    rank, size = begin()

    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False)

    model = replicated(Checkpointed())
    return train(model, SGD(model.parameters(), 0.05), size, rank)


def post_local_sgd():
    rank, size = begin()
    model, (group, _) = replicated(), dist.new_subgroups(1)
    model.register_comm_hook(PostLocalSGDState(None, group, start_localSGD_iter=2), post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    return train(model, PostLocalSGDOptimizer(SGD(model.parameters(), 0.05), averager), size, rank, steps=6)


def zero_1():
    rank, size = begin()
    model = replicated()
    return train(model, ZeroRedundancyOptimizer(model.parameters(), Adam, lr=1e-2), size, rank)


def fsdp1():
    rank, size = begin()
    model = FullyShardedDataParallel(network(), device_id=torch.device("cpu"))
    train(model, Adam(model.parameters(), lr=1e-2), size, rank)
    with FullyShardedDataParallel.summon_full_params(model):
        return weights(model)


def fsdp2():
    rank, size = begin()
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer)
    fully_shard(model)
    return train(model, Adam(model.parameters(), lr=1e-2), size, rank)


def hsdp():
    rank, size = begin()
    model = fully_shard(network(), mesh=init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard")))
    return train(model, Adam(model.parameters(), lr=1e-2), size, rank)


def tensor_parallel():
    _, size = begin()
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    model = parallelize_module(network(), init_device_mesh("cpu", (size,)), plan)
    return train(model, SGD(model.parameters(), 0.05, foreach=False))


def sequence_parallel():
    rank, size = begin()
    plan = {
        "0": SequenceParallel(sequence_dim=0),
        "1": ColwiseParallel(input_layouts=Shard(0)),
        "3": RowwiseParallel(output_layouts=Replicate()),
    }
    torch.manual_seed(5)
    model = nn.Sequential(nn.LayerNorm(IN), nn.Linear(IN, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, OUT))
    model = parallelize_module(model, init_device_mesh("cpu", (size,)), plan)
    optimizer = SGD(model.parameters(), 0.05, foreach=False)
    for step in range(STEPS):
        x, y = batch(step, 1, 0)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x.chunk(size)[rank]), y).backward()
        optimizer.step()
    return weights(model)


def tensor_parallel_and_fsdp2():
    _, size = begin()
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(network(), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    return train(model, SGD(model.parameters(), 0.05, foreach=False), size // 2, mesh["dp"].get_local_rank())


def pipeline(schedule, per_rank=1):
    rank, size = begin()
    torch.manual_seed(5)
    layers = [nn.Sequential(nn.Linear(IN, IN), nn.Tanh()) for _ in range(size * per_rank)]
    numbers = [rank + turn * size for turn in range(per_rank)]
    stages = [PipelineStage(layers[k], k, len(layers), torch.device("cpu")) for k in numbers]
    run = schedule(stages if per_rank > 1 else stages[0], 4, loss_fn=nn.functional.mse_loss)
    optimizer = SGD([p for k in numbers for p in layers[k].parameters()], 0.1)
    x, y = torch.randn(16, IN), torch.randn(16, IN)
    for _ in range(STEPS):
        optimizer.zero_grad()
        run.step(*([x] * (rank == 0)), **({"target": y} if rank == size - 1 else {}))
        optimizer.step()
    return [p for k in numbers for p in weights(layers[k])]


def gpipe():
    return pipeline(ScheduleGPipe)


def one_f_one_b():
    return pipeline(Schedule1F1B)


def interleaved():
    return pipeline(ScheduleInterleaved1F1B, per_rank=2)


PROGRAMS = {
    program.__name__: program
    for program in (
        *(ddp, ddp_unused, ddp_batch_norm, ddp_join, ddp_no_sync, ddp_fp16, ddp_checkpointing, post_local_sgd, zero_1),
        *(fsdp1, fsdp2, hsdp, tensor_parallel, sequence_parallel, tensor_parallel_and_fsdp2),
        *(gpipe, one_f_one_b, interleaved),
    )
}
QUICK = "ddp", "fsdp2", "one_f_one_b", "tensor_parallel"


def _process(rank: int, size: int, folder: str, names: Sequence[str]) -> None:
    """Run the programs on this real process, one after the other, and save what each gives."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)  # as torchrun sets it
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=size)
    for name in names:
        torch.save(PROGRAMS[name](), Path(folder, f"{name}.{rank}"))
        dist.barrier()
    dist.destroy_process_group()


def on_processes(size: int, names: Sequence[str]) -> dict[str, list]:
    """Return the results of each rank on real processes, by program."""
    with tempfile.TemporaryDirectory() as folder:
        mp.spawn(_process, (size, folder, names), size)
        return {name: [torch.load(Path(folder, f"{name}.{rank}")) for rank in range(size)] for name in names}


def simulated(size: int, name: str) -> list:
    """Return the results of each rank on the simulated cluster."""
    from cluster.torch import simulate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return simulate(PROGRAMS[name], size, on_line=lambda rank, line: None).results


def difference(first: list, second: list) -> float:
    """Return the largest difference of a weight on any rank; 0 means the same bits."""
    pairs = [pair for ours, theirs in zip(first, second, strict=True) for pair in zip(ours, theirs, strict=True)]
    same = all(torch.equal(ours, theirs) for ours, theirs in pairs)
    return 0.0 if same else max((ours - theirs).abs().max().item() for ours, theirs in pairs)


def main() -> None:
    size, names = int(sys.argv[1]), sys.argv[2:] or list(PROGRAMS)
    real = on_processes(size, names)
    for name in names:
        apart = difference(simulated(size, name), real[name])
        print(f"{name:28s}{f'{apart:.1e}' if apart else 'the same bits'}", flush=True)


if __name__ == "__main__":
    main()
