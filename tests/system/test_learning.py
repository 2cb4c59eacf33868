"""Every algorithm learns every workload at its defaults, or says why it does not."""

import math

import pytest

import algorithms
from algorithms import rates
from experiments.run import run, workload_of
from experiments.study.rate_table import PAIRS, experiment_of

ENOUGH = 0.7  # of the way from the model before training to the lowest loss that any algorithm of the table reaches


def cases():
    """Every pair without a note; of algorithms that share a line, being one computation, the first."""
    for pair in PAIRS:
        lines = {line: name for name, line in reversed(rates.table()[rates.pair(*pair)].items())}
        yield from ((pair, name) for line, name in reversed(lines.items()) if not line.note)


CASES = list(cases())


@pytest.mark.parametrize(("pair", "name"), CASES, ids=[f"{rates.pair(*pair)}-{name}" for pair, name in CASES])
def test_it_learns_at_its_defaults(pair, name):
    experiment = experiment_of(name, *pair)
    workload = workload_of(experiment)
    before = workload.evaluate(workload.start(0)).loss
    best = min(line.loss for line in rates.table()[rates.pair(*pair)].values())
    wanted = before - ENOUGH * (before - best)
    if pair[0] in ("digits", "spirals"):  # for which its file says how many steps it takes
        experiment = experiment.change(steps=min(experiment.steps, algorithms.find(name).steps_to_learn))
    done = run(experiment)
    assert done.status == "finished" and math.isfinite(done.summary["held_out_loss"])
    assert done.summary["held_out_loss"] <= wanted
