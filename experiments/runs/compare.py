"""Comparisons of runs: what differs between them, and their figures; and sweeps, which make runs to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from experiments.experiment import NESTED, Experiment
from experiments.run import check, run
from experiments.runs.progress import Progress
from experiments.runs.record import Run

FIGURES = (
    *("held_out_loss", "accuracy", "samples", "updates", "seconds", "bytes", "flops"),
    *("loss", "steps", "samples_per_second", "staleness_mean"),
)
MAX_RUNS = 1000  # of one sweep


def compare(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row per run: the settings in which the runs differ, its status, and its main figures.

    Settings that only some of them have come last.
    """
    settings = [_settings(run.experiment) for run in runs]
    names = list(dict.fromkeys(name for row in settings for name in row))
    differing = [name for name in names if any(row.get(name) != settings[0].get(name) for row in settings)]
    common = [name for name in differing if all(name in row for row in settings)]
    return [
        {
            **{name: row[name] for name in common},
            "status": run.status,
            **{name: run.summary.get(name) for name in FIGURES},
            **{name: row.get(name) for name in differing if name not in common},
        }
        for row, run in zip(settings, runs, strict=True)
    ]


def grid(experiment: Experiment, axes: Mapping[str, Iterable[Any]]) -> list[Experiment]:
    """Return every combination of the axes' values. ValueError, before anything runs, if one of them cannot run."""
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    if len(combinations) > MAX_RUNS:
        raise ValueError(f"this sweep has {len(combinations)} runs; a sweep has at most {MAX_RUNS}.")
    experiments = [experiment.change(**combination) for combination in combinations]
    for one in experiments:
        check(one)
    return experiments


def sweep(
    experiment: Experiment,
    on_progress: Callable[[int, int, Progress], None] | None = None,
    stop: Any = None,
    **axes: Iterable[Any],
) -> list[Run]:
    """Run every combination: `sweep(easgd, workers=(1, 2, 4), period=(1, 10))` makes six runs.

    `on_progress(number, count, progress)` is called with each run under way. After `stop` the runs done so far are
    returned, the last of them "cancelled".
    """
    return list(swept(grid(experiment, axes), on_progress, stop))


def swept(
    experiments: Sequence[Experiment], on_progress: Callable[[int, int, Progress], None] | None = None, stop: Any = None
) -> Iterator[Run]:
    """Yield the runs of a grid, one after the other."""
    for number, one in enumerate(experiments):

        def tell(progress: Progress, number: int = number) -> None:
            on_progress(number, len(experiments), progress)

        done = run(one, tell if on_progress else None, stop)
        yield done
        if done.status == "cancelled":
            return


def difference(a: Run, b: Run) -> str:
    """Return where two runs of one experiment first differ, in one sentence; "" if they are identical, bit for bit."""
    if a.status != b.status:
        return f"one is {a.status}, the other {b.status}"
    tables = {
        "losses": (a.losses, b.losses),
        "evaluations": (a.evaluations, b.evaluations),
        "updates": (a.applied, b.applied),
        "measures": (a.measures, b.measures),
        "memory": (a.memory, b.memory),
        "work": (_work(a), _work(b)),
        "spans": (a.trace.spans, b.trace.spans),
        "messages": (a.trace.messages, b.trace.messages),
    }
    for table, (one, other) in tables.items():
        for column in one:
            if len(one[column]) != len(other[column]):
                return f"{table}: {len(one[column])} rows against {len(other[column])}"
            unequal = _unequal(one[column], other[column])
            if len(unequal):
                row = unequal[0]
                return f"{table}: {column} in row {row} is {one[column][row]} against {other[column][row]}"
    if (a.parameters is None) != (b.parameters is None):
        return "only one has final parameters"
    if a.parameters is not None:
        if a.parameters.shape != b.parameters.shape or a.parameters.dtype != b.parameters.dtype:
            return "the final parameters have another shape or type"
        unequal = _unequal(a.parameters, b.parameters)
        if len(unequal):
            most = float(np.abs(a.parameters - b.parameters).max())
            return f"the final parameters: {len(unequal)} of {len(a.parameters)} differ, by at most {most:g}"
    return ""


def _work(run: Run) -> dict[str, np.ndarray]:
    return {"flops": np.array(run.flops, float), "updates": np.array([run.updates or 0])}


def _unequal(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the positions where the bits differ."""
    size = a.dtype.itemsize
    bits = [np.ascontiguousarray(x).view(np.uint8).reshape(len(x), size) for x in (a, b)]
    return np.flatnonzero((bits[0] != bits[1]).any(axis=1))


def _settings(experiment: Experiment) -> dict[str, Any]:
    values = experiment.model_dump(mode="json")
    return {
        **{k: v for k, v in values.items() if k not in NESTED},
        **values["settings"],
        **values["coding"],
        **values["data"],
    }
