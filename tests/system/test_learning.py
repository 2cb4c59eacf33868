"""Every algorithm learns every workload at its defaults, with few workers and with many, or says why it does not."""

import math
import zlib
from statistics import fmean

import pytest

import algorithms
from algorithms import rates
from experiments.execution.run import run, workload_of
from experiments.study.rate_table import LEARNED, MORE, PAIRS, experiment_of, fewer, more
from experiments.study.rates import SECOND_LOOK, SEEDS, end

pytestmark = pytest.mark.slow

ENOUGH = 0.7  # of the way from the model before training to the lowest loss that any algorithm of the table reaches


def cases():
    """Every pair without a note; of algorithms that share a line, being one computation, the first."""
    for pair in PAIRS:
        lines = {line: name for name, line in reversed(rates.table()[rates.pair(*pair)].items())}
        yield from ((pair, name) for line, name in reversed(lines.items()) if not line.note)


def line_of(pair, name):
    """The line of an algorithm on a workload and its model."""
    return rates.table()[rates.pair(*pair)][name]


CASES = list(cases())


def is_cut_elsewhere(pair, name):
    """True if more than 4 workers can run, but not the most of the table."""
    crowd = more(experiment_of(name, *pair))
    return bool(crowd) and crowd[-1].workers < MORE[-1]


LATE = [
    (pair, name)
    for pair, name in CASES
    if not (line := line_of(pair, name)).many_loss and (line.many < line.rate or is_cut_elsewhere(pair, name))
]
"""Those that bear smaller rates with more than 4 workers, since gradients add up late, and those whose models are cut
elsewhere; without those that are said to learn less with so many."""

SEVERAL = [
    case for case in CASES if "cnn" not in case[0][1] and case[0] != ("text", "") and not line_of(*case).few_loss
]
"""Those that take seconds and are not said to learn less with fewer workers."""


@pytest.mark.parametrize(("pair", "name"), CASES, ids=[f"{rates.pair(*pair)}-{name}" for pair, name in CASES])
def test_it_learns_at_its_defaults(pair, name):
    experiment = experiment_of(name, *pair)
    workload = workload_of(experiment)
    before = workload.evaluate(workload.start(0)).loss
    best = min(line.loss for line in rates.table()[rates.pair(*pair)].values())
    wanted = before - ENOUGH * (before - best)
    # for these its file says how many steps it takes; Hogwild! updates for each of 32 samples in a step
    if pair[0] in ("digits", "spirals") or (*pair, name) == ("text", "", "hogwild"):
        experiment = experiment.change(steps=min(experiment.steps, algorithms.find(name).steps_to_learn))
    done = run(experiment)
    assert done.status == "finished" and math.isfinite(done.summary["held_out_loss"])
    assert done.summary["held_out_loss"] <= wanted


@pytest.mark.parametrize(("pair", "name"), LATE, ids=[f"{rates.pair(*pair)}-{name}" for pair, name in LATE])
def test_more_workers_learn_at_their_defaults_under_one_of_the_seeds(pair, name):
    crowd = more(experiment_of(name, *pair))
    many = crowd[zlib.crc32(name.encode()) % len(crowd)]
    assert many.settings["learning_rate"] == line_of(pair, name).many
    learns(many, pair, name)


@pytest.mark.parametrize(("pair", "name"), SEVERAL, ids=[f"{rates.pair(*pair)}-{name}" for pair, name in SEVERAL])
def test_fewer_workers_learn_at_their_defaults_under_one_of_the_seeds(pair, name):
    for few in fewer(experiment_of(name, *pair)):
        assert few.settings["learning_rate"] == line_of(pair, name).rate
        learns(few, pair, name)


@pytest.mark.parametrize("name", [name for pair, name in CASES if pair == ("digits", "mlp")])
def test_at_its_best_rate_it_ends_where_its_line_says_and_no_seed_fails(name):
    line = line_of(("digits", "mlp"), name)
    best = experiment_of(name, "digits", "mlp").change(learning_rate=line.best)
    losses = [end(best.change(seed=seed)) for seed in SEEDS]
    if fmean(losses) != pytest.approx(line.loss, rel=0.25):  # three seeds did not decide, so the line is that of eight
        losses += [end(best.change(seed=seed)) for seed in SECOND_LOOK[len(SEEDS) :]]
    assert fmean(losses) == pytest.approx(line.loss, rel=0.25)


def learns(experiment, pair, name):
    """Assert that it goes three quarters of the way to the loss of its line."""
    workload = workload_of(experiment)
    before = workload.evaluate(workload.start(0)).loss
    seed = SEEDS[zlib.crc32(f"{pair} {name}".encode()) % len(SEEDS)]
    assert run(experiment.change(seed=seed)).summary["held_out_loss"] <= before - LEARNED * (
        before - line_of(pair, name).loss
    )
