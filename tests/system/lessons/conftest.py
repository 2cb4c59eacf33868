"""Figures, quizzes and checks of a chapter ask for the same experiments: each is run once."""

from functools import lru_cache

import pytest

from experiments.experiment import Experiment
from lessons import seeds


@pytest.fixture(scope="session", autouse=True)
def _each_experiment_is_run_once():
    """That a second run would be the same, bit for bit, is proved in `tests/system/experiments/`."""
    run = seeds.run_experiment
    kept = lru_cache(maxsize=128)(lambda text: run(Experiment.from_json(text)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seeds, "run_experiment", lambda e, **other: run(e, **other) if other else kept(e.json()))
        yield


@pytest.fixture
def rates_are_stated(monkeypatch):
    """Refuse experiments of figures and answers that leave the learning rate to a default."""
    run = seeds.Seeded.__call__

    def stating(self, **values):
        stated = "learning_rate" in values or "learning_rate" not in Experiment.of(values).settings
        assert stated, f"give learning_rate: the default may change, and what is shown with it. Given: {values}"
        return run(self, **values)

    monkeypatch.setattr(seeds.Seeded, "__call__", stating)
