from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from algorithms.pipelined import pipemare
from tests.training import ScalarChain, train

BOOK = {  # (w0, w1, w2) after 1, 2, 4 and 8 updates of every stage; a scalar chain, eta 0.1
    "": (".533180 .627650 .723700", ".585871 .669625 .758500", ".661993 .725463 .802138", ".844991 .850999 .904207"),
    "T1": (".506636 .609217 .723700", ".521931 .627631 .758500", ".558655 .663058 .802138", ".741505 .793592 .901437"),
    "T2": (".533180 .627650 .723700", ".581083 .668436 .758500", ".644753 .721932 .802138", ".803877 .844585 .904256"),
    "T1 T2": (
        ".506636 .609217 .723700", ".521170 .627109 .758500", ".554158 .661060 .802138", ".714731 .788440 .901376",
    ),
}  # fmt: skip


def course(steps, stages=3, chain=None, **settings):
    settings = {"learning_rate": 0.1, "rescale": 0, "correct": False} | settings
    return train("pipemare", chain or ScalarChain(), stages, settings, steps=steps)


@pytest.mark.parametrize("fixes", BOOK)
def test_the_weights_are_those_of_the_book(fixes):
    for steps, row in zip((1, 2, 4, 8), BOOK[fixes], strict=True):
        run = course(steps, rescale=4 if "T1" in fixes else 0, correct="T2" in fixes)
        assert run.shipped == pytest.approx([float(word) for word in row.split()], abs=6e-7)


def test_the_delay_is_twice_the_way_to_the_end_and_one():
    chain = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 24))
    run = course(24, 4, chain, learning_rate=0.01)
    assert [delays[-1] for delays in run.staleness] == [7, 5, 3, 1]


def test_one_stage_of_one_layer_is_sgd_with_a_delay_of_one_bit_for_bit_and_of_more_layers_it_is_not():
    for w, agrees in (((0.5,), True), ((0.5, 0.6), False)):
        chain = ScalarChain(w=w, x=np.linspace(0.5, 1.5, 12))
        mine = course(12, 1, chain)  # whose backward reads newer weights than its forward, if there are any to read
        late = train("delayed", chain, 1, {"delay": 1, "layerwise": False, "learning_rate": 0.1}, steps=12)
        assert np.array_equal(mine.shipped, late.models[0]) == agrees


def test_the_rate_starts_divided_by_the_delay_and_is_whole_after_K_updates():
    s = pipemare.Settings(learning_rate=0.4, rescale=10)
    stage = pipemare.CorrectedWeights(0, s, SimpleNamespace(index=0, count=3), np.zeros(1))
    assert stage.rate(0) == pytest.approx(0.4 / 5, rel=1e-15)
    assert stage.rate(5) == pytest.approx(0.4 / np.sqrt(5), rel=1e-15)
    assert stage.rate(10) == stage.rate(1000) == 0.4
    rates = [stage.rate(k) for k in range(11)]
    assert rates == sorted(rates)


def test_a_correction_finds_the_weights_that_went_forward_if_weights_move_steadily():
    s = pipemare.Settings(learning_rate=0.1, rescale=0)
    w, steps, tau = np.zeros(3), count(), 3
    stage, history = pipemare.CorrectedWeights(0, s, SimpleNamespace(index=0, count=2), w), []
    for _ in steps:
        history.append(w.copy())
        stage.update(w, np.array([1.0, -2.0, 0.5]))
        if len(history) == 60:
            break

    class LatestWeights:
        newest = len(history), w

    _, u = stage.backward(LatestWeights, None)
    assert np.allclose(u, history[-tau], rtol=0, atol=1e-9)
    assert not np.allclose(u, w, atol=0.1)


def test_epochs_without_delay_are_sgd_and_then_the_delay_begins():
    chain = ScalarChain(w=(0.5, 0.6, 0.7, 1.2), x=np.linspace(0.5, 1.5, 12))
    run = course(36, 4, chain, learning_rate=0.01, warm_up=2.0, rescale=5, correct=True)
    assert [delays[:24] for delays in run.staleness] == [[0] * 24] * 4
    assert [delays[-1] for delays in run.staleness] == [7, 5, 3, 1]
    (sgd,) = train("sgd", chain, 1, {"learning_rate": 0.01}, steps=24).models
    short = course(24, 4, chain, learning_rate=0.01, warm_up=2.0, rescale=5, correct=True)
    assert np.array_equal(short.shipped, sgd)


def longest_stable(tau, grid):
    """The largest rate of the grid at which w(t+1) = w(t) - a w(t - tau) dies out, by the roots of its polynomial."""
    stable = 0.0
    for a in grid:
        polynomial = np.zeros(tau + 2)
        polynomial[0], polynomial[1] = 1, -1
        polynomial[-1] += a
        if np.abs(np.roots(polynomial)).max() <= 1 + 1e-9:
            stable = a
    return stable


@pytest.mark.parametrize(
    ("tau", "limit"), [(0, 2.0), (1, 1.0), (2, 0.6180), (3, 0.4450), (5, 0.28463), (10, 0.14946), (20, 0.076605)]
)
def test_a_delay_bears_rates_up_to_2_sin_of_pi_over_4_tau_plus_2(tau, limit):
    assert 2 * np.sin(np.pi / (4 * tau + 2)) == pytest.approx(limit, abs=6e-5)
    assert longest_stable(tau, np.linspace(0.97, 1.03, 61) * limit) == pytest.approx(limit, rel=2e-3)


def largest_root(a, discrepancy, back, tau=10):
    """Of w(t+1) = w(t) - a ((1 + D) w(t - tau) - D w(t - back)): beyond 1 it grows."""
    polynomial = np.zeros(tau + 2)
    polynomial[:2] = 1, -1
    polynomial[tau + 1] += a * (1 + discrepancy)
    polynomial[back + 1] -= a * discrepancy
    return np.abs(np.roots(polynomial)).max()


@pytest.mark.parametrize(("back", "limit"), [(6, 0.038), (0, 0.0177)])
def test_other_weights_on_the_way_back_make_it_unstable_earlier_still(back, limit):
    assert largest_root(0.96 * limit, 5, back) < 1 < largest_root(1.04 * limit, 5, back)
    assert limit < min(2 / (5 * (10 - back)), 2 * np.sin(np.pi / 42))
