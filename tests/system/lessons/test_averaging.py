"""The check of the chapter on averaging: near misses of its exercise lose the marks that they should lose."""

import numpy as np
import pytest

from algorithms.averaging import model_averaging
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.averaging.disguise import Disguise
from tests.system.lessons.near_misses import begun, lost

TOGETHER, VALLEY, ALONE, SENT, TIMED, HELD = [
    "together they learn as much as one worker that sees all the data",
    "down a valley they get farther than plain averaging",
    "one worker alone is plain SGD",
    "they send no more bytes than plain averaging",
    "they take no longer than plain averaging",
    "each holds few vectors at once",
]
IDLE = """
def worker(comm, task, s):
    w = task.start()
    for _ in task.steps(together=True):
        pass
    if comm.rank == 0:
        task.report(w)
    return w
"""


def test_plain_averages_learn_the_same_in_disguise():
    valley = {"workload": "quadratic", "dimension": 6, "kinds": 3, "learning_rate": 0.1, "precision": "float64"}
    one = Experiment.of({**valley, "algorithm": "model_averaging", "workers": 3, "steps": 12, "period": 3})
    plain, disguised = run(one), run(one, worker_override=Disguise(7).around(model_averaging.worker))
    assert disguised.status == "finished", disguised.error
    assert np.allclose(disguised.parameters, plain.parameters, rtol=0, atol=1e-12)


@pytest.mark.slow
def test_a_worker_that_never_trains_earns_nothing_for_what_it_does_not_hold():
    assert lost("averaging", IDLE) == (0, [TOGETHER, VALLEY, ALONE, SENT, TIMED, HELD])


@pytest.mark.slow
def test_averages_that_make_up_for_nothing_earn_nothing_for_the_vectors_that_this_would_take():
    assert lost("averaging", begun("averaging")) == (25, [TOGETHER, VALLEY, HELD])
