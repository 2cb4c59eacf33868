"""Differences between two runs of one experiment: in their numbers, exactly or up to rounding, and in arithmetic."""

from typing import Any

import numpy as np

from experiments.runs.record import Run

LEARNED = {"losses": ("loss",), "evaluations": ("loss", "accuracy", "spread"), "measures": ("value",)}
"""Columns computed from the model; all others are counts, or times computed from prices."""

NEVER_THE_SAME = {"wall_seconds"}
"""Entries of a summary that depend on when it ran."""

ARITHMETIC = {
    "blas_numpy": "BLAS kernels",
    "blas_scipy": "BLAS kernels",
    "blas_torch": "BLAS kernels",
    "blas": "BLAS kernels",
    "vectors": "vector instructions",
    "machine": "machine",
    "numpy": "NumPy",
    "numba": "Numba",
    "torch": "torch",
}
"""Parts of the environment that may change the last digits of a result, with their names."""


def difference(a: Run, b: Run, tolerance: float = 0.0) -> str:
    """Return a sentence on where two runs of one experiment first differ, or "" if they are bitwise identical.

    With a `tolerance`, learned numbers may differ by this share of the largest in their column; everything else must
    still be bitwise identical, except the summary, which contains such numbers. Sentences are not compared, because
    another version of the code may word them differently; nor are environments and wall times.
    """
    if a.status != b.status:
        return f"one is {a.status}, the other {b.status}"
    if a.trace.labels != b.trace.labels or a.quantities != b.quantities:
        return "the spans of their timelines, or their measured quantities, have different names"
    others = _tables(b)
    for table, columns in _tables(a).items():
        for column, one in columns.items():
            other = others[table][column]
            if len(one) != len(other):
                return f"{table}: {len(one)} rows instead of {len(other)}"
            unequal = _unequal(one, other, tolerance if column in LEARNED.get(table, ()) else 0.0)
            if len(unequal):
                row = unequal[0]
                return f"{table}: {column} in row {row} is {one[row]} against {other[row]}"
    if (a.parameters is None) != (b.parameters is None):
        return "only one has final parameters"
    if a.parameters is not None and b.parameters is not None:
        if a.parameters.shape != b.parameters.shape or a.parameters.dtype != b.parameters.dtype:
            return "the final parameters differ in shape or type"
        unequal = _unequal(a.parameters, b.parameters, tolerance)
        if len(unequal):
            most = float(np.abs(a.parameters - b.parameters).max())
            return f"the final parameters: {len(unequal)} of {len(a.parameters)} differ, by at most {most:g}"
    for name in () if tolerance else a.summary.keys() & b.summary.keys() - NEVER_THE_SAME:
        if a.summary[name] != b.summary[name]:
            return f"summary: {name} is {a.summary[name]} against {b.summary[name]}"
    return ""


def largest(a: Run, b: Run) -> float:
    """Return the largest difference between the learned numbers of two runs with equal tables, as a share of the
    largest number in the same column.
    """
    pairs = [(getattr(a, table)[column], getattr(b, table)[column]) for table in LEARNED for column in LEARNED[table]]
    if a.parameters is not None and b.parameters is not None:
        pairs.append((a.parameters, b.parameters))
    return max(float(np.nanmax(_apart(*pair), initial=0.0)) for pair in pairs)


def tolerance(run: Run) -> float:
    """Return the relative difference that still counts as rounding: half the digits of the run's numbers."""
    return float(np.sqrt(run.experiment.eps))


def other_arithmetic(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return phrases on how the arithmetic of two environments differs, such as "other BLAS kernels: Haswell then,
    Nehalem here".
    """
    told = []
    for name, called in ARITHMETIC.items():
        old, new = str(before.get(name) or ""), str(now.get(name) or "")
        if not old or not new or old == new:
            continue
        if old.split()[-1] != new.split()[-1]:  # the kernels, after the library and its version
            old, new = old.split()[-1], new.split()[-1]
        told.append(f"other {called}: {old} then, {new} here")
    return list(dict.fromkeys(told))


def alike_until(a: Run, b: Run) -> int:
    """Return the number of mini-batches, in order of time, before the losses of two runs first differ by more than
    rounding.
    """
    n = min(len(a.losses["loss"]), len(b.losses["loss"]))
    unequal = _unequal(a.losses["loss"][:n], b.losses["loss"][:n], tolerance(a))
    return int(unequal[0]) if len(unequal) else n


def _tables(run: Run) -> dict[str, dict[str, np.ndarray]]:
    return {
        **run.tables,
        "work": {"flops": np.array(run.flops, float), "updates": np.array([run.updates or 0])},
        "held out": {"samples": np.array([run.held_out_samples])},
    }


def _unequal(a: np.ndarray, b: np.ndarray, tolerance: float) -> np.ndarray:
    """Return the rows in which two columns differ: in any bit or, with a `tolerance`, by a larger share than that (see
    `_apart`).
    """
    size = a.dtype.itemsize
    bits = [np.ascontiguousarray(x).view(np.uint8).reshape(len(x), size) for x in (a, b)]
    differ = (bits[0] != bits[1]).any(axis=1)
    return np.flatnonzero(differ & ~(_apart(a, b) <= tolerance) if tolerance else differ)


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return |a - b| divided by the largest finite number of both. Where one of them is not finite, return 0 if they
    are equal, else NaN.
    """
    a, b = a.astype(float), b.astype(float)
    known = np.isfinite(a), np.isfinite(b)
    scale = max(np.abs(x[there]).max(initial=0.0) for x, there in zip((a, b), known, strict=True)) or 1.0
    apart = np.full(len(a), np.nan)
    both, neither = known[0] & known[1], ~known[0] & ~known[1]
    apart[both] = np.abs(a[both] - b[both]) / scale
    apart[neither & ((a == b) | (np.isnan(a) & np.isnan(b)))] = 0.0
    return apart
