"""How long the steps of `script_programs` and exchanges over gloo take on two real processes of this machine."""

from collections.abc import Callable
from functools import partial
from statistics import quantiles
from time import perf_counter
from typing import Any

STEPS, ROUNDS, WARM_UP = 8, 3, 3  # steps of each program per round; a round goes through all programs
NUMBERS = (1, 4_096, 65_536, 1 << 18, 1 << 20)  # of float32 in an exchange
EXCHANGES, FEWER = 60, 12  # of each size below and from LARGE
LARGE = 1 << 18


def measure(folder: str, comm: Any) -> tuple[dict[str, list[float]], list[tuple[str, float, float]]]:
    """Return the times of steps, by program, and the rows (what, bytes, s) of exchanges over gloo."""
    import torch
    import torch.distributed as dist

    from experiments.measure.script_programs import PROGRAMS

    torch.set_num_threads(1)  # as torchrun sets it
    dist.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=comm.rank, world_size=comm.size)
    steps = {name: program() for name, program in PROGRAMS.items()}
    times: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    for number in range(ROUNDS):
        for name, step in steps.items():
            for _ in range(0 if number else WARM_UP):
                step()
            dist.barrier()
            times[name] += [_timed(step) for _ in range(STEPS)]
    rows = _exchanges()
    dist.destroy_process_group()
    return times, rows


def _exchanges() -> list[tuple[str, float, float]]:
    import torch
    import torch.distributed as dist

    rank, rows = dist.get_rank(), []
    for count in NUMBERS:
        whole, half = torch.zeros(2 * count), torch.zeros(count)

        def there_and_back(x: Any = half) -> None:
            for src in (0, 1):
                (dist.send if rank == src else dist.recv)(x, 1 - rank)

        ways: dict[str, Callable[[], Any]] = {
            "all-reduce": partial(dist.all_reduce, whole),
            "all-gather": partial(dist.all_gather_single, whole, half),
            "reduce-scatter": partial(dist.reduce_scatter_single, half, whole),
            "message": there_and_back,
        }
        if count > LARGE:
            ways["overlapped"] = _overlapped(whole)
        for what, once in ways.items():
            took = []
            once()
            for _ in range(FEWER if count >= LARGE else EXCHANGES):
                dist.barrier()
                took.append(once() or 0.0 if what == "overlapped" else _timed(once))
            usual = quantiles(took, n=4)[0]  # waiting for a core makes some of them ten times as long
            rows.append((what, 4.0 * count, usual / (2 if what == "message" else 1)))
    return rows


def _overlapped(x: Any) -> Callable[[], float]:
    """Return a function that computes during an all-reduce of x, and returns the extra time that this takes, in s."""
    import torch
    import torch.distributed as dist

    a, b = torch.zeros(128, 256), torch.zeros(256, 256)

    def compute(times: int) -> None:
        for _ in range(times):
            torch.mm(a, b)

    each = min(_timed(partial(compute, 20)) for _ in range(5)) / 20
    times = round(2 * min(_timed(partial(dist.all_reduce, x)) for _ in range(3)) / each) + 1

    def once() -> float:
        alone = _timed(partial(compute, times))
        dist.barrier()
        begin = perf_counter()
        work = dist.all_reduce(x, async_op=True)
        compute(times)
        work.wait()
        return max(0.0, perf_counter() - begin - alone)

    return once


def _timed(once: Callable[[], Any]) -> float:
    begin = perf_counter()
    once()
    return perf_counter() - begin
