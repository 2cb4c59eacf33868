"""Tensor and sequence parallelism within a node, FSDP2 between nodes, and a loss of shards."""

import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Replicate, Shard
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)

DIM, VOCABULARY, TOKENS = 64, 64, 16


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(DIM, 2 * DIM), nn.Linear(2 * DIM, DIM), nn.Linear(DIM, 2 * DIM)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ffn_norm, self.feed_forward = nn.LayerNorm(DIM), FeedForward()

    def forward(self, x):
        return x + self.feed_forward(self.ffn_norm(x))


class Model(nn.Module):
    def __init__(self, layers=2):
        super().__init__()
        self.tok_embeddings = nn.Embedding(VOCABULARY, DIM)
        self.layers = nn.ModuleList(Block() for _ in range(layers))
        self.norm, self.output = nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY)

    def forward(self, tokens):
        x = self.tok_embeddings(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.output(self.norm(x))


def parallelize(model, mesh):
    outside = {
        "tok_embeddings": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)),
        "norm": SequenceParallel(),
        "output": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
    }
    inside = {
        "ffn_norm": SequenceParallel(),
        "feed_forward": PrepareModuleInput(input_layouts=(Shard(1),), desired_input_layouts=(Replicate(),)),
        "feed_forward.w1": ColwiseParallel(),
        "feed_forward.w2": RowwiseParallel(output_layouts=Shard(1)),
        "feed_forward.w3": ColwiseParallel(),
    }
    parallelize_module(model, mesh["tp"], outside)
    for layer in model.layers:
        parallelize_module(layer, mesh["tp"], inside)
        fully_shard(layer, mesh=mesh["dp"])
    return fully_shard(model, mesh=mesh["dp"])


def main():
    size = int(os.environ["WORLD_SIZE"])
    tp = min(size, int(os.environ.get("TP_SIZE", "4")))
    mesh = init_device_mesh("cpu", (size // tp, tp), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    model = parallelize(Model(), mesh)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, foreach=True)
    torch.manual_seed(100 + mesh["dp"].get_local_rank())  # the ranks of a row have the same data
    for _ in range(3):
        tokens = torch.randint(0, VOCABULARY, (4, TOKENS))
        optimizer.zero_grad()
        with loss_parallel():
            loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
            loss.backward()
        optimizer.step()
        print(f"loss {loss.full_tensor().item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
