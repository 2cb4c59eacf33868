"""Torch buffers: the numbers that a torch module keeps in addition to its parameters.

A model consists of its parameters only, as in `workloads/batch_norm.py`. Norms therefore train with the statistics of
each batch, and are evaluated with those of training samples, from an extra forward pass with the weights being
evaluated; their running averages are never read. Other buffers must be constants, such as a mask: if training changed
them, they would differ between ranks.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np


def norms(module) -> list:
    """Return the batch and instance norms of `module` that would keep running statistics, except frozen ones."""
    from torch.nn.modules.batchnorm import _NormBase

    return [m for m in module.modules() if isinstance(m, _NormBase) and m.running_mean is not None and m.training]


def is_over_batch(module) -> bool:
    """True if, in training, a sample's outputs depend on the rest of its batch."""
    from torch.nn.modules.batchnorm import _BatchNorm

    return any(isinstance(m, _BatchNorm) and (m.training or m.running_mean is None) for m in module.modules())


def take_statistics(some: Iterable, forward: Callable[[], Any]) -> None:
    """Set the statistics of the norms `some` from the samples that `forward` passes through them."""
    for norm in some:
        norm.reset_running_stats()
        norm.momentum = 1.0  # so that the running average is that of the last pass
        norm.train()
    forward()
    for norm in some:
        norm.eval()


def check(module, batches: Sequence[np.ndarray]) -> None:
    """Raise ValueError if training passes of these batches change a buffer other than a norm's statistics."""
    import torch

    module = copy.deepcopy(module)
    kept = {id(b) for norm in norms(module) for b in (norm.running_mean, norm.running_var, norm.num_batches_tracked)}
    others = [name for name, buffer in module.named_buffers() if id(buffer) not in kept]
    if not others:
        return
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        for x in batches:
            before = {name: module.get_buffer(name) for name in others}
            versions = {name: buffer._version for name, buffer in before.items()}  # which in-place writes increase
            module(torch.from_numpy(x))
            after = {name: module.get_buffer(name) for name in others}
            changed = [n for n in others if before[n]._version != versions[n] or not _same(before[n], after[n])]
            if changed:
                raise ValueError(
                    f"training changes the module's buffer {changed[0]}, so it would differ between ranks; make it a "
                    "parameter or a constant. Only the running statistics of norms may change."
                )


def _same(a, b) -> bool:
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())  # NaN is equal to itself
