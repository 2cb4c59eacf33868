"""Kernel times: how long each kernel takes here, compared with NumPy, torch and the machine's roof.

    time(kernel, n) in NumPy (its reference), Numba and torch on a CPU, and in Numba and torch on a GPU if there is one
    the roof: min(FLOP/s of a matrix product, intensity * bytes/s), intensity = FLOPs per byte by the kernel's price

A time is the best of a few rounds of calls on one thread, since disturbances only add time. The roof's bytes/s are
those of the memory level (a cache or DRAM) that holds the call's working set: the fastest that a loop with next to no
arithmetic streams the same number of bytes (`roof.py`). Only noise lifts a call above this roof. Far below it are calls
dominated by call overhead or limited by latency: chains of dependent results, scattered accesses, slow instructions.

Source: Williams, Waterman & Patterson, Communications of the ACM 52(4), 2009 (the roofline).
"""

import difflib
import itertools
import json
import math
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
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
LINE = 64  # bytes of a cache line
SLOW = 0.25  # s: calls that take longer are timed once
TIMES = ("numpy", "cpu", "torch", "gpu", "torch_gpu")


@dataclass(frozen=True)
class Row:
    """One kernel at one size: its price (FLOPs, bytes), and the seconds that a call takes, or None where it was not
    timed.

    working_set: bytes of its arrays, or of the cache lines it touches if these are fewer. `bytes` counts a number once
    for each time it is read or written.
    """

    kernel: str
    family: str
    n: int
    flops: float
    bytes: float
    working_set: float
    numpy: float | None = None
    cpu: float = field(kw_only=True)
    torch: float | None = None
    gpu: float | None = None
    torch_gpu: float | None = None

    @property
    def intensity(self) -> float:
        """FLOPs per byte."""
        return self.flops / self.bytes if self.bytes else math.inf


@dataclass(frozen=True)
class Peaks:
    """Peak rates of a device, as experiments.measure.roof measures them.

    flops: FLOP/s of a matrix product. streams: (bytes of a working set, bytes/s of the fastest loop over it),
    ascending. caches: (name, bytes), nearest first; empty if the system does not report them.
    """

    flops: float
    streams: tuple[tuple[int, float], ...]
    caches: tuple[tuple[str, int], ...] = ()

    def bandwidth(self, working_set: float) -> float:
        """Return the bytes/s for this working set: the best measured for any working set larger than half of it.

        A smaller working set is at least as fast as a larger one; if it was measured slower, the machine was busy.
        """
        half = min(working_set, self.streams[-1][0]) / 2
        return max(rate for size, rate in self.streams if size > half)

    def roof(self, intensity: float, working_set: float) -> float:
        """Return the upper limit in FLOP/s for a kernel of this intensity on this working set (bytes)."""
        return min(self.flops, intensity * self.bandwidth(working_set))

    def level(self, working_set: float) -> str:
        """Return the name of the nearest cache that holds this working set, or "memory" if none does, or "" if the
        caches are unknown.
        """
        return next((name for name, size in self.caches if working_set <= size), "memory" if self.caches else "")


@dataclass(frozen=True)
class Report:
    """Measurements, with the date and the machine they were taken on."""

    rows: tuple[Row, ...]
    cpu: Peaks
    gpu: Peaks | None
    machine: str
    moment: str

    def row(self, kernel: str) -> Row | None:
        """Return the row of a kernel, or None if it was not measured."""
        return next((row for row in self.rows if row.kernel == kernel), None)


