"""Gradients that travel in buckets while backward continues: one solution."""

import torch
import torch.distributed as dist
from torch import nn


class Bucketed(nn.Module):
    """Data-parallel training of `module`: each bucket of gradients is sent as soon as it is full."""

    def __init__(self, module, bucket_bytes):
        """Divide the parameters into buckets of at most `bucket_bytes`, the last layers first."""
        super().__init__()
        self.module = module
        self.buckets = [[]]
        size = 0
        for p in reversed(list(module.parameters())):
            nbytes = p.numel() * p.element_size()
            if self.buckets[-1] and size + nbytes > bucket_bytes:
                self.buckets.append([])
                size = 0
            self.buckets[-1].append(p)
            size += nbytes
        for bucket in self.buckets:
            for p in bucket:
                p.register_post_accumulate_grad_hook(lambda _, bucket=bucket: self.count(bucket))
        self.ready = {}  # how many gradients of each bucket have been computed
        self.under_way = []

    def forward(self, x):
        """Return what the module returns."""
        return self.module(x)

    def count(self, bucket):
        """Count one more gradient of `bucket`. Send the bucket if it was the last."""
        self.ready[id(bucket)] = self.ready.get(id(bucket), 0) + 1
        if self.ready[id(bucket)] == len(bucket):
            flat = torch.cat([p.grad.flatten() for p in bucket])
            self.under_way.append((dist.all_reduce(flat, async_op=True), flat, bucket))

    def finish(self):
        """Wait for all buckets of this step, and replace every .grad by its mean over all ranks."""
        for work, flat, bucket in self.under_way:
            work.wait()
            flat /= dist.get_world_size()
            for p, part in zip(bucket, flat.split([p.numel() for p in bucket]), strict=True):
                p.grad.copy_(part.view_as(p))
        self.ready, self.under_way = {}, []
