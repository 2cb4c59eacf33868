"""FSDP2 for a Transformer: meta device, layers sharded one by one, mixed precision, prefetching, and a checkpoint."""

import os
import sys
from dataclasses import dataclass

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
import torch.nn.functional as F
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
)
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Shard


@dataclass
class ModelArgs:
    n_layers: int = 3
    vocab_size: int = 16
    max_seq_len: int = 16
    dim: int = 64
    n_heads: int = 4


class Block(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.n_heads = args.n_heads
        self.norms = nn.ModuleList(nn.LayerNorm(args.dim) for _ in range(2))
        self.qkv, self.out = nn.Linear(args.dim, 3 * args.dim), nn.Linear(args.dim, args.dim)
        self.w1, self.w2 = nn.Linear(args.dim, 4 * args.dim), nn.Linear(4 * args.dim, args.dim)

    def forward(self, x):
        q, k, v = (
            part.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for part in self.qkv(self.norms[0](x)).chunk(3, -1)
        )
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.w2(F.gelu(self.w1(self.norms[1](x))))

    def reset_parameters(self):
        for module in (*self.norms, self.qkv, self.out, self.w1, self.w2):
            module.reset_parameters()


class Transformer(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab_size, args.dim)
        self.positions = nn.Embedding(args.max_seq_len, args.dim)
        self.layers = nn.ModuleList(Block(args) for _ in range(args.n_layers))
        self.output = nn.Linear(args.dim, args.vocab_size)

    def forward(self, tokens):
        x = self.tokens(tokens) + self.positions(torch.arange(tokens.size(1), device=tokens.device))
        for layer in self.layers:
            x = layer(x)
        return self.output(x)

    def reset_parameters(self):
        for module in (self.tokens, self.positions, *self.layers, self.output):
            module.reset_parameters()


def sharded(args):
    with torch.device("meta"):
        model = Transformer(args)
    policy = {"mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for layer in model.layers:
        fully_shard(layer, **policy)
    fully_shard(model, **policy)
    for k, layer in enumerate(model.layers):
        layer.set_modules_to_forward_prefetch(model.layers[k + 1 : k + 3])
        layer.set_modules_to_backward_prefetch(model.layers[max(0, k - 2) : k][::-1])
    model.to_empty(device="cpu")
    model.reset_parameters()
    return model


def main():
    dist.init_process_group()
    rank, size = int(os.environ["RANK"]), dist.get_world_size()
    torch.manual_seed(0)
    layers, steps = map(int, sys.argv[1:] or (3, 3))
    args = ModelArgs(n_layers=layers)
    model = sharded(args)
    assert isinstance(model, FSDPModule) and isinstance(model.output.weight, DTensor)
    assert model.output.weight.placements == (Shard(0),) and model.output.weight.dtype == torch.float32
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(steps):
        model.unshard()
        tokens = torch.randint(0, args.vocab_size, (4, args.max_seq_len))
        loss = F.cross_entropy(model(tokens).flatten(0, 1).float(), tokens.flatten())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        optimizer.zero_grad()
    state = {"model": get_model_state_dict(model), "optimizer": get_optimizer_state_dict(model, optimizer)}
    dcp.save(state, checkpoint_id="checkpoint")

    other = sharded(args)
    state = {"model": get_model_state_dict(other)}
    dcp.load(state, checkpoint_id="checkpoint")
    set_model_state_dict(other, state["model"])
    whole = get_model_state_dict(other, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    print(f"loss {loss.item():.4f}, the same again {all(torch.equal(a.to_local(), b.to_local()) for a, b in pairs)}")
    if rank == 0:
        print(f"{sum(x.numel() for x in whole.values())} numbers on {size} ranks")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
