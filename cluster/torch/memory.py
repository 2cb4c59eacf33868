"""What a rank's memory holds at the end of a step: the parameters of its optimizer, their gradients, and its state.

Sizes are those of local storage: of a sharded parameter the shard counts. Activations and buffers are not recorded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

KINDS = "parameters", "gradients", "optimizer state"


def take_stock(optimizer: torch.optim.Optimizer) -> dict[str, int]:
    """Return the bytes of each kind that belong to this optimizer."""
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    state = [x for values in optimizer.state.values() if isinstance(values, dict) for x in values.values()]
    sizes = (parameters, [p.grad for p in parameters], state)
    return {kind: _local_bytes(tensors) for kind, tensors in zip(KINDS, sizes, strict=True)}


def _local_bytes(tensors: Iterable[Any]) -> int:
    total = 0
    for x in tensors:
        local = getattr(x, "_local_tensor", x)  # of a DTensor
        if isinstance(local, torch.Tensor):
            total += local.numel() * local.element_size()
    return total
