import pytest

from app.workbench import head
from experiments.specification.experiment import Experiment


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("precision=fp16&loss_scale=1024", "precision fp16, loss scale 1,024"),
        ("precision=bf16&weight_storage=nearest", "precision bf16, weight storage 16 bits rounded to nearest"),
        ("recompute_activations=selective", "activation recomputation selective"),
        ("recompute_activations=true", "activation recomputation full"),
        ("algorithm=easgd&pull=2&collective=ring", "pull 2"),
        ("workload=text&context=32", "context 32"),
    ],
    ids=str,
)
def test_a_runs_line_names_every_setting_that_differs_from_its_default(query, named):
    assert f" · {named}" in head.headline(Experiment.from_query(query))


def test_a_runs_line_says_each_setting_once():
    told = "algorithm=downpour&shards=2&workers=3&batch=8&steps=20&network=1GbE&slow=2:3&jitter=pareto&seed=4"
    assert head.headline(Experiment.from_query(told)) == (
        "3 workers and 2 servers · batch 8 · 20 steps · simulated: 1GbE, laptop devices, pareto jitter, "
        "worker 2 (3× slower) · seed 4"
    )
