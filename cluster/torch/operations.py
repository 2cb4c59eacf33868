"""Torch operations: which of them take time, which are slow, and how many bytes each moves."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.utils.flop_counter import flop_registry

aten = torch.ops.aten
NO_WORK = {
    *(aten._unsafe_view.default, aten.detach.default, aten.empty.memory_format, aten.empty_strided.default),
    *(aten.empty_like.default, aten.new_empty.default, aten.new_empty_strided.default, aten.lift_fresh.default),
    aten._local_scalar_dense.default,
}
"""Operations, other than views, that compute nothing and move at most one number."""

READS = {
    *(aten._local_scalar_dense.default, aten.equal.default, aten.nonzero.default, aten.masked_select.default),
    *(aten._unique2.default, aten.unique_dim.default, aten.unique_consecutive.default),
}
"""Operations whose result the host needs: a number, or the size of a tensor."""

SLOW = (
    *("exp", "log", "tanh", "sigmoid", "silu", "gelu", "erf", "softmax", "softplus", "sum", "mean", "norm", "pool"),
    *("scaled_dot_product", "cumsum", "sort", "topk"),
)
"""Parts of the names of operations that compute a lot per number, rather than just moving it."""


class Operation(NamedTuple):
    """What an operation's name and schema reveal about it."""

    works: bool  # reads or writes numbers, rather than only returning a view
    is_slow: bool
    is_fresh: bool  # its results have storage of their own
    is_read: bool  # the host waits for its result
    is_block: bool  # the start or the end of a record_function
    flops: Callable[..., int] | None


_known: dict[Any, Operation] = {}


def operation(func: Any) -> Operation:
    """Return the description of this operation."""
    found = _known.get(func)
    if found is None:
        returns, name = func._schema.returns, func._schema.name.partition("::")[2]
        view = bool(returns) and all(one.alias_info is not None and not one.alias_info.is_write for one in returns)
        works = not (view or func in NO_WORK or func.namespace not in ("aten", "prims"))
        found = _known[func] = Operation(
            works=works,
            is_slow=works and any(part in name for part in SLOW),
            is_fresh=works and all(one.alias_info is None for one in returns),
            is_read=func in READS,
            is_block=func.namespace == "profiler",
            flops=flop_registry.get(func._overloadpacket),
        )
    return found


def nbytes(x: Any) -> int:
    """Return the size in bytes of a tensor, or of all tensors in a list of arguments."""
    if isinstance(x, torch.Tensor):
        return x.numel() * x.element_size()
    total = 0
    if isinstance(x, list | tuple):
        for part in x:
            total += part.numel() * part.element_size() if isinstance(part, torch.Tensor) else nbytes(part)
    return total


def itemsize(args: Any) -> int:
    """Return the bytes per number of the first tensor among these arguments; 4 if there is none."""
    return next((x.element_size() for x in args if isinstance(x, torch.Tensor)), 4)


def count_flops(func: Any, known: Operation, args: Any, kwargs: Any, out: Any) -> int:
    """Return the FLOPs of one call of an operation that has a formula for them."""
    assert known.flops
    if kwargs:
        return known.flops(*args, **kwargs, out_val=out)
    key = func, *[x.shape if isinstance(x, torch.Tensor) else str(x) for x in args]
    found = _flops.get(key)
    if found is None:
        found = _flops[key] = known.flops(*args, out_val=out)
    return found


_flops: dict[Any, int] = {}
"""FLOPs by operation and shapes, cached because torch's formulas take as long as a small operation."""
