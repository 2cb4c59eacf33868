from types import SimpleNamespace

import numpy as np
import pytest

from algorithms.pipelined import spectrain
from tests.training import ScalarChain, train
from workloads.recorder import Diverged

BOOK = {  # (w0, w1, w2) after 2, 4 and 8 updates of every stage; a scalar chain, eta 0.1, heavy ball 0.5
    "end": (".601518 .682699 .768644", ".754069 .800025 .864442", ".867101 .892827 .943308"),
    "own": (".598905 .682420 .769497", ".743564 .797511 .867765", ".875449 .909422 .968425"),
}


@pytest.mark.parametrize("form", BOOK)
def test_the_weights_with_heavy_ball_are_those_of_the_book(form):
    for steps, row in zip((2, 4, 8), BOOK[form], strict=True):
        run = train("spectrain", ScalarChain(), 3, {"learning_rate": 0.1, "momentum": 0.5, "form": form}, steps=steps)
        assert run.shipped == pytest.approx([float(word) for word in row.split()], abs=6e-7)


def test_it_looks_ahead_as_far_as_the_table_says():
    assert [spectrain.ahead(stage, 3) for stage in range(3)] == [(2, 0), (1, 0), (1, 1)]
    assert [spectrain.ahead(stage, 4) for stage in range(4)] == [(3, 0), (2, 0), (2, 1), (1, 1)]
    assert [spectrain.ahead(stage, 4, "own") for stage in range(4)] == [(3, 0), (2, 0), (1, 0), (0, 0)]


@pytest.mark.parametrize("fading", [False, True])
def test_a_prediction_is_exact_if_what_it_expects_of_gradients_happens(fading):
    s = spectrain.Settings(learning_rate=0.1, momentum=0.5 if fading else 0.0, fading=fading)
    w = np.array([1.0, -2.0])
    stage = spectrain.PredictedWeights(s, SimpleNamespace(index=0, count=4), w)
    g = np.array([0.3, 0.7])
    stage.update(w, g)

    class LatestWeights:
        newest = 1, w

    _, u = stage.predict(LatestWeights, 3)
    for _ in range(3):
        stage.update(w, 0 * g if fading else g)
    assert np.allclose(u, w, rtol=0, atol=1e-15)


def test_predicting_from_one_noisy_gradient_diverges_where_stale_weights_do_not():
    x = np.random.default_rng(0).uniform(0.2, 1.8, 64)
    noisy = ScalarChain(w=(0.9, 1.0, 1.0, 1.1), x=np.where(x > 1, x, -x))  # targets are 1 whatever the sign
    settings = {"learning_rate": 0.3, "momentum": 0.0}
    stale = train("pipedream", noisy, 4, settings, steps=200)
    assert max(row[3] for row in stale.outcome.event_logs[-1].losses) < 3
    foreseen = train("spectrain", noisy, 4, settings, steps=200, fails=True)
    assert isinstance(foreseen.outcome.error.__cause__, Diverged)
