"""What the survey's table says of idle workers is what runs of them show where messages take no time.

All layers cost the same, and so do their three passes: forward, backward for inputs, backward for weights. The time of
a worker is counted from the start of one step to the start of a later one, whole periods and passes over the data.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

import algorithms
from cluster.devices import Device
from cluster.faults import NONE, Faults
from cluster.network import Link, Network
from lessons.survey import costs, idle, models
from tests.tiers import slow_except
from tests.training import Sentences, Spread, WideChain, pay, train
from tracing import COMPUTE, UPDATE
from workloads.layers import Dense

LAYERS, WIDTH, PERIOD = 8, 12, 4
FIRST, LAST, STEPS = 8, 20, 24
BATCH = {"hogwild": 12, "async_svrg": 32}  # samples, each an update of its own; all others have 48
IDEAL = Network(Link(0.0, 1e30), Link(0.0, 1e30))
DEVICE = Device(1e9, 1e30, 0.0)
SMALL = 0.02  # what updates, losses and auxiliary networks take
QUICK = ("sync_sgd", "backup", "easgd", "ssp", "gpipe", "zb_h1", "layer_wise", "pipedream", "ddg")
PARALLEL = [name for name in algorithms.names() if algorithms.family(name) != "sequential"]
DRAINED = [name for name in filter(idle.is_drained, algorithms.names()) if name not in ("three_d", "five_d")]


@dataclass(frozen=True)
class Even(Spread):
    """A dense layer whose three passes take equally long."""

    def backward_input(self, parts, saved, dy, needed=True):
        pay(self.toll)
        return Dense.backward_input(self, parts, saved, dy, needed)

    def backward_weights(self, gradients, pending):
        pay(self.toll)
        super().backward_weights(gradients, pending)

    def add_weights(self, gradients, pending):
        pay(self.toll)
        super().add_weights(gradients, pending)


class EvenChain(WideChain):
    """A chain of such layers."""

    layer = Even


class EvenSentences(Sentences):
    """Such a chain at each position of sequences."""

    layer = Even


def run(name, workers, layers=LAYERS, slow=False, **settings):
    batch = BATCH.get(name, 48)
    kind = EvenSentences if "workload" in algorithms.find(name).defaults else EvenChain
    chain = kind(np.linspace(0.9, 1, layers), np.linspace(0.6, 1.2, 8 * batch), np.float32, 1e7, WIDTH)
    method = algorithms.find(name)
    settings |= {"learning_rate": 1e-3} | ({"period": PERIOD} if "period" in method.Settings.model_fields else {})
    faults = Faults(slow={method.servers(method.Settings(**settings)): 2.0}) if slow else NONE
    where = {"network": IDEAL, "device": DEVICE, "faults": faults}
    return train(name, chain, workers, settings, batch=batch, steps=STEPS, **where)


def idle_share(training, but_first=False, whole_run=False):
    """Return the share of the workers' time in which they neither compute nor update, on average."""
    spans, ranks = training.outcome.trace().spans, len(training.outcome.event_logs)
    return np.mean([_idle_share(spans, rank, whole_run) for rank in range(training.servers + but_first, ranks)])


def _idle_share(spans, rank, whole_run):
    rows = spans["rank"] == rank
    work = rows & np.isin(spans["kind"], (COMPUTE, UPDATE))
    start, end, step = (spans[column][work] for column in ("start", "end", "step"))
    since, until = (start[step >= one].min() for one in (FIRST, LAST))
    if whole_run:
        since, until = 0.0, spans["end"].max()
    return 1 - (np.clip(end, since, until) - np.clip(start, since, until)).sum() / (until - since)


@cache
def values(name, workers):
    return costs.symbols(name, models.Stack(LAYERS, WIDTH).symbols(48), workers, {"H": PERIOD})


def formula(name, quantity):
    of = costs.every()[name]
    if not getattr(of, quantity):
        assert len(of.unproven[quantity]) > 20
        pytest.skip(of.unproven[quantity])
    return of


@pytest.mark.parametrize("name", slow_except(QUICK, PARALLEL))
def test_workers_idle_as_the_table_says(name):
    of = formula(name, "idle")
    sizes = (4,) if name in ("three_d", "five_d", "zb_h2", "dualpipe", "dualpipe_v") else (2, 4)
    for workers in sizes:
        measured = idle_share(run(name, workers))
        assert measured == pytest.approx(of.evaluate("idle", values(name, workers)), abs=SMALL), workers


@pytest.mark.parametrize("name", slow_except(QUICK, PARALLEL))
def test_others_wait_for_a_worker_twice_as_slow_as_the_table_says(name):
    of = formula(name, "late")
    measured = idle_share(run(name, 4, slow=True), but_first=True, whole_run=name == "one_shot")
    assert measured == pytest.approx(of.evaluate("late", values(name, 4)), abs=SMALL)


@pytest.mark.parametrize("name", slow_except(QUICK, DRAINED))
def test_a_pipeline_with_one_stage_twice_as_long_idles_as_the_list_simulator_says(name):
    stages, chunks = 4 * costs.stages_per_rank(name), int(values(name, 4)["M"])
    equal = costs.every()[name].evaluate("idle", values(name, 4))
    for place in (0, stages - 1):
        work = tuple(1 + (stage == place) for stage in range(stages))
        said = idle.of_stages(name, work, 4, chunks)
        assert said > equal
        measured = idle_share(run(name, 4, stages + 1, cuts=",".join(map(str, work))))
        assert measured == pytest.approx(said, abs=SMALL), place
