"""Measuring: two things in turn in one run, so that a ratio holds when the machine's speed drifts."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path


def seconds(once: Callable[[], object], repeat: int) -> float:
    """Seconds per call of `once`, over `repeat` calls."""
    start = time.perf_counter()
    for _ in range(repeat):
        once()
    return (time.perf_counter() - start) / repeat


def pairs(ours: Callable, peer: Callable, repeat: int, rounds: int = 15) -> tuple[float, float, float]:
    """Median seconds per call of ours and of the peer, measured in turn, and the median ratio peer / ours."""
    ours(), peer()
    both = [(seconds(ours, repeat), seconds(peer, repeat)) for _ in range(rounds)]
    mine, theirs = zip(*both, strict=True)
    return statistics.median(mine), statistics.median(theirs), statistics.median(b / a for a, b in both)


def waiting(device: str) -> Callable[[], object]:
    """Return what waits until a device has done what it was given."""
    if device == "cpu":
        return lambda: None
    import torch

    return torch.cuda.synchronize


def row(what: str, measured: str, bar: str, met: bool) -> None:
    """Print one row of the table in RESULTS.md."""
    print(f"| {what} | {measured} | {bar} | {'yes' if met else '**no**'} |", flush=True)


def machine() -> str:
    """The machine, in one line."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "",
    )
    return f"{model or platform.processor()}, {os.cpu_count()} cores, Python {platform.python_version()}"


def one_thread() -> None:
    """One BLAS thread, before NumPy loads."""
    for name in ("OMP", "OPENBLAS", "MKL", "NUMBA"):
        os.environ.setdefault(f"{name}_NUM_THREADS", "1")
