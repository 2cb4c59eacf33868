"""Experiments that differ only in their seed, and the mean and spread of their results."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from experiments.runs.record import Run
from experiments.specification.experiment import Experiment


class SeedFigure(NamedTuple):
    """A figure over `n` runs: mean, standard deviation (with n - 1 in its denominator), and the values.

    mean is None without any value, std without two; values has None for a run that lacks the figure.
    """

    mean: float | None
    std: float | None
    n: int
    values: list[float | None]


def seed_figure(values: Iterable[float | None]) -> SeedFigure:
    """Return the mean and standard deviation of the values that exist."""
    values = list(values)
    known = [value for value in values if value is not None]
    mean = float(np.mean(known)) if known else None
    return SeedFigure(mean, float(np.std(known, ddof=1)) if len(known) > 1 else None, len(known), values)


def differ_in_seed(experiments: Sequence[Experiment]) -> list[list[int]]:
    """Return the indices of the experiments, grouped by everything except their seed."""
    together: dict[str, list[int]] = {}
    for place, one in enumerate(experiments):
        together.setdefault(one.model_copy(update={"seed": 0}).key(), []).append(place)
    return list(together.values())


def with_seeds(experiment: Experiment, count: int) -> list[Experiment]:
    """Return copies of the experiment with `count` seeds: its own first, then 0, 1, 2, ... without its own."""
    others = [seed for seed in range(count) if seed != experiment.seed]
    return [experiment, *(experiment.change(seed=seed) for seed in others[: count - 1])]


def pair_by_seed(one: Sequence[Run], other: Sequence[Run]) -> list[tuple[Run, Run]]:
    """Return pairs of runs with the same seed, one run from each sequence. There is at least one pair.

    Without a seed in common, the only pair is the first run of each.
    """
    by_seed = {run.experiment.seed: run for run in other}
    pairs = [(run, by_seed[run.experiment.seed]) for run in one if run.experiment.seed in by_seed]
    return pairs or [(one[0], other[0])]
