"""Every algorithm learns every workload at its defaults, or says why it does not."""

import math

import pytest

from algorithms import rates
from experiments.run import run, workload_of
from experiments.study.rate_table import PAIRS, experiment_of

ENOUGH = 0.7  # of the way from the model before training to the lowest loss that any algorithm of the table reaches
CASES = [(pair, name) for pair in PAIRS for name, line in rates.table()[rates.pair(*pair)].items() if not line.note]


@pytest.mark.parametrize(("pair", "name"), CASES, ids=[f"{rates.pair(*pair)}-{name}" for pair, name in CASES])
def test_it_learns_at_its_defaults(pair, name):
    experiment = experiment_of(name, *pair)
    workload = workload_of(experiment)
    before = workload.evaluate(workload.start(0)).loss
    best = min(line.loss for line in rates.table()[rates.pair(*pair)].values())
    wanted = before - ENOUGH * (before - best)
    done = run(experiment.change(target_loss=before - 0.85 * (before - best)))  # most are there long before the end
    assert done.status == "finished" and math.isfinite(done.summary["held_out_loss"])
    assert done.summary["held_out_loss"] <= wanted
