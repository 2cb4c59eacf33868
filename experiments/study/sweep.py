"""A sweep: one run for every combination of values of some settings."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import product
from typing import Any

from experiments.execution.run import check, run
from experiments.runs.progress import Progress
from experiments.runs.record import Run
from experiments.runs.scaling import batch_per_worker
from experiments.specification.experiment import Experiment

MAX_RUNS = 1000  # limit for one sweep


def grid(
    experiment: Experiment, axes: Mapping[str, Iterable[Any]], global_batch: int | None = None
) -> list[Experiment]:
    """Return an experiment for every combination of the values in `axes`.

    A `global_batch` is divided evenly among workers. Raise ValueError, before anything runs, if one of the
    experiments cannot run, or if an axis has no effect in any of them.
    """
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    if len(combinations) > MAX_RUNS:
        raise ValueError(f"this sweep would have {len(combinations)} runs; use at most {MAX_RUNS}.")
    if global_batch:
        if "batch" in axes:
            raise ValueError(f"batch: global_batch={global_batch} already sets it; use one of them.")
        for combination in combinations:
            combination["batch"] = batch_per_worker(experiment.change(**combination), global_batch)
    experiments = [experiment.change(**combination) for combination in combinations]
    read = {name for one in experiments for name in one.in_force()}
    for one, combination in zip(experiments, combinations, strict=True):
        one.refuse_idle({name: value for name, value in combination.items() if name not in read})
        check(one)
    return experiments


def sweep(
    experiment: Experiment,
    on_progress: Callable[[int, int, Progress], None] | None = None,
    stop: Any = None,
    **axes: Iterable[Any],
) -> list[Run]:
    """Run every combination: `sweep(easgd, workers=(1, 2, 4), period=(1, 10))` makes six runs.

    `on_progress(number, count, progress)` is called during each run. After `stop`, return the runs done so far, the
    last of them "cancelled".
    """
    return list(run_sweep(grid(experiment, axes), on_progress, stop))


def run_sweep(
    experiments: Sequence[Experiment], on_progress: Callable[[int, int, Progress], None] | None = None, stop: Any = None
) -> Iterator[Run]:
    """Yield the runs of a grid, one after the other."""
    for number, one in enumerate(experiments):
        done = run(one, on_progress and partial(on_progress, number, len(experiments)), stop)
        yield done
        if done.status == "cancelled":
            return
