"""Pipeline parallelism: each rank holds one stage of the model, and micro-batches flow through the stages (1F1B).

torchrun --nproc-per-node 4 pipeline.py
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, Schedule1F1B

STEPS, BATCH, WIDTH, CLASSES = 12, 256, 128, 4

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
last = rank == size - 1

torch.manual_seed(rank)  # each stage has its own weights
layers = [nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES if last else WIDTH)]
stage = PipelineStage(nn.Sequential(*layers), rank, size, torch.device("cpu"))
schedule = Schedule1F1B(stage, n_microbatches=2 * size, loss_fn=nn.functional.cross_entropy)
optimizer = torch.optim.Adam(stage.submod.parameters(), lr=3e-3)

samples = torch.Generator().manual_seed(7)  # all ranks draw the same samples: the first uses x, the last one y
for step in range(STEPS):
    x = torch.randn(BATCH, WIDTH, generator=samples)
    y = x[:, :CLASSES].argmax(dim=1)
    optimizer.zero_grad()
    losses = []  # of the micro-batches, on the last rank
    schedule.step(*([x] if rank == 0 else []), **({"target": y, "losses": losses} if last else {}))
    optimizer.step()
    if last:
        print(f"step {step + 1}, loss: {torch.stack(losses).mean().item():.3f}")

dist.destroy_process_group()
