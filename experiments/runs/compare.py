"""Compare runs: the settings that differ, and their figures."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from experiments.runs.figures import final_figure
from experiments.runs.record import Run, RunOutcome
from experiments.runs.seeds import differ_in_seed, seed_figure
from experiments.specification.experiment import Experiment, settings_of
from knobs import meaning_of_none

FIGURES = (
    *("held_out_loss", "accuracy", "accuracy_error", "r2", "samples", "updates", "seconds", "bytes", "flops"),
    *("loss", "steps", "samples_per_second", "staleness_mean"),
)


def compare(runs: Sequence[Run | RunOutcome]) -> list[dict[str, Any]]:
    """Return one row per run: the settings in which the runs differ, its status, and its main figures."""
    return [
        {**settings, "status": run.status, **{name: run.summary.get(name) for name in FIGURES}}
        for settings, run in zip(differing(runs), runs, strict=True)
    ]


def over_seeds(runs: Sequence[Run | RunOutcome]) -> list[dict[str, Any]]:
    """Return one row per group of runs that differ only in their seed: its settings, seeds and status, and a SeedFigure
    for each main figure.

    Raise ValueError if a seed occurs twice on the simulated cluster, where that is the same run, not a second sample.
    """
    together = [[runs[place] for place in places] for places in differ_in_seed([run.experiment for run in runs])]
    for some in together:
        seeds = [run.experiment.seed for run in some]
        twice = next((seed for seed in seeds if seeds.count(seed) > 1), None)
        if twice is not None and some[0].experiment.cluster == "simulated":
            raise ValueError(f"seed {twice} of {some[0].experiment.algorithm} was given twice; remove one of them.")
    figures = [name for name in FIGURES if name != "accuracy_error"]
    return [
        {
            **{name: value for name, value in settings.items() if name != "seed"},
            "seeds": [run.experiment.seed for run in some],
            "status": _statuses(some),
            **{name: seed_figure(final_figure(run.status, run.summary, name) for run in some) for name in figures},
        }
        for settings, some in zip(differing([some[0] for some in together]), together, strict=True)
    ]


def differing(runs: Sequence[Run | RunOutcome]) -> list[dict[str, Any]]:
    """Return for each run the settings in which the runs differ, beginning with those that all runs have.

    The value is None for a setting that the run does not have, and a phrase such as "0.9 / workers" for one that its
    algorithm derives from others.
    """
    settings = [_chosen(run.experiment) for run in runs]
    names = list(dict.fromkeys(name for row in settings for name in row))
    apart = [name for name in names if any(row.get(name) != settings[0].get(name) for row in settings)]
    common = [name for name in apart if all(name in row for row in settings)]
    others = [name for name in apart if name not in common]
    return [{name: row.get(name) for name in (*common, *others)} for row in settings]


def _chosen(e: Experiment) -> dict[str, Any]:
    """Return all settings that have an effect; a setting left at None is replaced by what None means."""
    kinds = settings_of(e.algorithm, e.compression, e.workload)
    owner = {name: kind for kind in kinds for name in kind.model_fields}
    return {
        name: meaning_of_none(owner[name], name) if value is None and name in owner else value
        for name, value in e.in_force().items()
    }


def _statuses(runs: Sequence[Run | RunOutcome]) -> str:
    """Return the status that all runs have in common, or else how many runs have each status, such as "4 finished, 1
    diverged".
    """
    counts = Counter(run.status for run in runs)
    return next(iter(counts)) if len(counts) == 1 else ", ".join(f"{n} {status}" for status, n in counts.items())
