import numpy as np
import pytest

from cluster.faults import JITTERS, Faults
from cluster.network import NETWORKS
from tests.contract.algorithms.test_asgd import long, served
from tests.training import Springs, train
from tracing import HELD

RATE = {"learning_rate": 0.05}


def test_without_compensation_it_is_asynchronous_sgd_bit_for_bit():
    plain = served(long(4, RATE, steps=30))
    for form in ("constant", "adaptive"):
        assert served(long(4, RATE | {"form": form, "compensation": 0}, name="dc_asgd", steps=30)) == plain


def test_the_second_of_two_workers_is_compensated_for_the_first():
    settings = {"learning_rate": 0.1, "form": "constant", "compensation": 0.04}
    w = served(train("dc_asgd", Springs([0.0, 0.0]), 2, settings, steps=1))
    assert w[0] == 0.9  # nothing has moved since it looked
    assert w[1] == pytest.approx(0.9 - 0.1 * (1 + 0.04 * 1 * (0.9 - 1)), rel=1e-15)


@pytest.mark.parametrize("shared", [False, True])
def test_the_mean_square_is_each_workers_own_unless_it_is_shared(shared):
    settings = {"learning_rate": 0.1, "form": "adaptive", "forget": 0.95, "compensation": 2, "shared": shared}
    w = served(train("dc_asgd", Springs([0.0, 0.0]), 2, settings, steps=1))
    square = 0.05 * (1 + 0.95 * shared)
    assert w[1] == pytest.approx(0.9 - 0.1 * (1 + 2 / np.sqrt(square + 1e-7) * (0.9 - 1)), rel=1e-12)


@pytest.mark.parametrize(
    ("settings", "squares"), [({}, 4), ({"shared": True}, 1), ({"form": "constant", "shared": True}, 0)]
)
def test_the_server_keeps_a_model_for_each_worker_and_the_mean_squares_that_its_form_has(settings, squares):
    log = train("dc_asgd", Springs([0.0] * 4, parameters=3), 4, settings, steps=2).outcome.event_logs[0]
    assert [log.held[HELD.index(kind)] / (3 * 8) for kind in ("buffers", "optimizer state")] == [4, squares]


def test_with_the_true_curvature_for_lam_g_g_a_late_gradient_is_fresh():
    h, start = 0.5, 2.0  # so g is h start, and lam g g is h
    settings = {"learning_rate": 0.1, "form": "constant", "compensation": h / (h * start) ** 2}
    springs = Springs([0.0] * 3, starts=[start], parameters=4, curvature=h)
    late = train("dc_asgd", springs, 3, settings, steps=1)
    assert late.staleness[0] == [0, 1, 2]
    assert late.shipped == pytest.approx(start * (1 - 0.1 * h) ** 3, rel=1e-14)


def test_it_comes_nearer_to_the_same_updates_without_delay_than_asynchronous_sgd_does():
    """On a bowl of curvature 1 where g g is 1 too, lam = 1 is the true Hessian for the first updates."""
    where = {"network": NETWORKS["ideal"], "faults": Faults(jitter=JITTERS["cloud"])}
    fresh = [0.95**k for k in range(1, 9)]
    late, compensated = (
        served(
            train("dc_asgd", Springs([0.0] * 8), 8, RATE | {"form": "constant", "compensation": c}, steps=1, **where)
        )
        for c in (0, 1)
    )
    assert np.abs(np.subtract(compensated, fresh)).max() < 0.2 * np.abs(np.subtract(late, fresh)).max()
