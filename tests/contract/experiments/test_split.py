"""How a model is divided among workers, as algorithms declare it, is what their runs hold."""

import pytest

import algorithms
from experiments.execution import room
from experiments.execution.run import run, workload_of
from experiments.specification.experiment import Experiment
from tracing import HELD

MANY = 4  # workers, an even number for pipelines in two directions
NAMES = [name for name in algorithms.names() if algorithms.find(name).defaults.get("workers") != 1]
LAYOUTS = [("hybrid", {"layout": layout}) for layout in ("data", "model")]
LAYOUTS += [("chimera", {"pipes": 2}), ("pipedream", {"cuts": "5,3", "replicas": "2,2"}), ("three_d", {"tensor": 1})]
LAYOUTS += [("five_d", {"tensor": 2, "stages": 1, "experts": 4, "expert_ranks": 2})]


@pytest.mark.parametrize(("name", "settings"), [*((name, {}) for name in NAMES), *LAYOUTS], ids=str)
def test_workers_hold_the_models_that_their_algorithm_declares(name, settings):
    e = Experiment.of({"algorithm": name, "workers": MANY, "steps": 1, "evaluations": 1, **settings})
    declared = e.method.split(MANY, e.knobs)
    peaks = run(e).peaks()[e.servers :, HELD.index("parameters")]
    models = peaks.sum() / workload_of(e).parameters / e.dtype.itemsize
    threads = algorithms.family(name) == "shared_memory"
    if threads and declared.parameters > 1:  # they share one vector, which is none of a rank's own
        assert models == 0 and declared.parameters == MANY
    elif declared.parameters == 1:
        assert models == pytest.approx(MANY)
    else:  # several versions, or parts that are whole for a moment, come on top
        assert models >= MANY / declared.parameters - 1e-3


def test_threads_that_share_one_model_need_no_more_of_them_than_one():
    few, many = (Experiment.of({"algorithm": "hogwild", "workers": n}) for n in (1, 8))
    assert room.bytes_needed(few, workload_of(few)) == room.bytes_needed(many, workload_of(many))


@pytest.mark.parametrize("name", ["zero1", "zero2", "sandblaster"])
def test_workers_that_divide_less_than_the_parameters_need_a_model_each(name):
    few, many = (Experiment.of({"algorithm": name, "workers": n}) for n in (2, 8))
    workload = workload_of(few)
    assert room.bytes_needed(many, workload) - room.bytes_needed(few, workload) == 6 * 4 * workload.parameters
