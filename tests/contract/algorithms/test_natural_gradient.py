import numpy as np
import pytest

import workloads
from algorithms.parts.fisher import Fisher
from tests.training import train


def fisher(directions=3, smoothing=4.0, forget=0.3, refresh=1):
    return Fisher(directions, smoothing, forget, refresh)


def rows(seed=0, n=16, D=9, dtype=np.float64):
    """Rows that share a few directions."""
    generator = np.random.default_rng(seed)
    strong = generator.standard_normal((n, 3)) @ np.random.default_rng(7).standard_normal((3, D))
    return (strong + 0.3 * generator.standard_normal((n, D))).astype(dtype)


def learned(updates=5, **knobs):
    f = fisher(**knobs)
    for seed in range(updates):
        f.precondition(rows(seed))
    return f


def matrix(f):
    return f.R.T @ np.diag(f.d) @ f.R + f.rho * np.eye(f.R.shape[1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_stay_as_long_together_as_they_were(dtype):
    f = fisher()
    for seed in range(8):
        x = rows(seed, dtype=dtype)
        assert np.linalg.norm(f.precondition(x)) == pytest.approx(
            np.linalg.norm(x), rel=1e-5 if dtype == np.float32 else 1e-13
        )


def test_rows_are_multiplied_by_the_inverse_of_the_smoothed_matrix():
    f, x = learned(), rows(99)
    D = x.shape[1]
    G = matrix(f) + 4.0 / D * np.trace(matrix(f)) * np.eye(D)
    expected = x @ np.linalg.inv(G)
    expected *= np.linalg.norm(x) / np.linalg.norm(expected)
    assert np.abs(expected - x).max() > 0.1
    assert np.allclose(f.precondition(x), expected, rtol=1e-12, atol=1e-13)


def test_an_update_is_the_power_step_and_the_decomposition_of_the_book():
    f, x = learned(), rows(99)
    R, d, rho, eta, D = f.R, f.d, f.rho, 0.3, x.shape[1]
    S = x.T @ x / len(x)
    Y = eta * R @ S + (1 - eta) * np.diag(d + rho) @ R
    C, U = np.linalg.eigh(Y @ Y.T)
    after = np.diag(C**-0.5) @ U.T @ Y
    rest = (eta * np.trace(S) + (1 - eta) * (D * rho + d.sum()) - np.sqrt(C).sum()) / (D - len(R))
    f.update(x)
    assert f.rho == pytest.approx(rest, rel=1e-12)
    assert np.allclose(
        matrix(f), after.T @ np.diag(np.sqrt(C) - rest) @ after + rest * np.eye(D), rtol=1e-11, atol=1e-12
    )


def test_an_update_moves_the_trace_a_part_of_the_way():
    f = learned()
    for seed in range(50, 60):
        x = rows(seed)
        expected = 0.3 * np.square(x).sum() / len(x) + 0.7 * np.trace(matrix(f))
        f.update(x)
        assert f.trace() == pytest.approx(expected, rel=1e-12)
        assert np.trace(matrix(f)) == pytest.approx(expected, rel=1e-12)


def degenerate(kind):
    x = rows()
    return {
        "dead columns": x * (np.arange(9) % 2),
        "all rows alike": np.tile(x[:1], (16, 1)),
        "one row": x[:1],
        "tiny": 1e-12 * x,
        "zero": 0 * x,
        "far apart": x * np.geomspace(1, 1e-14, 9),
    }[kind]


@pytest.mark.parametrize("kind", ["dead columns", "all rows alike", "one row", "tiny", "zero", "far apart"])
def test_directions_stay_orthonormal_whatever_the_rows(kind):
    f, x = fisher(forget=0.9), degenerate(kind)
    for _ in range(60):
        y = f.precondition(x)
        assert np.abs(f.R @ f.R.T - np.eye(3)).max() < 1e-9
        assert np.isfinite(y).all() and np.linalg.norm(y) == pytest.approx(np.linalg.norm(x), rel=1e-12)
        assert f.rho > 0 and (f.d + f.rho > 0).all()


def test_directions_find_what_the_rows_have_in_common():
    f = fisher(forget=0.1)
    for seed in range(200):
        f.precondition(rows(seed, n=64))
    common = np.linalg.qr(np.random.default_rng(7).standard_normal((3, 9)).T)[0]  # (9, 3), of `rows`
    assert np.linalg.svd(f.R @ common)[1].min() > 0.99  # the cosine of the largest angle between the two spaces
    assert f.rho == pytest.approx(0.3**2, rel=0.2)


def test_endless_smoothing_leaves_the_rows_as_they_are():
    f = learned(smoothing=1e12)
    assert np.allclose(f.precondition(rows(99)), rows(99), rtol=1e-9, atol=1e-10)
    assert not np.allclose(learned(smoothing=0.0).precondition(rows(99)), rows(99), rtol=0.1)


def test_the_first_rows_are_left_as_they_are():
    assert np.allclose(fisher().precondition(rows()), rows(), rtol=1e-14)


@pytest.mark.parametrize("refresh, updates", [(1, 12), (4, 3), (5, 3), (100, 1)])
def test_it_learns_from_every_so_many_mini_batches(refresh, updates, monkeypatch):
    calls = []
    monkeypatch.setattr(Fisher, "update", lambda self, x: calls.append(1))
    f = fisher(refresh=refresh)
    for seed in range(12):
        f.precondition(rows(seed))
    assert len(calls) == updates


# the method


def digits(**model):
    module = workloads.find("digits")
    return module.build(module.Settings(**model), np.dtype("float64"))


def test_one_worker_does_not_notice_its_averages():
    often, never = (
        train("natural_gradient", digits(hidden="16"), 1, {"period": period}, batch=16, steps=20).models[0]
        for period in (1, 1000)
    )
    assert np.array_equal(often, never)


@pytest.mark.parametrize("model", [{"hidden": "16,8"}, {"hidden": "4"}, {"model": "cnn", "channels": 1}], ids=str)
def test_with_endless_smoothing_it_is_model_averaging_biases_included(model):
    workload, settings = digits(**model), {"period": 3, "learning_rate": 0.1}
    plain = train("model_averaging", workload, 3, settings, batch=16, steps=8)
    natural, smooth = (
        train("natural_gradient", workload, 3, settings | {"smoothing": smoothing}, batch=16, steps=8)
        for smoothing in (4.0, 1e12)
    )
    assert np.allclose(smooth.models[0], plain.models[0], rtol=0, atol=1e-10)
    assert np.abs(natural.models[0] - plain.models[0]).max() > 1e-3


def test_a_step_is_no_longer_than_the_largest_change():
    workload = digits(hidden="16")
    free, held = (
        train("natural_gradient", workload, 1, {"max_change": most, "period": 1}, batch=16, steps=12)
        for most in (None, 0.05)
    )

    def steps(run):
        path = [workload.start(0), *(row[4] for row in run.outcome.event_logs[0].reports)]
        return np.linalg.norm(np.diff(path, axis=0), axis=1)

    assert steps(free).max() > 0.06
    assert steps(held).max() == pytest.approx(0.05, rel=1e-6) and len(steps(held)) == 12


def test_a_layer_of_a_single_neuron_has_no_directions_and_trains():
    run = train("natural_gradient", digits(hidden="1"), 2, batch=16, steps=5)
    assert np.isfinite(run.models[0]).all()
