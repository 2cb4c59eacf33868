"""Knobs that are declared not to be in force have no effect indeed: the same bits come out with another value."""

from typing import get_args

import pytest

import algorithms
from experiments.execution.run import run
from experiments.runs.difference import difference
from experiments.specification.experiment import Experiment
from knobs import in_force

BY_ONE_RULE = "tensor", "gpipe", "sync_sgd"  # stand for all that hand momentum to algorithms/parts/optimizers.py


def idle_knobs():
    """(algorithm, knob, values of others by which it is not in force) of every knob with a condition."""
    for name in algorithms.names():
        kind = algorithms.find(name).Settings
        for knob, field in kind.model_fields.items():
            extra = field.json_schema_extra
            if knob == "momentum" and name not in BY_ONE_RULE:
                continue
            for other, some in extra["unless"].items():
                yield pytest.param(name, knob, {other: some[0]}, id=f"{name}-{knob}")
            for other, some in extra["when"].items():
                off = next(value for value in _values(kind, other) if value not in some)
                yield pytest.param(name, knob, {other: off}, id=f"{name}-{knob}")


def _values(kind, name):
    field = kind.model_fields[name]
    return (not field.default,) if isinstance(field.default, bool) else get_args(field.annotation) or ("0-1,1-2,2-0",)


def _another(kind, name):
    field = kind.model_fields[name]
    if isinstance(field.default, bool):
        return not field.default
    others = [value for value in get_args(field.annotation) if value != field.default]
    return others[0] if others else field.default / 2 if isinstance(field.default, float) else field.default + 1


@pytest.mark.parametrize(("name", "knob", "values"), [*idle_knobs()])
def test_a_knob_that_is_not_in_force_changes_no_bit(name, knob, values):
    workers = algorithms.find(name).example_workers
    e = Experiment.of({"algorithm": name, "steps": 4, "evaluations": 1, "workers": workers, **values})
    kind = e.method.Settings
    assert not in_force(kind, knob, e.settings)
    other = e.model_copy(update={"settings": {**e.settings, knob: _another(kind, knob)}})
    assert other.settings != e.settings
    assert difference(run(e), run(other)) == ""
