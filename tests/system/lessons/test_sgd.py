"""The exercise on SGD: what students write instead, and what they are told; the closed forms of the chapter."""

import random

import numpy as np
import pytest

import lessons
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.grading.grader import Solution, grade
from lessons.sgd import experiments
from lessons.sgd.check import Bowl, Steps
from lessons.sgd.experiments import NOISY, expected_loss, floor, mean_of
from tests.tiers import slow_except

VALLEY, NOISE, FAR, MEMORY = range(4)

ADAM = """
import numpy as np

def step(w, g, memory):
    m, v, t = memory or [np.zeros_like(w), np.zeros_like(w), 0]
    m, v, t = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2, t + 1
    w = w - 0.3 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return w, w, [m, v, t]
"""
HEAVY_BALL_WITH_A_FALLING_RATE = """
import numpy as np

def step(w, g, memory):
    v, t = memory or [np.zeros_like(w), 0]
    v = 0.67 * v + g
    w = w - 3.3 / (t + 1) ** 0.5 * v
    return w, w, [v, t + 1]
"""
TWENTY_MEANS_KEPT = """
import numpy as np

def step(w, g, memory):
    t, v, means = (*memory[:2], memory[2:]) if memory else (0, np.zeros_like(w), [])
    v = 0.669 * v + g
    w = w - 3.306 * v
    if t >= 150:  # of 50 models each
        k = (t - 150) % 50
        means = [*means[:-1], means[-1] + (w - means[-1]) / (k + 1)] if k else [*means, w]
    return w, np.mean(means, axis=0) if means else w, [t + 1, v, *means]
"""
IDLE = "def step(w, g, memory):\n    return w, w, []\n"


def solution():
    return (lessons.chapter("sgd").folder / "solution.py").read_text()


def marks(source):
    report = grade(lessons.chapter("sgd"), source, seed=4)
    return [bool(mark.earned) for mark in report.marks], [mark.observed for mark in report.marks], report.error


@pytest.mark.slow
def test_adam_is_no_faster_in_a_turned_valley_and_does_not_settle_in_noise():
    earned, told, _ = marks(ADAM)
    assert not any(earned)
    assert "times as many; at most 1.3 is allowed" in told[VALLEY] and "the loss of averaged SGD" in told[NOISE]


@pytest.mark.slow
def test_a_falling_rate_is_too_slow_for_the_valley():
    earned, told, _ = marks(HEAVY_BALL_WITH_A_FALLING_RATE)
    assert not earned[VALLEY] and "times as many" in told[VALLEY] and not earned[NOISE]


@pytest.mark.slow
def test_a_mean_from_the_first_model_on_lags_in_the_valley_and_from_far_away():
    source = solution()
    assert "ARRIVED = 150" in source
    earned, told, _ = marks(source.replace("ARRIVED = 150", "ARRIVED = 0"))
    assert earned == [False, True, False, True] and "or never for the model you ship (the weights" in told[VALLEY]


@pytest.mark.slow
def test_averaged_sgd_loses_the_valley_and_nothing_else():
    slow = solution().replace("MOMENTUM = ((1 - ROOT) / (1 + ROOT)) ** 2", "MOMENTUM = 0.0")
    slow = slow.replace("RATE = 4 / (1 + ROOT) ** 2", "RATE = 1.0").replace("ARRIVED = 150", "ARRIVED = 300")
    earned, told, _ = marks(slow)
    assert earned == [False, True, True, True] and "or never" in told[VALLEY]


@pytest.mark.slow
def test_keeping_a_list_of_models_loses_the_mark_of_memory():
    earned, told, _ = marks(TWENTY_MEANS_KEPT)
    assert earned[NOISE] and not earned[MEMORY] and told[MEMORY].startswith("18.0")


@pytest.mark.slow
def test_a_step_that_stays_where_it_is_earns_nothing_for_what_it_does_not_remember():
    earned, told, error = marks(IDLE)
    assert not any(earned) and "judged only when" in told[MEMORY] and not error


@pytest.mark.slow
def test_who_hides_the_memory_in_variables_of_the_module_has_half_of_it():
    hidden = solution().replace("memory or [np.zeros_like(w), w, 0]", "KEPT.get('all') or [np.zeros_like(w), w, 0]")
    hidden = hidden.replace("return w, z, [v, z, t + 1]", "KEPT['all'] = [v, z, t + 1]\n    return w, z, []")
    earned, _, _ = marks(hidden.replace("ROOT = 0.1", "KEPT = {}\nROOT = 0.1"))
    assert earned[:MEMORY] == [False, False, False], "two processes take turns"


