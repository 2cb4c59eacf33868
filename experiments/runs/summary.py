"""The summary of a run: a few figures for people, a digest for machines, and its environment."""

import hashlib
import math
import os
import platform
import sys
import time
from dataclasses import replace
from functools import cache
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

from algorithms.algorithm import Shape
from experiments.runs.record import Run
from tracing import KINDS

ROOT = Path(__file__).resolve().parents[2]
DECISIVE = (
    "knobs.py",
    "kernels/**/*.py",
    "workloads/**/*.py",
    "cluster/**/*.py",
    "algorithms/**/*.py",
    "tracing.py",
    *(f"experiments/{name}.py" for name in ("execution/guess", "execution/mixed", "execution/notes", "execution/run")),
    *(f"experiments/specification/{name}.py" for name in ("conditions", "experiment", "faults")),
    *(f"experiments/runs/{name}.py" for name in ("evaluations", "parquet", "record", "run_files", "summary")),
)
"""The files that determine a run's results."""

_RECENT = 20


def summarise(run: Run, wall: float, per_epoch: int | None = None) -> dict[str, Any]:
    """Return the figures as int, float or str, or None for those that do not exist (accuracy, R², staleness).

    `wall` is how long the run took, s; `per_epoch` is a worker's steps per epoch, if known.
    """
    trace, tried = run.trace, run.evaluations
    seconds = max(trace.seconds(), float(run.losses["seconds"].max(initial=0.0)))
    busy = trace.busy()[run.experiment.servers :].sum(axis=0)
    staleness = run.applied["staleness"]
    samples = int(np.bincount(*_last_of_each_rank(run.losses)).sum()) if len(run.losses["rank"]) else 0
    summary: dict[str, Any] = {
        "loss": _mean(run.losses["loss"][-_RECENT:]),
        "held_out_loss": _last(tried["loss"]),
        "best_held_out_loss": _best(tried["loss"], np.min),
        "accuracy": _last(tried["accuracy"]),
        "accuracy_error": _last(run.standard_error(tried["accuracy"])),
        "held_out_samples": run.held_out_samples or None,
        "best_accuracy": _best(tried["accuracy"], np.max),
        "r2": run.r2(float(tried["loss"][-1]) if len(tried["loss"]) else math.nan),
        "seconds": seconds,
        "steps": int(run.losses["step"].max(initial=-1)) + 1,
        "updates": run.updates,
        "samples": samples,
        "flops": int(sum(run.flops)) if run.flops else None,
        "samples_per_second": samples / seconds if seconds else None,
        "bytes": int(trace.messages["bytes"].sum()),
        "messages": len(trace.messages["bytes"]),
        "compression_ratio": None,
        "memory": int(run.peak_memory().sum(axis=1).max()) or None,
        "staleness_mean": _mean(staleness),
        "staleness_max": int(staleness.max()) if len(staleness) else None,
        "parameters": None if run.parameters is None else len(run.parameters),
        "weights": None if run.parameters is None else _hash(run.parameters),
        "digest": digest(run),
        "digest_to_rounding": digest_to_rounding(run),
        "wall_seconds": wall,
    }
    if summary["bytes"] and (uncompressed := _uncompressed(run, summary["steps"], per_epoch)):
        summary["compression_ratio"] = uncompressed / summary["bytes"]
    total = busy.sum()
    summary |= {f"share_{kind}": float(busy[i] / total) if total else None for i, kind in enumerate(KINDS)}
    return {name: _plain(value) for name, value in summary.items()}


def digest(run: Run) -> str:
    """Return a digest of the run, 16 hexadecimal digits, which are equal if two runs are bitwise identical and equally
    fast.

    It covers losses and evaluations with their times on the run's clock, so a faster network changes it. The hash of
    the final model alone is `weights` in the summary.
    """
    parameters = np.zeros(0) if run.parameters is None else run.parameters
    return _hash(parameters, *run.losses.values(), *run.evaluations.values())


def digest_to_rounding(run: Run) -> str:
    """Return text with the mean training loss of each quarter of the run and the last held-out loss, each to four
    significant digits.

    Compare these by eye, since a hash of rounded numbers would be brittle: rounding changes the last digit by one, or
    by more where training amplifies it.
    """
    quarters = [part for part in np.array_split(run.losses["loss"], 4) if len(part)]
    held_out = run.evaluations["loss"][-1:]
    return " ".join(f"{float(part.mean()):.4g}" for part in (*quarters, *([held_out] if len(held_out) else [])))