def machine() -> str:
    """Return a line that names this machine's CPU and its number of cores."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        model = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model)
    except OSError:
        pass
    return f"{model}, {os.cpu_count()} cores"


def names() -> list[str]:
    return [name for family in kernels.FAMILIES.values() for name in family]


def check_kernels(wanted: Sequence[str]) -> Sequence[str]:
    """Return `wanted`. Raise ValueError if one of these names is not the name of a kernel."""
    for name in wanted:
        if name not in names():
            close = difflib.get_close_matches(name, names(), n=1)
            hint = f"did you mean {close[0]}?" if close else f"choose from {', '.join(names())}."
            raise ValueError(f"there is no kernel {name[:60]!r}; {hint}")
    return wanted


def measure(wanted: Iterable[str], n: int) -> Report:
    from experiments.measure.kernel_cases import KERNEL_CASES
    from experiments.measure.roof import Roof

    torch, gpu = _torch()
    roofs = [Roof(torch), *([Roof(torch, gpu)] if gpu else [])]
    with torch.no_grad() if torch else nullcontext():
        rows = tuple(_row(name, KERNEL_CASES[name], n, torch, gpu, roofs) for name in wanted)
        cpu, *others = [roof.peaks() for roof in roofs]
    return Report(
        rows=rows,
        cpu=cpu,
        gpu=others[0] if gpu else None,
        machine=machine() + (f"; {torch.cuda.get_device_name()}" if gpu else ""),
        moment=datetime.now().astimezone().isoformat(timespec="minutes"),
    )


def _row(name: str, call: Any, n: int, torch: Any, gpu: str | None, roofs: Sequence[Any]) -> Row:
    kernel = getattr(kernels, name)
    args = call.arguments(np.random.default_rng(0), n)
    flops, words = kernel.price(*args)
    moved = float(words * args[0].itemsize)
    working_set = min(LINE * float(words), float(sum(x.nbytes for x in args if isinstance(x, np.ndarray))))
    for roof in roofs:
        roof.look(working_set)  # next to every kernel, since a machine's speed varies over time
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
    return Row(name, kernel.family, n, float(flops), moved, working_set, **took)


def seconds(call: Callable[[], Any], wait: Callable[[], Any] = lambda: None) -> float:
    """Return the best time of a call in several rounds after a warm-up, in s. `wait` waits for the device."""

    def timed(repeat: int) -> float:
        begin = perf_counter()
        for _ in range(repeat):
            call()
        wait()
        return (perf_counter() - begin) / repeat

    with np.errstate(all="ignore"):
        timed(1)  # compiles, and warms the caches
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
    """Return (torch limited to one thread, the GPU's name), each None if not available."""
    try:
        import torch
    except ImportError:
        return None, None
    torch.set_num_threads(1)
    torch.backends.cudnn.allow_tf32 = False  # float32 as everywhere else; with TF32 a convolution would exceed the roof
    return torch, "cuda:0" if torch.cuda.is_available() else None


# as a job of the pool: a file that the page reads

FILE = "kernels.json"


def job_spec(wanted: Iterable[str], n: int, measurement: int = 1) -> JobSpec:
    """Return the job that measures these kernels on this machine; `measurement` counts repetitions, from 1."""
    again = {"measurement": measurement} if measurement > 1 else {}
    return JobSpec("kernels", {"names": list(wanted), "n": n, "machine": machine(), **again})


def stored_measurements(wanted: Sequence[str], n: int, root: Path) -> list[Path]:
    """Return the folders of all stored measurements of these kernels, newest last."""
    numbers = itertools.count(1)
    return list(iter(lambda: job_spec(wanted, n, next(numbers)).find_result(root), None))


def perform(values: dict[str, Any], root: Path, progress: Callable[[float], None]) -> Path:

    def one_by_one():
        for done, name in enumerate(wanted):
            progress(done / len(wanted))
            yield name

    wanted = check_kernels(values["names"])
    return JobSpec("kernels", values).keep_json(root, FILE, asdict(measure(one_by_one(), values["n"])))


def load(folder: Path) -> Report:
    told = json.loads((folder / FILE).read_text("utf-8"))
    peaks = {name: Peaks(**told[name]) if told[name] else None for name in ("cpu", "gpu")}
    return Report(**{**told, **peaks, "rows": tuple(Row(**row) for row in told["rows"])})


def roof_share(row: Row, peaks: Peaks, which: str = "cpu") -> float:
    """Return the fraction of the roofline reached: the least possible time of a call, over the measured time."""
    least = max(row.flops / peaks.flops, row.bytes / peaks.bandwidth(row.working_set))
    return least / getattr(row, which)
