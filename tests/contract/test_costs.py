"""What the survey's table says that a method costs is what runs of it cost, on two sizes of cluster.

A step's share is the difference of two runs, of which one is longer: what happens once, at the start or at the end, is
left out. The model is a stack of equal dense layers, so that a stage of it is a part as large as any other.
"""

from functools import cache

import numpy as np
import pytest

import algorithms
import kernels
from lessons.survey import costs, models
from tests.training import Sentences, WideChain, train
from tracing import HELD
from workloads.layers import Dense
from workloads.sequential import Sequential
from workloads.supervised import Supervised

LAYERS, WIDTH = 32, 12
BATCHES = 4  # in a pass of all
SHORT, LONG, PERIOD = 2, 4, 2  # steps, whole periods and passes both
SETTLED = 48  # steps, of which the second half shows the staleness of those that go on
TIMES = {"async_svrg": 3, "streaming_diloco": 2} | dict.fromkeys(
    ("petrowski", "chen", "pipedream", "pipemare", "ddg"), 2
)
"""As many steps as others: anchors are three passes apart, fragments take turns, and pipelines fill slowly."""
OWN = {"one_bit_adam": {"freeze_step": 1}}  # settings: its costs are those after the freeze
BATCH = {"hogwild": 12, "async_svrg": 32}  # samples, each an update of its own; all others have 48
SPLIT = ("distbelief", "hybrid", "tensor", "three_d", "five_d")  # whose formulas are of layers inside the model
AUXILIARY = ("dni", "greedy")  # whose own networks have symbols that only a run can tell
WORK = 0.12  # of the FLOPs: the first layer passes no gradient on; biases and updates are not in the formulas
LAYER = 0.05  # of what is split by layers: the first and the last one send less
BIASES = 1.5 / WIDTH  # of the parameters: half of the biases are whole on every rank that shares a layer
BORDERS = 0.25  # of the activations: a stage keeps its outputs, too
every_method = pytest.mark.parametrize("name", algorithms.names())


def sizes(name):
    return {"three_d": (4, 8), "five_d": (4, 8)}.get(name, (1,) if algorithms.family(name) == "sequential" else (2, 4))


def period(name):
    return PERIOD * TIMES.get(name, 1)


