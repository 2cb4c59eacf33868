"""DistributedDataParallel with its options and hooks, and replicas that are averaged now and then."""

import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
from torch.distributed.algorithms.ddp_comm_hooks.post_localSGD_hook import PostLocalSGDState, post_localSGD_hook
from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
from torch.distributed.algorithms.join import Join
from torch.distributed.algorithms.model_averaging.averagers import PeriodicModelAverager
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint

from tests.torch_zoo.training import IN, STEPS, batch, begin, network, train, weights


def replicated(model=None, bucket_cap_mb=0.05, **options):
    return DistributedDataParallel(model or network(), bucket_cap_mb=bucket_cap_mb, **options)


def train_replicas(model=None, hook=None, **options):
    """Train with DDP and its options; `hook` is (function, state)."""
    rank, size = begin()
    model = replicated(model, **options)
    if hook:
        model.register_comm_hook(*hook)
    return train(model, SGD(model.parameters(), 0.05, momentum=0.9), size, rank)


def ddp():
    return train_replicas()


def ddp_unused_parameters():
    model = network()
    model.extra = nn.Linear(3, 3)
    model.forward = nn.Sequential(*list(model)[:5]).forward
    return train_replicas(model, find_unused_parameters=True)


def ddp_static_graph():
    return train_replicas(static_graph=True)


def ddp_bucket_view():
    return train_replicas(gradient_as_bucket_view=True)


def ddp_batch_norm():
    return train_replicas(network(nn.BatchNorm1d(IN)))


def ddp_sync_batch_norm():
    return train_replicas(nn.SyncBatchNorm.convert_sync_batchnorm(network(nn.BatchNorm1d(IN))))


def ddp_uneven_inputs():
    rank, size = begin()
    model = replicated()
    with Join([model]):
        train(model, SGD(model.parameters(), 0.05), size, rank, steps=2 + rank % 2)
    return weights(model)


def ddp_accumulation():
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
    return train_replicas(hook=(None, default_hooks.fp16_compress_hook))


def ddp_power_sgd():
    """One bucket: gloo calls callbacks, which begin the next all-reduce, in an order of its own on each rank."""
    state = PowerSGDState(None, matrix_approximation_rank=2, start_powerSGD_iter=2, min_compression_rate=1)
    return train_replicas(bucket_cap_mb=25, hook=(state, powerSGD_hook))


def ddp_checkpointing():
    class Checkpointed(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = network()

        def forward(self, x):
            return checkpoint(self.inner, x, use_reentrant=False)

    return train_replicas(Checkpointed())


def post_local_sgd():
    rank, size = begin()
    model, (group, _) = replicated(), dist.new_subgroups(1)
    model.register_comm_hook(PostLocalSGDState(None, group, start_localSGD_iter=2), post_localSGD_hook)
    averager = PeriodicModelAverager(period=2, warmup_steps=2)
    return train(model, PostLocalSGDOptimizer(SGD(model.parameters(), 0.05), averager), size, rank, steps=6)


PROGRAMS = (
    *(ddp, ddp_unused_parameters, ddp_static_graph, ddp_bucket_view, ddp_batch_norm, ddp_uneven_inputs),
    *(ddp_accumulation, ddp_fp16, ddp_power_sgd, ddp_checkpointing, post_local_sgd),
)
NOT_ON_GLOO = {ddp_sync_batch_norm: "SyncBatchNorm layers only work with GPU modules"}
