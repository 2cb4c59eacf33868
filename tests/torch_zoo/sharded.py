"""States, gradients and parameters in shards: ZeRO, FSDP, hybrid sharding, and checkpoints of shards."""

import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.optim import Adam

from tests.torch_zoo.data_parallel import replicated
from tests.torch_zoo.training import begin, network, train, weights


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


def sharded_by_layers(**options):
    model = network()
    for layer in model:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **options)
    return fully_shard(model, **options)


def fsdp2():
    rank, size = begin()
    model = sharded_by_layers()
    return train(model, Adam(model.parameters(), lr=1e-2), size, rank)


def hsdp():
    rank, size = begin()
    model = fully_shard(network(), mesh=init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("replicate", "shard")))
    return train(model, Adam(model.parameters(), lr=1e-2), size, rank)


def shared_folder(rank):
    """Return a new folder, the same on all ranks."""
    folder = [tempfile.mkdtemp() if rank == 0 else None]
    dist.broadcast_object_list(folder)
    return folder[0]


def sharded_checkpoint():
    """Train, save the shards, train on, load them into another model, and train that."""
    rank, size = begin()
    model = sharded_by_layers()
    optimizer = Adam(model.parameters(), lr=1e-2)
    train(model, optimizer, size, rank)
    folder = shared_folder(rank)
    dcp.save(dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True)), checkpoint_id=folder)
    train(model, optimizer, size, rank)

    other = sharded_by_layers()
    optimizer = Adam(other.parameters(), lr=1e-2)
    state = dict(zip(("model", "optimizer"), get_state_dict(other, optimizer), strict=True))
    dcp.load(state, checkpoint_id=folder)
    set_state_dict(other, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    return train(other, optimizer, size, rank) + weights(model)


def asynchronous_checkpoint():
    """Save while training continues, in a group of its own, and return what was saved."""
    rank, size = begin()
    model = sharded_by_layers()
    optimizer = Adam(model.parameters(), lr=1e-2)
    train(model, optimizer, size, rank)
    folder = shared_folder(rank)
    saved = dcp.async_save({"model": model.state_dict()}, checkpoint_id=folder, process_group=dist.new_group())
    train(model, optimizer, size, rank)
    saved.result()
    state = {"model": model.state_dict()}
    dcp.load(state, checkpoint_id=folder)
    model.load_state_dict(state["model"])
    return weights(model)


PROGRAMS = zero_1, fsdp1, fsdp2, hsdp, sharded_checkpoint, asynchronous_checkpoint
