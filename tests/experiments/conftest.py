"""A small finished run that tests of storing, comparing and exporting share."""

import pytest

from experiments.experiment import Experiment
from experiments.run import run


@pytest.fixture(scope="session")
def small_run():
    """EASGD with two workers: losses, evaluations, messages, everything but staleness."""
    return run(Experiment.of({"algorithm": "easgd", "workers": 2, "steps": 12, "evaluations": 3}))


@pytest.fixture(scope="session")
def stale_run():
    """Downpour with two workers: staleness as well."""
    return run(Experiment.of({"algorithm": "downpour", "workers": 2, "steps": 8, "evaluations": 3}))
