"""Time the operations of the planner's cost model on this machine's GPUs: matrix products, memory traffic, attention
and all-gather.

Under torchrun, all ranks measure at the same time, as in training, and also gather an array from each other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

from theory.planner.measured import GpuTimings

Timer = Callable[[Callable[[], Any]], float]
"""A function that returns the time in s that a call takes."""


@dataclass(frozen=True)
class GpuSizes:
    """The sizes at which operations are measured."""

    products: tuple[tuple[int, int, int], ...] = (  # rows, columns, inner size
        (8192, 8192, 8192), (4096, 14336, 4096), (8192, 28672, 8192), (8192, 7168, 8192), (8192, 8192, 3584),
        (4096, 4096, 4096), (2048, 8192, 8192), (8192, 1024, 8192), (8192, 8192, 1024), (2048, 2048, 2048),
        (16384, 768, 2048), (16384, 2048, 768),
    )  # fmt: skip
    rows: tuple[int, ...] = (8192, 16384)  # of the arrays of operations that memory bounds
    width: int = 8192
    attention: tuple[tuple[int, int], ...] = ((1, 8192), (4, 4096), (2, 4096), (1, 16384))  # sequences, tokens of each
    heads: int = 32
    head: int = 128
    gathers: tuple[int, ...] = (1 << 20, 1 << 24, 1 << 26, 1 << 28, 1 << 30)  # bytes of the gathered array


def measure_gpu(device: str, timer: Timer, together: Timer, sizes: GpuSizes = GpuSizes()) -> GpuTimings:
    """Return the times of the planner's operations on a torch `device`, in bfloat16, as `timer` measures them.

    If torch.distributed is initialised with several ranks, `together` measures gathers.
    """
    import torch
    import torch.distributed as dist
    import torch.nn.functional as F

    def filled(*shape: int) -> Any:
        return torch.randn(*shape, device=device).bfloat16()

    with torch.no_grad():
        products = []
        for m, n, q in sizes.products:
            a, b, out = filled(m, q), filled(q, n), filled(m, n)
            products.append((m, n, q, timer(partial(torch.mm, a, b, out=out))))
        memory = []
        for rows in sizes.rows:
            x, y = filled(rows, sizes.width), filled(rows, sizes.width)
            z, gain, nbytes = torch.empty_like(x), filled(sizes.width), 2 * rows * sizes.width
            memory.append((3 * nbytes, timer(partial(torch.add, x, y, out=z))))
            memory.append((2 * nbytes, timer(partial(F.gelu, x))))
            memory.append((2 * nbytes, timer(partial(F.layer_norm, x, (sizes.width,), gain, gain))))
        attention = []
        for sequences, tokens in sizes.attention:
            q, k, v = (filled(sequences, sizes.heads, tokens, sizes.head) for _ in range(3))
            once = partial(F.scaled_dot_product_attention, q, k, v, is_causal=True)
            attention.append((2.0 * sequences * tokens**2 * sizes.heads * sizes.head, timer(once)))
        gathers = []
        ranks = dist.get_world_size() if dist.is_initialized() else 1
        for nbytes in sizes.gathers if ranks > 1 else ():
            own = filled(nbytes // 2 // ranks)
            whole = torch.empty(ranks * len(own), device=device, dtype=own.dtype)
            gathers.append((ranks, 2.0 * len(whole), together(partial(dist.all_gather_single, whole, own))))
    return GpuTimings(tuple(products), tuple(memory), tuple(attention), tuple(gathers))


def time_on_gpu(once: Callable[[], Any], warm_up: float = 0.3, rounds: int = 11) -> float:
    """Return the median time of `once` on the current CUDA GPU, in s, after it has run for `warm_up` s.

    A GPU at full load lowers its clock to keep to its power limit, so the first calls are faster than training is.
    """
    import torch

    begin = perf_counter()
    once()
    torch.cuda.synchronize()
    each = 1
    while perf_counter() - begin < warm_up:
        started = perf_counter()
        for _ in range(each):
            once()
        torch.cuda.synchronize()
        each = max(1, round(each * 0.02 / max(perf_counter() - started, 1e-6)))  # calls in a round of about 20 ms
    return median(_timed(once, each) for _ in range(rounds))


def time_together(once: Callable[[], Any], calls: int = 5, rounds: int = 11) -> float:
    """Return the median time of `once`, in s, with equally many calls on every rank, as collectives require."""
    for _ in range(calls):
        once()
    return median(_timed(once, calls) for _ in range(rounds))


def _timed(once: Callable[[], Any], calls: int) -> float:
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(calls):
        once()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / 1000 / calls
