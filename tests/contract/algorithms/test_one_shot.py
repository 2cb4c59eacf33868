import numpy as np
import pytest

from tests.training import ScalarChain, Springs, train
from workloads.quadratic import Quadratic


def test_the_shipped_model_is_the_mean_of_what_the_workers_learned_alone():
    springs = Springs([1.0, -2.0, 7.0], parameters=5)
    alone = train("sgd", springs, 3, {"learning_rate": 0.1}, steps=9).models
    assert not np.array_equal(alone[0], alone[1])
    together = train("one_shot", springs, 3, {"learning_rate": 0.1}, steps=9)
    assert np.allclose(together.shipped, np.mean(alone, axis=0), rtol=1e-15, atol=0)
    assert all(np.array_equal(w, together.shipped) for w in together.models)


def test_on_the_way_it_reports_the_replica_that_it_has_and_not_an_average_that_nobody_knows():
    def reported(name):
        run = train(name, ScalarChain(), 4, {"learning_rate": 0.1}, steps=6)
        return [row[4].tolist() for row in run.outcome.event_logs[0].reports]

    average = reported("one_shot")
    assert average[:6] == reported("sgd")
    assert len(average) == 7 and average[6] != average[5]


def test_nobody_talks_before_the_last_gradient():
    outcome = train("one_shot", Springs([0.0] * 4), 4, steps=10).outcome
    messages = outcome.trace().messages
    assert len(messages["sent"])
    for rank, event_log in enumerate(outcome.event_logs):
        assert messages["sent"][messages["src"] == rank].min() >= event_log.losses[-1][2]


def test_averaging_divides_the_variance_by_the_workers_and_leaves_the_bias():
    eta, steps, dimension = 0.1, 15, 1000  # every coordinate is an experiment of its own
    points = np.random.default_rng(1).standard_normal((4096, dimension))
    bowl = Quadratic(points - points.mean(0), np.ones(dimension), np.ones(dimension))
    bias = (1 - eta) ** steps
    variance = eta / (2 - eta) * (1 - (1 - eta) ** (2 * steps))
    for workers in (1, 4, 16):
        w = train("one_shot", bowl, workers, {"learning_rate": eta}, steps=steps).shipped
        assert w.mean() == pytest.approx(bias, abs=4 * np.sqrt(variance / workers / dimension))
        assert w.var() == pytest.approx(variance / workers, rel=0.15)
