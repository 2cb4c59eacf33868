"""A pipeline of Transformer layers, whose stages are cut by hand or, with --tracer, by torch."""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.pipelining import PipelineStage, ScheduleGPipe, SplitPoint, pipeline

DIM, VOCABULARY, TOKENS, BATCH = 32, 50, 8, 16


class Transformer(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, DIM)
        kind = nn.TransformerEncoderLayer
        self.layers = nn.ModuleDict({str(k): kind(DIM, 2, 64, 0.0, batch_first=True) for k in range(layers)})
        self.norm, self.output = nn.LayerNorm(DIM), nn.Linear(DIM, VOCABULARY)

    def forward(self, x):
        x = self.embedding(x) if self.embedding is not None else x
        for layer in self.layers.values():
            x = layer(x)
        x = self.norm(x) if self.norm is not None else x
        return self.output(x).float() if self.output is not None else x


def manual_stage(model, rank, size, device):
    """Delete what other stages have."""
    for k in range(len(model.layers)):
        if k != rank:
            del model.layers[str(k)]
    if rank > 0:
        model.embedding = None
    if rank < size - 1:
        model.norm = model.output = None
    return PipelineStage(model, rank, size, device)


def traced_stage(model, rank, size, device, micro_batch):
    split = {f"layers.{k}": SplitPoint.BEGINNING for k in range(1, size)}
    return pipeline(model, mb_args=(micro_batch,), split_spec=split).build_stage(rank, device)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tracer", action="store_true")
    parser.add_argument("--micro-batches", type=int, default=4)
    args = parser.parse_args()
    dist.init_process_group()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.manual_seed(0)
    model, device = Transformer(size), torch.device("cpu")
    x, y = (torch.randint(0, VOCABULARY, (BATCH, TOKENS)) for _ in range(2))
    if args.tracer:
        stage = traced_stage(model, rank, size, device, x.chunk(args.micro_batches)[0])
    else:
        stage = manual_stage(model, rank, size, device)

    def loss_of(outputs, targets):
        return nn.functional.cross_entropy(outputs.reshape(-1, VOCABULARY), targets.reshape(-1))

    schedule = ScheduleGPipe(stage, args.micro_batches, loss_fn=loss_of)
    optimizer = torch.optim.Adam(stage.submod.parameters(), lr=1e-3)
    for _ in range(3):
        optimizer.zero_grad()
        losses = []
        arguments = (x,) if rank == 0 else ()
        schedule.step(*arguments, **({"target": y, "losses": losses} if rank == size - 1 else {}))
        optimizer.step()
        if losses:
            print(f"losses {[round(one.item(), 4) for one in losses]}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
