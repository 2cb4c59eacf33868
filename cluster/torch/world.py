"""torch.distributed as the ranks of a run see it: our own groups and rendezvous, whatever backend the script names."""

import contextlib
import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.distributed_c10d as c10d
import torch.distributed.nn.functional  # at import, it takes the current world as a default, which must not be a rank's
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.testing._internal.distributed.multi_threaded_pg import ThreadLocalWorld

from cluster.torch.futures import delay_all_reduce, wait_for_future
from cluster.torch.group import Group
from cluster.torch.memory import take_stock
from cluster.torch.process import current, this
from cluster.torch.replaced import replace_names
from cluster.torch.store import Store

NAME = "lockstep"  # of our backend
PATIENCE = timedelta(minutes=30)  # ignored: waiting in vain is a deadlock


def _create(options: Any, _: Any) -> Group:
    mine = this()
    members = list(options.global_ranks_in_group) or list(range(mine.comm.size))
    return Group(mine, options.group_rank, members, options.group_id)


dist.Backend.register_backend(NAME, _create, extended_api=True, devices=["cpu"])


def _new_group(size: int, rank: int, ranks: Any, backend: Any, *args: Any, **options: Any) -> Any:
    """Return a new group of our backend, whatever backend the script names."""
    return _real_new_group(size, rank, ranks, dist.Backend(NAME), *args, **options)


_real_new_group: Callable = c10d._new_process_group_helper


def _meet(url: str, rank: int = -1, world_size: int = -1, **_: Any) -> Iterator[tuple[Store, int, int]]:
    """Yield the run's store, and this rank and the number of ranks. Raise ValueError if the script names others."""
    mine = this()
    number = rank if rank >= 0 else int(os.environ["RANK"])
    size = world_size if world_size > 0 else int(os.environ["WORLD_SIZE"])
    if (number, size) != (mine.comm.rank, mine.comm.size):
        raise ValueError(
            f"init_process_group got rank {number} of {size}, but this is rank {mine.comm.rank} of "
            f"{mine.comm.size}; take both from the environment, as torchrun sets them, or simulate {size} ranks."
        )
    yield Store(mine.shared.values), number, size


def _monitored_barrier(group: Any = None, timeout: Any = None, wait_all_ranks: bool = False) -> None:
    """Run a plain barrier instead, because here every deadlock report says who is missing."""
    dist.barrier(group)


_real_backward = torch.autograd.backward


def _backward(tensors: Any, *args: Any, **options: Any) -> Any:
    """Run backward and return its result; record the loss, the scalar on which the script calls it."""
    mine = current()
    if mine and isinstance(tensors, torch.Tensor) and tensors.numel() == 1:
        log = mine.comm.event_log
        with mine.pricer.pause():
            log.losses.append((max(log.step, 0), len(log.losses) + 1, mine.rank.now, float(tensors.detach())))
    return _real_backward(tensors, *args, **options)


def _before_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    if mine := current():
        mine.pricer.activity.updating = True


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    if mine := current():
        mine.pricer.charge()
        mine.pricer.activity.updating = False
        mine.end_step(take_stock(optimizer), id(optimizer))
        mine.pricer.skip()


@contextlib.contextmanager
def own_world() -> Iterator[None]:
    """During a run, give each rank its own torch.distributed."""
    hooks = register_optimizer_step_pre_hook(_before_step), register_optimizer_step_post_hook(_after_step)
    with (
        replace_names(c10d, _world=ThreadLocalWorld(), _new_process_group_helper=_new_group, rendezvous=_meet),
        replace_names(c10d, _get_default_timeout=lambda backend: PATIENCE),
        replace_names(dist, monitored_barrier=_monitored_barrier),
        replace_names(torch._C.Future, wait=wait_for_future),
        replace_names(dist.Reducer, _delay_all_reduce=delay_all_reduce),
        replace_names(torch.autograd, backward=_backward),
    ):
        torch._C._distributed_c10d._set_thread_isolation_mode(True)
        try:
            yield
        finally:
            torch._C._distributed_c10d._set_thread_isolation_mode(False)
            for hook in hooks:
                hook.remove()
