"""What a run says of ranks that it lost, and of who went on: with every combination of who is lost."""

import re
from dataclasses import replace
from functools import cache

import pytest

from experiments.execution.run import run
from experiments.runs.ending import explain_planned_loss, explain_stop, steps_taken
from experiments.specification.experiment import Experiment
from experiments.wording import units
from tests.quotes import quote


@cache
def lost(algorithm, crash, **values):
    return run(Experiment.of({"algorithm": algorithm, "crash": crash, "steps": 20, "evaluations": 1, **values}))


def test_why_a_run_ended_is_known_by_values_whatever_its_message_says():
    done = lost("sync_sgd", "2:0.001")
    assert done.fatal_loss == (2, 0.001)
    assert explain_planned_loss(replace(done, error="worker two has gone")) == explain_planned_loss(done)


@pytest.mark.parametrize("algorithm", ["asgd", "sync_sgd", "hogbatch", "easgd", "gossipgrad"])
def test_where_all_workers_are_lost_the_run_ends_early_says_so_once_and_nobody_goes_on(algorithm):
    first = 1 if algorithm in ("asgd", "easgd") else 0
    done = lost(algorithm, ",".join(f"{rank}:0.001" for rank in range(first, first + 4)))
    assert done.status == "failed" and 0 < done.summary["steps"] < 20
    told = explain_planned_loss(done)
    assert re.search(quote(f"{done.summary['steps']} of 20 steps … all 4 workers … nobody is left"), told)
    assert not any("continued" in note for note in done.notes)


def test_a_run_that_ended_before_its_steps_says_how_far_it_got_and_another_says_its_steps():
    apart = run(Experiment.of({"algorithm": "easgd", "pull": 2, "steps": 200, "evaluations": 2}))
    assert apart.status == "diverged" and 0 < apart.summary["steps"] < 200
    assert steps_taken(apart) == f"{apart.summary['steps']} of 200 steps"
    assert steps_taken(lost("sync_sgd", "2:9")) == "20 steps"
    done = run(Experiment.of({"epochs": 0.5, "steps": None, "evaluations": 1}))
    assert steps_taken(done) == f"{done.summary['steps']} steps"


def test_the_only_worker_that_is_lost_ends_the_run():
    done = lost("sgd", "0:0.001", workers=1)
    assert done.status == "failed" and "worker 0 was lost" in explain_planned_loss(done)


def test_of_several_workers_lost_each_is_named_and_only_those_that_trained_since_went_on():
    done = lost("asgd", "1:0.001,2:0.002,3:0.001")
    assert done.status == "finished" and not explain_planned_loss(done)
    assert [note for note in done.notes if "continued" in note] == ["rank 4 continued without them"]
    (note,) = [note for note in lost("asgd", "2:0.001").notes if "continued" in note]
    assert note == "the other 3 workers continued without it"


def test_a_worker_that_comes_back_is_one_that_went_on():
    done = lost("asgd", "1:0.001,2:0.001,3:0.001,4:0.001-0.002")
    assert done.status == "finished" and "rank 4 continued without them" in done.notes
    everybody = lost("asgd", "1:0.001-0.002,2:0.001-0.002,3:0.001-0.002,4:0.001-0.002")
    assert everybody.status == "finished" and not any("continued" in note for note in everybody.notes)


@pytest.mark.parametrize(
    ("algorithm", "crash", "words"),
    [
        ("sync_sgd", "2:0.001", "worker 2 … 1 ms … gradient of every worker"),
        ("asgd", "0:0.001", "server 0 … 1 ms … workers wait"),
        (
            "asgd",
            "0:0.001,2:0.0005",
            "server 0 and worker 2 … the last at 1 ms … workers wait for server 0.",
        ),
        ("backup", "1:0.001,2:0.001,3:0.001", "worker 1, worker 2 and worker 3 … 1 ms … others wait"),
        ("dpsgd", "2:0.001", "worker 2 … neighbours wait"),
        ("local_sgd", "2:0.001", "worker 2 … average their models"),
        ("gpipe", "1:0.001", "stage 1 … 1 ms … every rank … part of"),
        ("greedy", "1:0.001", "module 1 … modules next to it wait"),
    ],
)
def test_why_a_loss_ends_a_run_is_what_ranks_of_its_family_need_of_each_other(algorithm, crash, words):
    assert re.search(quote(words), explain_planned_loss(lost(algorithm, crash)))


def test_when_a_run_ended_is_one_number_in_its_figures_and_in_what_it_says_of_the_loss():
    done = lost("dpsgd", "2:0.001")
    seconds, steps = units.seconds(done.summary["seconds"]), done.summary["steps"]
    assert re.search(quote(f"{seconds} … {steps} of 20 steps"), explain_planned_loss(done))


def test_a_loss_that_was_not_planned_or_not_the_end_is_not_said_to_be():
    done = lost("sync_sgd", "2:0.001")
    unplanned = replace(done, experiment=done.experiment.change(crash="3:0.001"))
    later = replace(done, experiment=done.experiment.change(crash="2:0.1"))
    for other in (unplanned, later, replace(done, fatal_loss=None), lost("asgd", "2:0.001")):
        assert explain_planned_loss(other) == ""


def test_when_a_run_was_stopped_is_one_number_in_its_figures_and_in_what_it_says_of_that():
    looks = iter(range(1000))
    done = run(Experiment(steps=10_000), stop=lambda: next(looks) > 2)
    steps, seconds = units.count(done.summary["steps"]), units.seconds(done.summary["seconds"])
    assert explain_stop(done) == f"Stopped at step {steps}, after {seconds}." and done.summary["steps"] < 10_000
    assert explain_stop(run(Experiment(steps=10_000), stop=lambda: True)).startswith("Stopped")
    assert explain_stop(lost("sync_sgd", "2:0.001")) == ""
