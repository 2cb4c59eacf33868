import numpy as np
import pytest

from tests.training import Springs, train

BOOK = {"learning_rate": 0.1, "period": 2, "block_momentum": 0.5}
FORMS = ("classical", "nesterov", "nesterov_code")
each_form = pytest.mark.parametrize("form", FORMS)


class Slope(Springs):
    """The same gradient, 1, everywhere and for everybody."""

    def gradient(self, w, batch):
        return 0.0, np.ones_like(w)


def models(run):
    """W after every block."""
    return np.array([float(row[4][0]) for row in run.outcome.event_logs[0].reports])


def course(settings, blocks=3, forces=(1.0, 3.0)):
    """(W after every block, Wg at its beginning)."""
    springs = Springs(list(forces), starts=[0.0])
    run = train("bmuf", springs, len(forces), BOOK | settings, steps=2 * blocks)
    return models(run), np.ravel(springs.seen[forces[0]])[::2]


def test_the_classical_form_makes_the_steps_of_the_book():
    W, Wg = course({"form": "classical"}, blocks=4)
    assert W[:3] == pytest.approx([0.38, 0.8778, 1.339918], abs=1e-12)
    assert Wg == pytest.approx([0, *W[:3]], abs=1e-15)


def test_the_form_of_nesterov_makes_the_steps_of_the_book():
    W, Wg = course({"form": "nesterov"}, blocks=4)
    assert W[:3] == pytest.approx([0.38, 0.8417, 1.2487655], abs=1e-12)
    assert Wg == pytest.approx([0, 0.57, 1.07255, 1.45229825], abs=1e-12)


@each_form
def test_without_momentum_all_forms_make_the_steps_of_model_averaging(form):
    W, Wg = course({"form": form, "block_momentum": 0}, blocks=4)
    assert W[:3] == pytest.approx([0.38, 0.6878, 0.937118], abs=1e-12)
    assert Wg == pytest.approx([0, *W[:3]], abs=1e-15)


@pytest.mark.parametrize("bm", [0.0, 0.5, 2 / 3, 0.9])
def test_the_code_form_is_what_cntk_does_with_its_sum_scaled(bm):
    forces, W, D = np.array([1.0, 3.0, 8.0]), 0.0, 0.0
    expected = []
    for _ in range(5):  # CNTK's recursion with a block learning rate of 1
        w = W + (1 - 0.9**2) * (forces - W)  # two steps of each worker
        D = bm * D + (1 - bm) * (w - W).sum()
        W = W + D + bm * D
        expected.append(W)
    settings = {"form": "nesterov_code", "block_momentum": bm, "block_rate": (1 - bm) * 3}
    assert course(settings, 5, forces)[0] == pytest.approx(expected, rel=1e-12)
    if bm == 0:
        plain = course({"form": "nesterov_code", "block_momentum": 0}, 5, forces)[0]
        assert expected[0] == pytest.approx(3 * plain[0])  # not model averaging: the steps add up


@pytest.mark.parametrize(("form", "gain"), list(zip(FORMS, (16, 16, 31), strict=True)))
def test_under_a_constant_drift_16_workers_get_16_times_as_far_and_with_the_code_form_31_times(form, gain):
    run = train("bmuf", Slope([0.0] * 16), 16, {"learning_rate": 0.01, "period": 1, "form": form}, steps=200)
    assert np.diff(models(run))[-1] == pytest.approx(-0.01 * gain, rel=1e-4)


@pytest.mark.parametrize(("bm", "rate"), [(0.0, 0.5), (0.5, 1.0), (0.9, 1.0), (0.8, 2.0)])
@each_form
def test_the_gain_is_the_block_rate_over_what_the_filter_lets_go(form, bm, rate):
    settings = {"learning_rate": 0.01, "period": 3, "form": form, "block_momentum": bm, "block_rate": rate}
    run = train("bmuf", Slope([0.0] * 2), 2, settings, steps=3 * 150)
    beyond = 1 + bm if form == "nesterov_code" else 1
    assert np.diff(models(run))[-1] == pytest.approx(-0.03 * beyond * rate / (1 - bm), rel=1e-5)


@pytest.mark.parametrize(("bm", "rate"), [(0.5, 3.3), (0.5, 3.6), (0.8, 3.9), (0.8, 4.3), (0.0, 2.2), (0.0, 2.35)])
def test_the_eigenvalues_of_a_block_say_whether_the_classical_form_diverges(bm, rate):
    c = (1 - 0.5) ** 3  # what a block leaves of the distance to the optimum
    block = np.array([[1 + rate * (c - 1), bm], [rate * (c - 1), bm]])
    settings = {"learning_rate": 0.5, "period": 3, "form": "classical", "block_momentum": bm, "block_rate": rate}
    W = models(train("bmuf", Springs([0.0, 0.0]), 2, settings, steps=3 * 120))
    state, expected = np.array([1.0, 0.0]), []  # W, D
    for _ in W:
        state = block @ state
        expected.append(state[0])
    np.testing.assert_allclose(W, expected, rtol=1e-9, atol=1e-12)
    assert (abs(W[-20:]).max() > abs(W[40:60]).max()) == (max(abs(np.linalg.eigvals(block))) > 1)


def test_every_block_starts_without_velocity_unless_it_is_kept():
    def first_steps(state):
        springs = [Springs([0.0, 0.0]), Springs([0.0, 0.0])]
        settings = {"learning_rate": 0.01, "period": 3, "update": "momentum", "state": state}
        train("bmuf", springs.__getitem__, 2, settings, steps=12)
        path = np.ravel(springs[0].seen[0.0])
        return [(path[k + 1] - path[k]) / path[k] for k in range(0, 12, 3)]

    assert first_steps("reset") == pytest.approx([-0.01] * 4)
    assert min(first_steps("keep")[1:]) < -0.02


@each_form
def test_what_is_shipped_is_the_model_that_was_reported_and_not_the_point_ahead(form):
    run = train("bmuf", Springs([1.0, 3.0], starts=[0.0]), 2, BOOK | {"form": form}, steps=7)
    assert len(models(run)) == 4  # the last block is half a one
    assert [float(w[0]) for w in run.models] == [models(run)[-1]] * 2


def test_block_momentum_of_1_never_forgets_and_is_refused():
    from experiments.specification.experiment import Experiment

    with pytest.raises(ValueError, match=r"block_momentum is '?1'?; it must be 0 to below 1"):
        Experiment.of({"algorithm": "bmuf", "block_momentum": 1})
    with pytest.raises(ValueError, match=r"period is '?0'?; it must be 1 to"):
        Experiment.of({"algorithm": "bmuf", "period": 0})