def values(name, workers):
    """The symbols of the runs below."""
    model = models.Stack(LAYERS, WIDTH).symbols(BATCH.get(name, 48)) | {"y": WIDTH, "u": 0}  # a target is a vector
    shards = workers if not algorithms.find(name).shares_samples else 1
    return costs.symbols(name, model, workers, {"H": period(name)}) | {"E": BATCHES // shards}


@cache
def run(name, workers, steps, batches=BATCHES):
    samples = np.linspace(0.6, 1.2, batches * BATCH.get(name, 48))
    batch = BATCH.get(name, 48)
    kind = WideChain
    if "workload" in algorithms.find(name).defaults:  # it takes sequences, whose positions count as samples here
        kind, samples, batch = Sentences, samples[:: Sentences.time], batch // Sentences.time
    workload = kind(np.linspace(0.9, 1, LAYERS), samples, np.float32, 0, WIDTH)
    fields = algorithms.find(name).Settings.model_fields
    settings = {"learning_rate": 1e-3} | ({"period": period(name)} if "period" in fields else {}) | OWN.get(name, {})
    steps = steps // SHORT if name == "sandblaster" else steps * TIMES.get(name, 1)
    return train(name, workload, workers, settings, batch=batch, steps=steps)


def per_step(name, workers, total):
    """The share of a step in what is counted by `total(training)`."""
    more = total(run(name, workers, LONG)) - total(run(name, workers, SHORT))
    return more / (TIMES.get(name, 1) * (LONG - SHORT))


def held(name, workers):
    """Numbers by kind, (ranks, HELD), each kind at its own highest."""
    logs = run(name, workers, LONG).outcome.event_logs
    highest = np.zeros((len(logs), len(HELD)))
    for rank, log in enumerate(logs):
        for _, _, kind, nbytes in log.memory:
            highest[rank, kind] = max(highest[rank, kind], nbytes / 4)
    return highest


def formulas(name, quantity):
    """The costs of a method, or a skip where it has no formula of this quantity but the reason why."""
    of = costs.every()[name]
    if not getattr(of, quantity):
        if quantity != "server":
            assert len(of.unproven[quantity]) > 20
        pytest.skip(of.unproven.get(quantity, "no server"))
    return of


@every_method
def test_communication_is_that_of_runs(name):
    of = formulas(name, "communication")
    for workers in sizes(name):
        sent = per_step(name, workers, lambda training: training.outcome.trace().traffic().sum() / 4)
        said = of.evaluate("communication", values(name, workers))
        if "communication" in of.at_most:
            assert 0 < sent <= said
        else:
            assert sent == pytest.approx(said, rel=LAYER if name in SPLIT else 1e-9)


@every_method
def test_computation_is_that_of_runs(name):
    of = formulas(name, "computation")
    own = 0.0  # FLOPs of an auxiliary network, as the smaller cluster tells them
    for number, workers in enumerate(sizes(name)):
        flops = per_step(name, workers, lambda training: sum(log.flops for log in training.outcome.event_logs))
        symbols = values(name, workers) | {"Q": own}
        said = of.evaluate("computation", symbols)
        if name in AUXILIARY and not number:
            own = (flops - said) / (workers - 1)
            assert own > 0
        else:
            assert flops == pytest.approx(said, rel=WORK)


@every_method
def test_memory_is_that_of_runs(name):
    of = formulas(name, "memory")
    own = 0.0  # numbers of an auxiliary network
    for number, workers in enumerate(sizes(name)):
        ranks = held(name, workers)[run(name, workers, LONG).servers :]
        activations = ranks[:, HELD.index("activations")]
        symbols = values(name, workers) | {"q": own}
        states = of.evaluate("memory", symbols | {"A": 0, "t": 0})  # t is of activations, too
        kept = of.evaluate("memory", symbols) - states
        if name in AUXILIARY:
            total = ranks.sum(axis=1).max()
            if not number:
                own = total - states - kept
                assert own > 0
            else:
                assert total == pytest.approx(states + kept, rel=0.1)
            continue
        close = BIASES if name == "tensor" else LAYER if name in (*SPLIT, "feedback_alignment") else 1e-9
        assert (ranks.sum(axis=1) - activations).max() == pytest.approx(states, rel=close)
        if "memory" in of.at_most:
            assert 0 < activations.max() <= kept * (1 + LAYER)
        else:
            assert kept * (1 - LAYER) <= activations.max() <= kept * (1 + BORDERS)


@every_method
def test_memory_of_a_server_is_that_of_runs(name):
    of = formulas(name, "server")
    for workers in sizes(name):
        servers = run(name, workers, LONG).servers
        assert servers
        most = held(name, workers)[:servers].sum(axis=1).max()
        assert most == pytest.approx(of.evaluate("server", values(name, workers)), rel=1e-9)


@pytest.mark.slow
@every_method
def test_staleness_is_that_of_runs(name):
    of = formulas(name, "staleness")
    for workers in sizes(name):
        steps = LONG if of.staleness == "0" else SETTLED // TIMES.get(name, 1)
        counted = run(name, workers, steps, 2 * BATCHES).staleness
        for rank, updates in enumerate(counted):
            if updates:
                said = of.evaluate("staleness", values(name, workers) | {"s": rank})
                assert np.mean(updates[len(updates) // 2 :]) == pytest.approx(said, rel=0.01)
        if of.staleness != "0":
            assert any(counted)


@pytest.mark.parametrize("name", ["tensor", "distbelief"])
def test_blocks_with_a_wide_middle_send_what_the_table_says(name):
    model, ranks, samples = models.blocks(2, 8), 4, np.ones((8, 8), np.float32)
    layers = [Dense((layer.parameters // layer.outputs - 1,), layer.outputs, "none") for layer in model.shapes]
    chain = Supervised("blocks", Sequential(layers, kernels.squared_error, np.float32), (samples,) * 2, (samples,) * 2)
    settings, symbols = {"learning_rate": 1e-3}, costs.symbols(name, model.symbols(8), ranks)
    sent = [train(name, chain, ranks, settings, batch=8, steps=n).outcome.trace().traffic().sum() / 4 for n in (1, 2)]
    assert sent[1] - sent[0] == pytest.approx(costs.every()[name].evaluate("communication", symbols), rel=0.15)


def test_a_bound_is_one_and_is_of_use():
    for name, of in costs.every().items():
        for quantity in of.at_most:
            assert getattr(of, quantity), (name, quantity)


def test_the_table_has_every_method_of_the_catalogue_and_no_other():
    assert set(costs.every()) == set(algorithms.names())
    for of in costs.every().values():
        assert of.approximation
        for quantity in ("computation", "communication", "memory", "staleness"):
            assert bool(getattr(of, quantity)) != bool(of.unproven.get(quantity))
