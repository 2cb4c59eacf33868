"""Kernel times: how long each kernel takes here, beside NumPy and torch, and how near that is to the machine's roof.

    time(kernel, n) for reference (NumPy), cpu (Numba), torch, and both on a GPU where there is one
    the roof: min(FLOP/s of a matrix product, intensity * bytes/s), intensity = FLOPs per byte by the kernel's price

A time is the best of a few rounds of calls on one thread: what disturbs only adds. Two bandwidths are measured, that of
memory, on vectors that fit into no cache, and that of vectors as long as the kernel's own, which may fit into one.

Source: Williams, Waterman & Patterson, Communications of the ACM 52(4), 2009 (the roofline).
"""

from __future__ import annotations

import difflib
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import kernels
from experiments.jobs.spec import JobSpec

SIZES = (1_000, 10_000, 100_000, 1_000_000)
SIZE = 100_000
ROUND = 0.005  # s of calls that are timed together
ROUNDS = 5
SLOW = 0.25  # s: what takes longer is timed once
ROOF = 640  # rows of the matrices of the roof
BEYOND = 16_000_000  # numbers of a vector that fits into no cache
TIMES = ("numpy", "cpu", "torch", "gpu", "torch_gpu")


@dataclass(frozen=True)
class Row:
    """One kernel at one size: its price (FLOPs, bytes), and the s of a call; None where there is nothing to time."""

    kernel: str
    family: str
    n: int
    flops: float
    bytes: float
    numpy: float | None = None
    cpu: float | None = None
    torch: float | None = None
    gpu: float | None = None
    torch_gpu: float | None = None

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes if self.bytes else math.inf


@dataclass(frozen=True)
class Peaks:
    """What a device reaches: FLOP/s of a large matrix product; bytes/s of adding vectors, large and (near) of n."""

    flops: float
    bandwidth: float
    near: float

    def roof(self, intensity: float) -> float:
        """Return the FLOP/s that a kernel of this intensity cannot pass by much, on vectors of size n."""
        return min(self.flops, intensity * self.near)


@dataclass(frozen=True)
class Report:
    """What was measured, when, and where."""

    rows: tuple[Row, ...]
    cpu: Peaks
    gpu: Peaks | None
    machine: str
    moment: str

    def row(self, kernel: str) -> Row | None:
        """Return the row of a kernel, None if it was not measured."""
        return next((row for row in self.rows if row.kernel == kernel), None)


def machine() -> str:
    """Return the name of this machine, in a line."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"


def names() -> list[str]:
    """Return all kernels, by family."""
    return [name for family in kernels.FAMILIES.values() for name in family]


def known(wanted: Sequence[str]) -> Sequence[str]:
    """Return these names. ValueError in one sentence if one of them is no kernel's."""
    for name in wanted:
        if name not in names():
            close = difflib.get_close_matches(name, names(), n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(names())}."
            raise ValueError(f"there is no kernel {name[:60]!r}; {hint}")
    return wanted


def measure(wanted: Iterable[str], n: int) -> Report:
    """Time these kernels, one after the other."""
    from experiments.measure.kernel_cases import KERNEL_CASES

    torch, gpu = _torch()
    with torch.no_grad() if torch else nullcontext():
        rows = tuple(_row(name, KERNEL_CASES[name], n, torch, gpu) for name in wanted)
    return Report(
        rows=rows,
        cpu=_peaks(np.empty(0, np.float32), np.dot, n),
        gpu=_peaks(torch.empty(0, device=gpu), torch.mm, n) if gpu else None,
        machine=machine() + (f"; {torch.cuda.get_device_name()}" if gpu else ""),
        moment=datetime.now().astimezone().isoformat(timespec="minutes"),
    )


