"""Numbers of an independent program in float64: five honest gradients and two liars."""

import numpy as np
import pytest

from algorithms.synchronous.robust import AGGREGATES, Settings, check, squared_distances
from tests.training import Springs, train

ROWS = np.array([[1, 0], [1.2, 0.1], [0.9, -0.1], [1.1, 0.2], [0.8, 0], [-10, 5], [-10, 5]])
ROBUST = sorted(AGGREGATES.keys() - {"mean"})


def aggregate(name, rows=ROWS, tolerated=2, **settings):
    out = np.zeros(2)
    AGGREGATES[name](out, np.array(rows), Settings(aggregate=name, tolerated=tolerated, **settings))
    return out


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("mean", {}, (-2.142857142857, 1.457142857143)),
        ("median", {}, (0.9, 0.1)),
        ("trimmed", {}, (0.9, 0.1)),
        ("krum", {}, (1.0, 0.0)),
        ("krum", {"selected": 3}, (0.9, -0.033333333333)),
        ("clipped", {"radius": 1.0}, (0.617996507015, 0.201777727562)),
    ],
)
def test_aggregates_are_those_of_an_independent_program(name, settings, expected):
    assert aggregate(name, **settings) == pytest.approx(expected, abs=1e-11)


def test_weiszfelds_steps_end_at_the_geometric_median():
    out = np.zeros(2)
    AGGREGATES["geometric"](out, ROWS.copy(), Settings(aggregate="geometric"), rounds=100)
    assert out == pytest.approx([0.893602508564, 0.034991216476], abs=1e-6)


def test_krums_scores_are_those_of_an_independent_program():
    scores = [sum(sorted(squared_distances(ROWS, row, skip=i))[:3]) for i, row in enumerate(ROWS)]
    assert scores == pytest.approx([0.11, 0.20, 0.17, 0.20, 0.19, 286.46, 286.46], abs=1e-9)


@pytest.mark.parametrize("name", ["median", "trimmed", "krum"])
def test_gradients_without_bound_do_not_leave_the_range_of_the_honest_ones(name):
    rows = ROWS.copy()
    rows[5:] = 1e30, -1e30
    assert (aggregate(name, rows) >= ROWS[:5].min(axis=0)).all() and (
        aggregate(name, rows) <= ROWS[:5].max(axis=0)
    ).all()
    assert np.abs(aggregate("mean", rows)).min() > 1e29


@pytest.mark.parametrize("name", sorted(AGGREGATES))
def test_the_order_of_the_workers_does_not_matter(name):
    order = np.random.default_rng(0).permutation(7)
    assert aggregate(name, ROWS[order]) == pytest.approx(aggregate(name), rel=1e-9, abs=1e-12)


def ends(aggregate, lie, strength, liars=2, **settings):
    """The distance from the optimum, 0, after 60 steps of ten workers on springs that pull to about 0."""
    springs = [Springs([centre] * 10, starts=[3.0]) for centre in np.linspace(-1, 1, 10)]
    settings = {"aggregate": aggregate, "lie": lie, "strength": strength, "liars": liars} | settings
    if aggregate in ("trimmed", "krum"):
        settings |= {"tolerated": 2}
    run = train("robust", lambda rank: springs[rank], 10, {"learning_rate": 0.1} | settings, steps=60, fails=True)
    return abs(float(run.models[0][0])) if run.outcome.error is None else np.inf


@pytest.mark.parametrize("aggregate", ROBUST)
def test_two_liars_of_ten_that_flip_their_gradients_do_not_stop_training(aggregate):
    assert ends(aggregate, "flip", 10.0) < 1.0 < 3.0 < ends("mean", "flip", 10.0)


def test_a_lie_that_is_told_by_all_ranks_alike_keeps_them_equal():
    springs = [Springs([centre] * 5, starts=[3.0], parameters=6) for centre in np.linspace(-1, 1, 5)]
    for lie in ("flip", "noise", "little", "inner"):
        run = train("robust", lambda rank: springs[rank], 5, {"lie": lie, "liars": 1, "strength": 2.0}, steps=5)
        assert all(np.array_equal(model, run.models[0]) for model in run.models)


def test_it_says_how_far_the_liars_pull_the_step_away():
    springs = [Springs([0.0] * 4, starts=[2.0]) for _ in range(4)]
    run = train("robust", lambda rank: springs[rank], 4, {"aggregate": "mean", "liars": 1, "strength": 1.0}, steps=1)
    (measured,) = [row[3] for row in run.outcome.event_logs[0].measures if row[2] == "pulled away"]
    assert measured == pytest.approx(1.0)  # 2, 2, 2 and -2 have the mean 1


@pytest.mark.parametrize(
    ("workers", "settings", "words"),
    [
        (4, {"liars": 4}, "use at most 3"),
        (4, {"aggregate": "trimmed", "tolerated": 2}, "use tolerated 1, or 5 workers"),
        (6, {"aggregate": "krum", "tolerated": 2}, "use tolerated 1"),
        (7, {"aggregate": "krum", "tolerated": 2, "selected": 8}, "use at most 7"),
    ],
)
def test_settings_that_make_no_sense_together_are_refused_with_what_would_fit(workers, settings, words):
    with pytest.raises(ValueError, match=words):
        check(workers, 1, None, Settings(**settings))
