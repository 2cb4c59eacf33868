"""Seeds: figures and quiz answers are computed with each of SEEDS. The means are shown, and claims must hold for every
seed.

A seed determines the initial weights, the order of the data, noise and random times. Figures and answers are functions
of a `Seeded`.
"""

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np

from experiments.execution.run import run as run_experiment
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from experiments.viewer.look import Rows, Spread

SEEDS = range(5)
APART = 10  # a figure's own repetitions have fewer seeds than this


class Seeded:
    """A callable that runs experiments with one seed, `run(**settings of an experiment) -> Run`.

    An experiment without a seed gets this one. An experiment with seed s gets s + 10 times this seed, so that a
    figure's own repetitions differ between seeds. `run.seed` is for random numbers that the figure draws itself. `used`
    is True if any experiment or function used the seed.
    """

    def __init__(self, seed: int = SEEDS[0], start: Callable[[Experiment], Run] | None = None):
        self._seed, self._start, self.used = seed, start, False

    @property
    def seed(self) -> int:
        """The seed. Reading it sets `used`."""
        self.used = True
        return self._seed

    def __call__(self, worker_override: Callable[[Any, Any, Any], Any] | None = None, **values: Any) -> Run:
        """Run the experiment with these settings and return its Run. If `worker_override` is given, it replaces the
        algorithm's worker.

        Raise ValueError if the settings are invalid.
        """
        seed = APART * self.seed + values["seed"] if "seed" in values else self.seed
        experiment = Experiment.of(values | {"seed": seed})
        if worker_override:
            return run_experiment(experiment, worker_override=worker_override)
        return (self._start or run_experiment)(experiment)


def run_now(**values: Any) -> Run:
    """Run an experiment with these settings and the first seed, and return its Run. Raise ValueError if the settings
    are invalid.
    """
    return Seeded()(**values)


def each(
    make: Callable[[Seeded], Any], start: Callable[[Experiment], Run] | None = None, of: Sequence[int] = SEEDS
) -> dict[int, Any]:
    """Return {seed: the result of `make` with that seed}. If `make` does not use the seed, only the first seed is in
    it.

    If the rows of the first two seeds agree to the last digit, the other seeds are skipped: such rows are bytes, times
    without jitter, or runs without noise, which do not depend on the seed. (Single answers may agree by chance, so they
    are computed for every seed.)
    """
    made: dict[int, Any] = {}
    for seed in of:
        run = Seeded(seed, start)
        made[seed] = make(run)
        same = len(made) == 2 and isinstance(made[seed], list) and made[seed] == made[of[0]]
        if same or not run.used:
            break
    return made


def mean(samples: Sequence[Rows]) -> Rows:
    """Return the rows with each number replaced by its mean over seeds.

    Raise ValueError if seeds differ in the number of rows, in columns, or in values that are not numbers.
    """
    first = samples[0]
    if any([list(row) for row in rows] != [list(row) for row in first] for rows in samples):
        raise ValueError("seeds differ in rows or columns; a row that one seed lacks cannot be averaged.")
    return [
        {column: _mean(column, [rows[place][column] for rows in samples]) for column in row}
        for place, row in enumerate(first)
    ]


def spread(samples: Sequence[Rows]) -> Spread:
    """Return {column: (lowest, highest)} for each row, with the columns in which seeds differ."""
    found = []
    for place, row in enumerate(samples[0]):
        values = {column: [rows[place][column] for rows in samples] for column in row}
        found.append({name: (min(some), max(some)) for name, some in values.items() if not _equal(some)})
    return found


def _mean(column: str, values: list) -> Any:
    if _equal(values):
        return values[0]
    if not all(isinstance(value, Real) for value in values):
        raise ValueError(f"{column} is {values} under seeds {list(SEEDS)}; words have no mean: remove the column.")
    return float(np.mean(values))


def _equal(values: list) -> bool:
    return all(value == values[0] for value in values)
