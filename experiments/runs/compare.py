"""Comparisons of runs: what differs between them, and their figures; and sweeps, which make runs to compare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product
from typing import Any

from experiments.execution.run import check, run
from experiments.runs.figures import settled
from experiments.runs.progress import Progress
from experiments.runs.record import Run
from experiments.runs.scaling import divided
from experiments.runs.seeds import differ_in_seed, seed_figure
from experiments.specification.experiment import Experiment

FIGURES = (
    *("held_out_loss", "accuracy", "accuracy_error", "r2", "samples", "updates", "seconds", "bytes", "flops"),
    *("loss", "steps", "samples_per_second", "staleness_mean"),
)
AUTO = "auto"
MAX_RUNS = 1000  # of one sweep


def compare(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row per run: the settings in which the runs differ, its status, and its main figures."""
    return [
        {**common, "status": run.status, **{name: run.summary.get(name) for name in FIGURES}, **others}
        for (common, others), run in zip(differing(runs), runs, strict=True)
    ]


def over_seeds(runs: Sequence[Run]) -> list[dict[str, Any]]:
    """Return one row for all runs that differ in nothing but their seed: settings, seeds, status, SeedFigures.

    ValueError if a seed is there twice on the simulated cluster, where that is one run and no sample of two.
    """
    together = [[runs[place] for place in places] for places in differ_in_seed([run.experiment for run in runs])]
    for some in together:
        seeds = [run.experiment.seed for run in some]
        twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
        if twice is not None and some[0].experiment.cluster == "simulated":
            raise ValueError(f"seed {twice} of {some[0].experiment.algorithm} is there twice; leave one of them out.")
    figures = [name for name in FIGURES if name != "accuracy_error"]
    return [
        {
            **{name: value for name, value in common.items() if name != "seed"},
            "seeds": [run.experiment.seed for run in some],
            "status": _statuses(some),
            **{name: seed_figure(settled(run.status, run.summary, name) for run in some) for name in figures},
            **others,
        }
        for (common, others), some in zip(differing([some[0] for some in together]), together, strict=True)
    ]


def differing(runs: Sequence[Run]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return of each run the settings in which the runs differ: those that all have, and those that some have.

    None is the value of a setting that the run does not have, AUTO of one that its algorithm chooses by the others.
    """
    settings = [_chosen(run.experiment) for run in runs]
    names = list(dict.fromkeys(name for row in settings for name in row))
    apart = [name for name in names if any(row.get(name) != settings[0].get(name) for row in settings)]
    common = [name for name in apart if all(name in row for row in settings)]
    others = [name for name in apart if name not in common]
    return [({name: row[name] for name in common}, {name: row.get(name) for name in others}) for row in settings]


def _chosen(e: Experiment) -> dict[str, Any]:
    """Return all settings that have an effect; those of its modules that are left to them are AUTO."""
    nested = {**e.settings, **e.coding, **e.data}
    return {name: AUTO if value is None and name in nested else value for name, value in e.in_force().items()}


def grid(
    experiment: Experiment, axes: Mapping[str, Iterable[Any]], global_batch: int | None = None
) -> list[Experiment]:
    """Return every combination of the axes' values; of a `global_batch` each worker takes an equal part.

    ValueError, before anything runs, if one of them cannot run, or if an axis has no effect in any of them.
    """
    combinations = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    if len(combinations) > MAX_RUNS:
        raise ValueError(f"this sweep has {len(combinations)} runs; a sweep has at most {MAX_RUNS}.")
    if global_batch:
        for one in combinations:
            one["batch"] = divided(experiment.change(**one), global_batch)
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


def _statuses(runs: Sequence[Run]) -> str:
    """Return "finished", or of how many runs each is true: "4 finished, 1 diverged"."""
    counts = Counter(run.status for run in runs)
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{n} {status}" for status, n in counts.items())
