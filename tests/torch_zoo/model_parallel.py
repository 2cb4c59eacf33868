"""Layers cut into shards: tensor and sequence parallelism, alone and with FSDP2, context parallelism, experts."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed._functional_collectives import all_gather_single_autograd, all_to_all_single_autograd
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.experimental import context_parallel as in_shards
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from torch.nn.functional import mse_loss, scaled_dot_product_attention
from torch.optim import SGD

from tests.torch_zoo.training import HIDDEN, IN, OUT, STEPS, batch, begin, network, train, weights


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
        x, y = batch(step, 1, 0, rows=max(8, size))
        optimizer.zero_grad()
        mse_loss(model(x.chunk(size)[rank]), y).backward()
        optimizer.step()
    return weights(model)


def tensor_parallel_and_fsdp2():
    _, size = begin()
    mesh = init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))
    model = parallelize_module(network(), mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["dp"])
    return train(model, SGD(model.parameters(), 0.05, foreach=False), size // 2, mesh["dp"].get_local_rank())


def context_parallel_by_gathering():
    """Attention over a sequence in shards, with the keys and values of all ranks. Their gradients are summed back."""
    rank, size = begin()
    torch.manual_seed(5)
    project = nn.Linear(IN, 3 * IN)
    x = torch.randn(4 * size, IN).chunk(size)[rank]  # (tokens, numbers)
    q, k, v = project(x).chunk(3, -1)
    k, v = (all_gather_single_autograd(part.contiguous(), 0, dist.group.WORLD) for part in (k, v))
    scaled_dot_product_attention(q[None], k[None], v[None]).square().mean().backward()
    for p in project.parameters():
        dist.all_reduce(p.grad)
    return [p.grad for p in project.parameters()]


def experts():
    """One expert per rank. Each token goes to an expert and back, by two all-to-alls."""
    rank, size = begin()
    torch.manual_seed(rank)
    expert, x = nn.Linear(IN, IN), torch.randn(3 * size, IN)
    optimizer = SGD(expert.parameters(), 0.05)
    counts = [3] * size
    for _ in range(STEPS):
        there = all_to_all_single_autograd(x, counts, counts, dist.group.WORLD)
        back = all_to_all_single_autograd(expert(there), counts, counts, dist.group.WORLD)
        optimizer.zero_grad()
        back.square().mean().backward()
        optimizer.step()
    return weights(expert)


def context_parallel():
    """On a CPU torch has no ring, and takes minutes to derive how attention is cut; on GPUs its ring passes keys on."""
    _, size = begin()
    torch.manual_seed(5)
    x = torch.randn(1, 1, 4 * size, 8)  # (batch, heads, tokens, numbers)
    with in_shards(init_device_mesh("cpu", (size,)), buffers=[x], buffer_seq_dims=[2]):
        return [nn.functional.scaled_dot_product_attention(x, x, x)]


PROGRAMS = (
    *(tensor_parallel, sequence_parallel, tensor_parallel_and_fsdp2),
    *(context_parallel, context_parallel_by_gathering, experts),
)