def environment() -> dict[str, Any]:
    """Return this process's environment: machine, versions, libraries."""
    versions: dict[str, str] = {name: _version(name) for name in ("numpy", "numba", "torch") if name in sys.modules}
    return {
        "python": platform.python_version(),
        **versions,
        **blas(),
        "vectors": vectors(),
        "machine": platform.machine(),
        "system": platform.system(),
        "cpus": cores(),
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "code": code_version(),
        "commit": commit(),
    }


def blas() -> dict[str, str]:
    """Return the library, version and kernels of each BLAS that is loaded, by the package it came with.

    For example, {"blas_scipy": "openblas 0.3.30 Haswell"}; "blas" came with no package. Without threadpoolctl, {}.
    """
    try:
        from threadpoolctl import threadpool_info
    except ImportError:  # in a browser
        return {}
    found = {}
    for library in threadpool_info():
        if library["user_api"] == "blas":
            folders = [folder.partition(".")[0] for folder in Path(library["filepath"]).parts]  # numpy.libs, say
            owner = next((f"blas_{name}" for name in reversed(folders) if name in ("numpy", "scipy", "torch")), "blas")
            words = library["internal_api"], library["version"], library.get("architecture")
            found[owner] = " ".join(filter(None, words))
    return found


def vectors() -> str:
    """Return the vector instructions NumPy found beyond its baseline, the most capable last."""
    return " ".join(np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", ()))


@cache
def code_version() -> str:
    """Return the version of the source this process has loaded."""
    return source_version()


def source_version() -> str:
    """Return a hash (8 hexadecimal digits) of the source that determines results, as a new process would load it."""
    state = hashlib.sha256()
    for name in sorted(name for pattern in DECISIVE for name in glob(pattern, root_dir=ROOT, recursive=True)):
        state.update(name.replace(os.sep, "/").encode() + b"\0" + (ROOT / name).read_bytes() + b"\0")
    return state.hexdigest()[:8]


@cache
def commit() -> str:
    """Return the git commit that is checked out, or "" if it is unknown. It is read from files, since git may not be
    installed.
    """
    folder = ROOT / ".git"
    try:
        if folder.is_file():  # a worktree
            folder = (ROOT / folder.read_text("utf-8").removeprefix("gitdir:").strip()).resolve()
        head = (folder / "HEAD").read_text("utf-8").strip()
        if not head.startswith("ref: "):
            return head[:12]
        name = head.removeprefix("ref: ")
        common = folder / "commondir"
        shared = (folder / common.read_text("utf-8").strip()) if common.exists() else folder
        for base in (folder, shared):
            if (base / name).is_file():
                return (base / name).read_text("utf-8").strip()[:12]
        for line in (shared / "packed-refs").read_text("utf-8").splitlines():
            if line.endswith(" " + name):
                return line[:12]
    except OSError:
        pass
    return ""


def _uncompressed(run: Run, steps: int, per_epoch: int | None) -> float:
    """Return the number of bytes that the same steps would send without compression, or 0 if nothing is compressed.

    The algorithm declares this number. It is also 0 if the algorithm has no price, or if the price depends on the
    length of an epoch and `per_epoch` is None.
    """
    e = run.experiment
    if e.compression == "none" or run.status != "finished" or run.parameters is None:
        return 0
    shape = Shape(len(run.parameters), e.workers, steps, e.batch)
    lengths = (per_epoch,) if per_epoch else (1, steps + 1)
    prices = {e.method.elements_sent(replace(shape, per_epoch=length), e.knobs) for length in lengths}
    return (prices.pop() or 0) * run.parameters.itemsize if len(prices) == 1 else 0


def _last_of_each_rank(losses: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    order = np.lexsort([losses["samples"], losses["rank"]])
    ranks = losses["rank"][order]
    last = np.append(ranks[1:] != ranks[:-1], True)
    return ranks[last], losses["samples"][order][last]


def _hash(*arrays: np.ndarray) -> str:
    state = hashlib.sha256()
    for array in arrays:
        state.update(f"{array.dtype.str}{array.shape}".encode() + np.ascontiguousarray(array).tobytes())
    return state.hexdigest()[:16]


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def _last(values: np.ndarray) -> float | None:
    return float(values[-1]) if len(values) else None


def _best(values: np.ndarray, choose) -> float | None:
    known = values[np.isfinite(values)]
    return float(choose(known)) if len(known) else None


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _version(name: str) -> str:
    return str(getattr(sys.modules[name], "__version__", "?"))


def cores() -> int:
    """Return the number of cores this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
