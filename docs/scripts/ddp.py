"""Data-parallel training: every rank has the whole model and its own samples, and DDP averages the gradients.

torchrun --nproc-per-node 4 ddp.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS, BATCH, CLASSES = 20, 32, 10

dist.init_process_group("gloo")
rank = dist.get_rank()

torch.manual_seed(0)  # DDP starts all ranks with the weights of rank 0
net = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, CLASSES))
model = DistributedDataParallel(net, bucket_cap_mb=0.5)  # small buckets travel while backward() still computes
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)

torch.manual_seed(1 + rank)  # each rank draws its own samples
for step in range(STEPS):
    x = torch.randn(BATCH, 64)
    y = x[:, :CLASSES].argmax(dim=1)  # the class is the largest of the first ten features
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()  # starts an all-reduce for each bucket, and waits for all of them
    optimizer.step()
    if rank == 0 and step % 5 == 4:
        print(f"step {step + 1}, loss: {loss.item():.3f}")

dist.destroy_process_group()
