import numpy as np
import pytest

from algorithms.parts.rank_groups import elements_per_rank
from experiments.execution.run import run
from experiments.specification.experiment import Experiment
from tests.contract.algorithms.test_distbelief import digits
from tests.quotes import quote
from tests.training import train
from tracing import HELD


@pytest.mark.parametrize(
    "model",
    [{"hidden": "8,4"}, {"model": "residual", "depth": 2, "width": 8}, {"model": "cnn", "channels": 4}],
    ids=str,
)
def test_the_model_depends_on_the_batch_of_all_and_not_on_the_groups(model):
    settings = {"learning_rate": 0.1, "layout": "hybrid"}
    workload = digits(**model)
    ends = [train("hybrid", workload, 4, settings | {"groups": g}, batch=16 // g, steps=20).shipped for g in (1, 2, 4)]
    alone = train("sgd", workload, 1, {"learning_rate": 0.1}, batch=16, steps=20).models[0]
    for end in ends:
        np.testing.assert_allclose(end, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_it_sends_what_the_formula_says_and_once_the_outputs(groups):
    workload = digits(hidden="8,4")
    done = train("hybrid", workload, 4, {"groups": groups}, batch=16 // groups, steps=1)
    members = 4 // groups
    outputs = groups * (members - 1) * 16 // groups * 10
    formula = 4 * elements_per_rank(units=8 + 4, parameters=workload.parameters, batch=16, ranks=4, groups=groups)
    assert done.outcome.trace().traffic().sum() / 8 == pytest.approx(formula + outputs)


def test_a_rank_holds_its_share_of_the_model_and_its_groups_share_of_the_batch():
    def held(**layout):
        return run(Experiment.of({"algorithm": "hybrid", "batch": 16, "steps": 1, "evaluations": 1} | layout)).peaks()

    parameters = HELD.index("parameters")
    data, hybrid, model = (held(layout=layout)[:, parameters] for layout in ("data", "hybrid", "model"))
    assert hybrid.sum() == 2 * data[0] and model.sum() == data[0]


def test_only_one_group_reports_so_the_model_is_that_of_a_rank_to_the_bit():
    done = run(Experiment.of({"algorithm": "hybrid", "workers": 6, "groups": 3, "steps": 5, "evaluations": 2}))
    assert not done.evaluations["spread"].any()


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"groups": 3}, "3 groups … 4 workers … 1, 2 or 4 groups … layout"),
        ({"groups": 2, "workers": 1}, "2 groups … 1 worker … 1 groups … layout"),
        (
            {"layout": "model", "workers": 3},
            "3 ranks … 128, 128, 10 units … 3 groups",
        ),
        ({"workload": "quadratic"}, "quadratic … no units"),
        ({"workload": "text"}, "layer 0, of kind Embedding"),
    ],
    ids=str,
)
def test_layouts_that_cannot_be_are_refused_with_those_that_can(given, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        run(Experiment.of({"algorithm": "hybrid"} | given))
