"""Fully sharded training: every rank keeps a part of each layer, and gathers a layer just before it is needed.

torchrun --nproc-per-node 4 fsdp2.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

STEPS, BATCH, WIDTH = 12, 128, 128

dist.init_process_group("gloo")
rank = dist.get_rank()

torch.manual_seed(0)  # the same weights on every rank, before they are sharded
model = nn.Sequential(*(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(4)), nn.Linear(WIDTH, 10))
for layer in model:
    fully_shard(layer)  # all-gathered before its forward and its backward pass, freed after each
fully_shard(model)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)  # its state is sharded as well

torch.manual_seed(1 + rank)  # each rank draws its own samples
for step in range(STEPS):
    x = torch.randn(BATCH, WIDTH)
    y = x[:, :10].argmax(dim=1)
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()  # reduce-scatters the gradient of each layer
    optimizer.step()
    optimizer.zero_grad()
    if rank == 0:
        print(f"step {step + 1}, loss: {loss.item():.3f}")

dist.destroy_process_group()