HIDDEN = """
import numpy as np

MOMENTUM, RATE, MODELS = 0.669, 3.306, []

def step(w, g, memory):
    v, t = memory or [np.zeros_like(w), 0]
    if t < 2:
        MODELS.clear()
    v = MOMENTUM * v + g
    before, w = w, w - RATE * v
    if t >= 150:
        MODELS.append((before + w) / 2)  # two models of which this process sees one
    return w, np.mean(MODELS, axis=0) if MODELS else w, [v, t + 1]
"""
HOARD = """
SEEN = []

def step(w, g, memory):
    SEEN.append((w.copy(), g.copy()))
    return honest(w, g, memory)
"""


@pytest.mark.slow
def test_models_in_a_variable_are_no_memory_of_few_vectors():
    earned, told, error = marks(HIDDEN)
    assert not earned[MEMORY] and "depends on more than w, g and memory" in told[MEMORY] and not error


@pytest.mark.slow
def test_whatever_a_process_has_seen_and_keeps_counts_as_memory():
    earned, told, _ = marks(solution().replace("def step(", "def honest(") + HOARD)
    assert earned == [True, True, True, False] and "process grew by" in told[MEMORY]


def test_a_step_that_differs_where_others_were_not_seen_is_told():
    source = "calls = []\ndef step(w, g, memory):\n    calls.append(1)\n    return w - len(calls) * g, w, []\n"
    with Solution(source).ranks(3) as (*turns, third):
        steps = Steps(turns, third, random.Random(1))
        for _ in steps._models(Bowl(1, 20), 100):
            pass
    assert "depends on more than w, g and memory" in steps.hidden


@pytest.mark.parametrize(
    ("returned", "words"),
    slow_except(
        2,
        [
            ("w - g", "must return three things"),
            ("w - g, 0.0, []", "for a model; expected"),
            ("w - g, w[:2], []", "for a model; expected"),
            ("w - g, w, {}", "the memory is a dict"),
            ("w - g, w, ['w']", "the memory has a str"),
            ("w - g, w, [2 ** 100]", "64 bits"),
        ],
    ),
)
def test_what_a_step_returns_wrongly_is_told(returned, words):
    _, _, error = marks(f"def step(w, g, memory):\n    return {returned}\n")
    assert words in error, error


def test_the_bowl_of_the_grader_has_the_noise_of_theory():
    bowl = Bowl(seed=3, condition=20, noise=1.0)
    theory = bowl.curvature.sum() / (2 * 1700)
    assert bowl.loss(bowl.optimum) == 0 and 0.5 * theory < bowl.loss_of_average(2000) < 2 * theory
    assert Bowl(3, 100).heavy_ball() > Bowl(3, 25).heavy_ball() > 10


def test_the_closed_forms_agree_with_each_other():
    assert expected_loss([0.5] * 400)[-1] == pytest.approx(floor(0.5), rel=1e-3)
    assert mean_of(0.5, 1) == pytest.approx(floor(0.5))
    assert mean_of(0.5, 10**6) == pytest.approx(experiments.CURVATURES.sum() / (2 * 10**6), rel=1e-3)


def test_momentum_lifts_the_floor_as_the_quiz_says():
    from lessons.sgd.answers import lifted

    few = {**NOISY, "condition": 1, "dimension": 2000, "points": 2000, "steps": 600, "evaluations": 2}
    plain, heavy = (
        run(Experiment.of({**few, "algorithm": "momentum", "momentum": mu, "learning_rate": 0.05})).summary
        for mu in (0.0, 0.8)
    )
    assert heavy["held_out_loss"] / plain["held_out_loss"] == pytest.approx(lifted(None, 0.8), rel=0.2)


@pytest.mark.slow
def test_two_processes_with_half_the_batch_are_one_with_the_whole():
    values = {"hidden": "32", "steps": 10, "learning_rate": 0.2, "cluster": "processes", "evaluations": 2}
    one = run(Experiment.of({**values, "algorithm": "sgd", "workers": 1, "batch": 32}))
    two = run(Experiment.of({**values, "algorithm": "sync_sgd", "workers": 2, "batch": 16}))
    assert np.abs(one.parameters - two.parameters).max() < 1e-5
