"""What is computed between two exchanges is not lost at the end of a run; or it is said."""

import numpy as np
import pytest

import algorithms
from experiments.execution.run import run, workload_of
from experiments.specification.experiment import Experiment
from tests.training import ScalarChain, train

STEPS = 5
WHOLE = {"period": 10_000, "fragments": 1}
WITH = {
    ("streaming_diloco", "overlap"): WHOLE,
    ("decoupled_diloco", "overlap"): WHOLE,
    ("decoupled_diloco", "grace"): {**WHOLE, "overlap": 9999},
}
"""What a long setting needs to be allowed."""
EXTREME = {"batch_growth": {"milestones": "0.001", "factor": 100}, "async_svrg": {"passes": 1}}
"""Settings by which most steps of a method come before its next update, and which are not counted in steps."""


def longest(kind, name):
    """The largest value of a setting in steps, None for any other setting."""
    field = kind.model_fields[name]
    if field.annotation is int and (field.json_schema_extra or {}).get("unit") == "steps":
        return min(rule.le for rule in field.metadata if hasattr(rule, "le"))
    return None


def periods():
    for name in algorithms.names():
        kind = algorithms.find(name).Settings
        for knob in kind.model_fields:
            if most := longest(kind, knob):
                yield name, {knob: most, **WITH.get((name, knob), {})}
    yield from EXTREME.items()


@pytest.mark.parametrize(("name", "settings"), [*periods()], ids=lambda x: x if isinstance(x, str) else "-".join(x))
def test_a_period_longer_than_the_run_ships_what_was_learned_or_a_note_that_nothing_was(name, settings):
    e = Experiment.of({"algorithm": name, "steps": STEPS, "hidden": "8", **settings})
    done = run(e)
    untrained = np.array_equal(done.parameters, workload_of(e).start(e.seed))
    assert done.status == "finished" and done.summary["samples"] > 0
    assert untrained == any("the one training began with" in note for note in done.notes)
    assert untrained == (name in ("easgd", "async_svrg"))  # a visit, and a pass over the data, come first


@pytest.mark.parametrize(
    ("name", "settings"), [("dynsgd", {"period": 5}), ("downpour", {"n_push": 5, "n_fetch": 5, "update": "sgd"})]
)
def test_the_steps_after_the_last_full_period_are_pushed_as_well(name, settings):
    alone = train("sgd", ScalarChain(), 1, {"learning_rate": 0.1}, steps=7).shipped
    pushed = train(name, ScalarChain(), 1, {"learning_rate": 0.1} | settings, steps=7).shipped
    assert pushed == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("name", ["agn", "adag"])
def test_a_last_commit_is_the_mean_of_as_many_steps_as_there_are(name):
    start = ScalarChain().start(0)
    alone = train("sgd", ScalarChain(), 1, {"learning_rate": 0.1}, steps=3).shipped
    committed = train(name, ScalarChain(), 1, {"learning_rate": 0.1, "period": 100}, steps=3).shipped
    assert committed == pytest.approx(start + (alone - start) / 3, rel=1e-12)


def test_a_batch_that_does_not_fill_up_is_applied():
    settings = {"milestones": "0.001", "factor": 100, "learning_rate": 0.1, "momentum": 0}
    x = np.array([1.0, 2.0, 1.5, 0.5])
    grown = train("batch_growth", ScalarChain(x=x), 1, settings, steps=4).shipped
    first = train("sgd", ScalarChain(x=x), 1, {"learning_rate": 0.1}, steps=1).shipped
    rest = train("sgd", ScalarChain(w=first, x=x[1:]), 1, {"learning_rate": 0.1}, batch=3, steps=1).shipped
    assert grown == pytest.approx(rest, rel=1e-12)
