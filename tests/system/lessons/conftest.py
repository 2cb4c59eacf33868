"""Figures, quizzes and checks of a chapter ask for the same experiments: each is run once."""

from functools import lru_cache

import pytest

from experiments.experiment import Experiment
from lessons import figure


@pytest.fixture(scope="session", autouse=True)
def _each_experiment_is_run_once():
    """That a second run would be the same, bit for bit, is proved in `tests/system/experiments/`."""
    run = figure.run_experiment
    kept = lru_cache(maxsize=128)(lambda text: run(Experiment.from_json(text)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figure, "run_experiment", lambda experiment: kept(experiment.json()))
        yield
