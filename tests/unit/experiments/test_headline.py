"""The sentence over a timeline on how workers spend their time."""

import re

import pytest

from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from experiments.viewer import doing
from experiments.viewer.headline import headline
from experiments.wording import units


def said(**settings):
    done = run(Experiment.of({"steps": 30, "evaluations": 1, **settings}))
    return headline(done), done


def shares(text: str) -> float:
    return sum(float(share) for share in re.findall(r"([\d.]+) %", text))


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"slow": "3:4"},
        {"algorithm": "asgd"},
        {"algorithm": "gpipe"},
        {"algorithm": "hogwild", "workload": "sparse"},
        {"algorithm": "sgd"},
        {"algorithm": "asgd", "crash": "1:0.005"},
        {"pause": "1:0.005-0.01"},
    ],
    ids=str,
)
def test_the_shares_are_those_of_the_figures_and_leave_out_hardly_anything(settings):
    text, done = said(**settings)
    for kind, verb in (
        ("compute", "computes"),
        ("communicate", "communicates"),
        ("wait", "waits"),
        ("idle", "is idle"),
    ):
        share = done.summary[f"share_{kind}"]
        assert (f"{verb} {units.percent(share)}" in text) == (share >= 3e-3), (kind, text)
    assert 98.7 <= shares(text) <= 100.3


def test_each_worker_is_said_only_of_workers_that_are_alike():
    assert said()[0].startswith("Each worker computes")
    assert said(slow="3:4")[0].startswith("On average a worker computes")


def test_a_rank_is_called_what_its_lane_is_called():
    for settings in ({}, {"algorithm": "hogwild", "workload": "sparse"}, {"algorithm": "asgd"}, {"per_node": 2}):
        assert " worker computes" in said(**settings)[0]
    assert " stage computes" in said(algorithm="gpipe")[0]


def test_that_a_worker_never_waits_is_said_only_where_none_does():
    text, done = said()
    assert 0 < done.summary["share_wait"] < 3e-3
    assert text.endswith("; it hardly ever waits for another worker to be ready.")
    text, done = said(algorithm="hogwild", workload="sparse", steps=40)
    assert done.summary["share_wait"] == 0
    assert text.endswith("; it never waits for another worker to be ready.")
    assert "ready" not in said(slow="3:4")[0]


def test_of_a_run_that_waits_for_a_lost_rank_for_ever_it_is_not_said_that_it_never_waits():
    text, done = said(crash="2:0.005")
    assert done.status == "failed"
    assert "ever waits" not in text


def test_compressing_is_told_apart_from_updating_the_model():
    text, done = said(compression="top_k")
    spent = doing.shares(done)
    assert spent["compress"] > 0.05 and spent["update"] > 0
    assert spent["compress"] + spent["update"] == pytest.approx(done.summary["share_update"])
    assert f"compresses messages {units.percent(spent['compress'])}" in text and 98.7 <= shares(text) <= 100.3
    assert "compresses" not in said()[0]


def test_one_worker_has_nobody_to_wait_for():
    text, _ = said(algorithm="sgd")
    assert text.startswith("The worker computes")
    assert "wait" not in text and "communicates" not in text
