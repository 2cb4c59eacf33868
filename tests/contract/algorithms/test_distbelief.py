import numpy as np
import pytest

import workloads
from algorithms.model_parallel.distbelief import assign
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.training import train


def digits(**model):
    module = workloads.find("digits")
    return module.build(module.Settings(**model), np.float64)


MODELS = {
    "mlp": lambda: digits(hidden="7,5", activation="tanh"),
    "residual": lambda: digits(model="residual", depth=2, width=6),
    "cnn": lambda: digits(model="cnn", channels=3),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("machines", [2, 3])
@pytest.mark.parametrize("assignment", ["in a row", "by turns", "shuffled"])
def test_whoever_computes_a_node_twenty_steps_end_where_one_machine_ends(model, machines, assignment):
    settings = {"learning_rate": 0.1, "update": "momentum", "momentum": 0.5}
    shared = train("distbelief", MODELS[model](), machines, settings | {"assignment": assignment}, batch=8, steps=20)
    alone = train("sync_sgd", MODELS[model](), 1, settings, batch=8, steps=20)
    np.testing.assert_allclose(shared.shipped, alone.models[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("assignment", ["in a row", "by turns", "shuffled"])
def test_every_node_has_one_machine_and_machines_have_as_many_as_others(assignment):
    dealt = assign(11, 4, assignment)
    assert sorted(np.concatenate(dealt)) == list(range(11))
    assert {len(units) for units in dealt} == {2, 3}


@pytest.mark.parametrize("machines", [2, 5])
def test_an_output_crosses_once_to_each_machine_and_what_is_known_of_it_comes_back_once(machines):
    done = train("distbelief", MODELS["mlp"](), machines, batch=8, steps=1)
    messages = done.outcome.trace().messages
    assert messages["bytes"].sum() / 8 == (machines - 1) * 8 * (2 * (7 + 5) + 10)
    assert len(messages["bytes"]) == machines * (machines - 1) * (2 * 2 + 1)


def test_more_machines_than_nodes_in_a_layer_are_refused():
    with pytest.raises(ValueError, match=r"11 machines .*10 units.*at most 10"):
        run(Experiment.of({"algorithm": "distbelief", "workers": 11}))


def test_a_transformer_is_sent_to_tensor_parallelism():
    with pytest.raises(ValueError, match=r"layer 0.*Embedding.*unit"):
        run(Experiment.of({"algorithm": "distbelief", "workload": "text"}))
