"""Reductions of torch tensors in the order of a ring, so that two ranks give the same bits as gloo."""

from collections.abc import Sequence
from functools import reduce
from itertools import accumulate
from typing import Any

import torch
from torch.distributed import ReduceOp

from cluster.comm import ClusterError, shares
from cluster.torch.process import script_line, this

OPERATIONS = {
    ReduceOp.SUM: torch.add,
    ReduceOp.AVG: torch.add,
    ReduceOp.PRODUCT: torch.mul,
    ReduceOp.MIN: torch.minimum,
    ReduceOp.MAX: torch.maximum,
    ReduceOp.BAND: torch.bitwise_and,
    ReduceOp.BOR: torch.bitwise_or,
    ReduceOp.BXOR: torch.bitwise_xor,
}


def operation_of(options: Any) -> Any:
    """Return the operation named by these options, a key of OPERATIONS. Raise ClusterError if it is not supported."""
    op = getattr(options, "reduceOp", ReduceOp.SUM)
    op = getattr(op, "op", op)  # of a ReduceOp or a RedOpType
    if op not in OPERATIONS:
        raise ClusterError(
            f"rank {this().rank.number} reduces by {op_name(op)} ({script_line()}), which is not simulated; use SUM, "
            "AVG, PRODUCT, MIN, MAX, BAND, BOR or BXOR."
        )
    return op


def op_name(op: Any) -> str:
    return str(op).rpartition(".")[2]


def reduce_whole(vectors: list[torch.Tensor], op: Any, sizes: Sequence[int] | None = None) -> torch.Tensor:
    """Return the reduction of tensors of one shape; the sum of piece c starts on rank c + 1 and ends on rank c.

    `sizes` are the lengths of the pieces, one per rank; by default, the pieces are as equal as possible.
    """
    function, size = OPERATIONS[op], len(vectors)
    flat = [x.detach().reshape(-1) for x in vectors]
    if size < 3:
        total = reduce(function, flat) if size > 1 else flat[0].clone()
    else:
        total = _in_order(function, flat, _slices(sizes) if sizes else shares(len(flat[0]), size))
    return _average(total, op, size).view_as(vectors[0])


def _slices(sizes: Sequence[int]) -> list[slice]:
    ends = list(accumulate(sizes))
    return [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]


def _in_order(function: Any, flat: list[torch.Tensor], pieces: list[slice]) -> torch.Tensor:
    """Return the reduction in the order of a ring, in two passes over the ranks, as `ring_recurrence.ring_sum` does."""
    total, first, last = torch.empty_like(flat[0]), flat[0], pieces[-1]
    for piece, x in zip(pieces, flat[1:], strict=False):
        head = slice(0, piece.start)
        if piece.start:
            function(total[head], x[head], out=total[head])
        total[piece] = x[piece]
    total[last] = first[last]
    if last.start:
        head = slice(0, last.start)
        function(total[head], first[head], out=total[head])
    for piece, x in zip(pieces[1:], flat[1:], strict=True):
        tail = slice(piece.start, len(total))
        if piece.start < len(total):
            function(total[tail], x[tail], out=total[tail])
    return total


def _average(total: torch.Tensor, op: Any, size: int) -> torch.Tensor:
    return total / size if op == ReduceOp.AVG else total
