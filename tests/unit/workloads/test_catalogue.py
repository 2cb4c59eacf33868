"""The workloads as a whole: found by name, light to import, with names of their own for their knobs."""

from __future__ import annotations

import numpy as np
import pytest

import algorithms
import workloads
from experiments.specification.experiment import Experiment

FILES = ("mnist", "table", "own_module")  # which have no data before somebody brings them some
each_workload = pytest.mark.parametrize("name", workloads.WORKLOADS)


def test_an_unknown_workload_is_refused_with_the_nearest_name():
    with pytest.raises(ValueError, match="did you mean digits"):
        workloads.find("digit")


@each_workload
def test_knobs_of_a_workload_share_no_name_with_the_experiment_or_an_algorithm(name):
    own = set(workloads.find(name).Settings.model_fields)
    assert not own & set(Experiment.model_fields)
    for algorithm in algorithms.names():
        assert not own & set(algorithms.find(algorithm).Settings.model_fields)


@pytest.mark.parametrize("name", [name for name in workloads.WORKLOADS if name not in FILES])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_workload_keeps_its_contract(name, dtype):
    module = workloads.find(name)
    workload = module.build(module.Settings(), np.dtype(dtype))
    w = workload.start(3)
    assert w.shape == (workload.parameters,)
    assert w.dtype == workload.dtype == dtype
    batch = workload.batch(np.arange(8))
    assert len(batch[0]) == 8
    before = w.copy()
    loss, g = workload.gradient(w, batch)
    assert type(loss) is float
    assert g.shape == w.shape and g.dtype == dtype and not np.shares_memory(g, w)
    np.testing.assert_array_equal(w, before)
    other, again = workload.gradient(w, batch)
    assert other == loss and np.array_equal(again, g) and not np.shares_memory(again, g)
    assert np.isfinite(workload.evaluate(w).loss)
    assert workload.name == name
