"""The chapter on pipelined back-propagation: what students write instead in its exercise, and what they are told."""

import re

import numpy as np
import pytest

import lessons
import workloads
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from lessons.grading.grader import grade
from lessons.pipelined_backprop.check import Chain, weights
from lessons.pipelined_backprop.slots import updates
from tests.system.lessons.near_misses import begun, lost, solution
from tests.training import ScalarChain, train

CHAPTER = lessons.chapter("pipelined_backprop")
TEMPLATE = begun("pipelined_backprop")
SGD, STASH, NEWEST, FILLS, RATES = [
    "stages that wait, and a single stage, train like SGD",
    "with a stash, each stage is as late as the order requires",
    "without a stash, errors go back through the newest weights",
    "it is right while the pipeline fills, too",
    "each stage has its own rate",
]


def told(source):
    """Return mark -> what was observed, of those that were not earned."""
    return {mark.name: mark.observed for mark in grade(CHAPTER, source, seed=5).marks if not mark.earned}


def test_stages_that_wait_are_told_so_and_earn_little():
    score, marks = lost("pipelined_backprop", TEMPLATE)
    assert score == 12 and marks == [STASH, NEWEST, FILLS, RATES]
    assert "those of stages that wait" in told(TEMPLATE)[STASH]


def test_one_delay_for_all_stages_is_told():
    source = solution("pipelined_backprop", ("hops * (len(w) - 1 - s) for s", "hops * (len(w) - 1) for s"))
    said = told(source)
    assert set(said) == {STASH, NEWEST, FILLS, RATES} and "all stages are as late as the first" in said[STASH]


def test_a_stash_that_was_not_asked_for_is_told():
    said = told(solution("pipelined_backprop", ("met if stash else newest", "met")))
    assert "those with a stash" in said[NEWEST] and STASH not in said and SGD not in said


def test_errors_through_newest_weights_where_there_is_a_stash_are_told():
    said = told(solution("pipelined_backprop", ("met if stash else newest", "newest")))
    assert "those without a stash" in said[STASH] and NEWEST not in said


def test_a_negative_index_reads_the_newest_weights_while_the_pipeline_fills():
    said = told(solution("pipelined_backprop", ("max(0, batch - late[s])", "batch - late[s] if batch else 0")))
    assert FILLS in said and SGD not in said


def test_errors_that_go_through_weights_which_were_just_changed_are_told():
    hasty = """
def train(w, xs, rate, hops, stash, divided):
    w = list(w)
    for x in xs:
        inputs = []
        for weight in w:
            inputs.append(x)
            x = weight * x
        error = x - 1
        for s in reversed(range(len(w))):
            w[s] -= rate * error * inputs[s]
            error *= w[s]
    return w
"""
    said = told(hasty)
    assert set(said) == {SGD, STASH, NEWEST, FILLS, RATES} and "already changed by the same mini-batch" in said[SGD]


@pytest.mark.parametrize("body", ["return list(w)", "return [0.0] * len(w)", "return [float('nan')] * len(w)"])
def test_who_trains_nothing_earns_nothing(body):
    assert lost("pipelined_backprop", f"def train(w, xs, rate, hops, stash, divided):\n    {body}\n")[0] == 0


@pytest.mark.parametrize("returned", ["None", "w[:1] + w", "'weights'", "[[x] for x in w]"])
def test_what_is_returned_wrongly_is_told_in_a_sentence(returned):
    source = f"def train(w, xs, rate, hops, stash, divided):\n    return {returned}\n"
    assert re.search(r"train must return \d numbers|plain", grade(CHAPTER, source, seed=5).error)


@pytest.mark.parametrize(
    ("name", "settings", "hops", "stash"),
    [
        ("petrowski", {}, 2, False),
        ("pipedream", {"weights": "stash"}, 1, True),
        ("pipedream", {"weights": "none"}, 1, False),
    ],
)
def test_the_grader_computes_what_the_pipelines_compute(name, settings, hops, stash):
    w, xs = (0.5, 0.6, 0.7, 1.1), np.linspace(0.5, 1.5, 14)
    done = train(name, ScalarChain(w=w, x=xs), 4, {"learning_rate": 0.05, **settings}, steps=14)
    assert done.shipped == pytest.approx(weights(Chain(w, xs, 0.05, hops, stash, False)), abs=1e-12)


@pytest.mark.parametrize(
    ("how", "slots"),
    [
        ({"algorithm": "petrowski"}, {}),
        ({"algorithm": "chen", "momentum": 0.9}, {"momentum": 0.9}),
        ({"algorithm": "pipedream", "momentum": 0.9, "weights": "none"}, {"momentum": 0.9, "hops": 1}),
        ({"algorithm": "pipedream", "momentum": 0.9}, {"momentum": 0.9, "hops": 1, "stash": True}),
        ({"algorithm": "pipedream", "weights": "vertical"}, {"hops": 1, "stash": True, "vertical": True}),
    ],
)
def test_slots_compute_what_the_pipeline_computes(how, slots):
    model = {"model": "residual", "depth": 6, "width": 16, "activation": "tanh"}
    values = {"workers": 4, "steps": 20, "batch": 32, "learning_rate": 0.05, **model, **how}
    done = run(Experiment.of({**values, "network": "ideal", "precision": "float64", "evaluations": 1, "seed": 3}))
    digits = workloads.find("digits")
    workload = digits.build(digits.Settings(**model), np.dtype("float64"))
    *before, last = updates(workload, 4, 0.05, steps=21, batch=32, seed=3, **slots)
    assert np.abs(last.newest - done.parameters).max() < 1e-12
    assert [one.loss for one in before] == pytest.approx(done.losses["loss"], rel=1e-12)