def _row(name: str, call: Any, n: int, torch: Any, gpu: str | None) -> Row:
    kernel = getattr(kernels, name)
    args = call.arguments(np.random.default_rng(0), n)
    flops, words = kernel.price(*args)
    took = {"numpy": seconds(partial(kernel.module.reference, *_own(args)))}
    took["cpu"] = seconds(partial(kernel.module.cpu, *_own(args)))
    peer = call.peer if callable(call.peer) else None
    if call.peer == "eager":

        def peer(torch, *tensors):
            return kernel.module.reference(*tensors)

    if torch and peer:
        took["torch"] = seconds(partial(peer, torch, *_tensors(torch, args, "cpu")))
    if gpu:
        wait = torch.cuda.synchronize
        took["gpu"] = seconds(partial(kernel.module.gpu, *_tensors(torch, args, gpu)), wait)
        if peer:
            took["torch_gpu"] = seconds(partial(peer, torch, *_tensors(torch, args, gpu)), wait)
    return Row(name, kernel.family, n, float(flops), float(words * args[0].itemsize), **took)


def seconds(call: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> float:
    """Return the seconds of a call, the best of some rounds after a warm-up; wait() waits for the device."""

    def timed(repeat: int) -> float:
        begin = perf_counter()
        for _ in range(repeat):
            call()
        wait()
        return (perf_counter() - begin) / repeat

    with np.errstate(all="ignore"):
        timed(1)  # compiles, and brings everything near
        once = timed(1)
        if once > SLOW:
            return once
        repeat = max(1, min(10_000, math.ceil(ROUND / max(once, 1e-9))))
        return min(timed(repeat) for _ in range(ROUNDS))


def _own(args: tuple) -> tuple:
    return tuple(x.copy() if isinstance(x, np.ndarray) else x for x in args)


def _tensors(torch: Any, args: tuple, device: str) -> tuple:
    return tuple(torch.from_numpy(x.copy()).to(device) if isinstance(x, np.ndarray) else x for x in args)


def _torch() -> tuple[Any, str | None]:
    """Return (torch on one thread, the GPU's name), each None where there is none."""
    try:
        import torch
    except ImportError:
        return None, None
    torch.set_num_threads(1)
    return torch, "cuda:0" if torch.cuda.is_available() else None


def _peaks(like: Any, product: Callable, n: int) -> Peaks:
    """Return the peaks of the device of `like`: a matrix product, and x + y of vectors, large and of size n."""
    on_cpu = isinstance(like, np.ndarray)

    def ones(*shape: int):
        return np.ones(shape, np.float32) if on_cpu else like.new_ones(shape)

    def wait():
        if not on_cpu:
            import torch

            torch.cuda.synchronize()

    def added(n: int) -> float:
        x, y, z = ones(n), ones(n), ones(n)
        add = partial(np.add, x, y, z) if on_cpu else partial(_add, x, y, z)
        return 12 * n / seconds(add, wait)

    side = ROOF if on_cpu else 8 * ROOF
    a, b = ones(side, side), ones(side, side)
    flops = 2 * side**3 / seconds(partial(product, a, b), wait)
    return Peaks(flops, added(BEYOND), added(n))


def _add(x, y, z):
    import torch

    torch.add(x, y, out=z)


# as a job of the pool: a file that the page reads

FILE = "kernels.json"


def job_spec(wanted: Iterable[str], n: int) -> JobSpec:
    """Return the job that measures these kernels on this machine."""
    return JobSpec("kernels", {"names": list(wanted), "n": n, "machine": machine()})


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:
    """Measure, and keep the report (see experiments.jobs.spec)."""

    def one_by_one():
        for done, name in enumerate(wanted):
            progress(done / len(wanted))
            yield name

    wanted = known(values["names"])
    report = measure(one_by_one(), values["n"])
    return JobSpec("kernels", values).keep(root, lambda folder: (folder / FILE).write_text(json.dumps(asdict(report))))


def load(folder: Path) -> Report:
    """Return the report in the folder of a job."""
    told = json.loads((folder / FILE).read_text())
    peaks = {name: Peaks(**told[name]) if told[name] else None for name in ("cpu", "gpu")}
    return Report(**{**told, **peaks, "rows": tuple(Row(**row) for row in told["rows"])})


def reached(row: Row, peaks: Peaks, which: str = "cpu") -> float:
    """Return the share of the roof, which is memory's alone for a kernel that only moves."""
    if not row.flops:
        return row.bytes / getattr(row, which) / peaks.near
    return row.flops / getattr(row, which) / peaks.roof(row.intensity)
