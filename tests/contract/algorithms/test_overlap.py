import numpy as np
import pytest

import workloads
from cluster.network import Link, Network
from tests.training import ScalarChain, Springs, train
from theory.overlap import Cost, StepCosts, bucketed
from tracing import COMPUTE

SLOW = Network(Link(1e-4, 1e7), Link(1e-4, 1e7))
RULES = ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"]


def residual(dtype=np.float64):
    digits = workloads.find("digits")
    return digits.build(digits.Settings(model="residual", depth=4, width=8), dtype)


def sums(run):
    """(when handed over, bytes) of every sum that rank 0 took part in."""
    return [(row[3], row[2]) for row in run.outcome.event_logs[0].messages]


def passes(run, letter):
    """(layer, start, end) of the first worker's passes forward (F) or backward (B)."""
    spans = run.outcome.event_logs[0].spans
    return [(int(label[1:]), s, e) for kind, s, e, _, label in spans if kind == COMPUTE and label[0] == letter]


@pytest.mark.parametrize("bucket", [0, 600, 720, 1000, 1500, 1 << 20])  # the last layer has 720 bytes
def test_layers_are_gathered_from_the_last_until_a_bucket_is_full(bucket):
    model = residual()
    sizes = [8 * part.parameters for part in model.split(model.depth)]
    buckets = bucketed(StepCosts([0] * 6, [0] * 6, sizes, Cost()), bucket)
    run = train("overlap", model, 2, {"bucket_bytes": bucket}, steps=3, batch=4)
    nbytes = [moved for _, moved in sums(run)]
    assert nbytes == [sum(sizes[layer] for layer in layers) for layers in buckets] * 3
    assert sum(nbytes) == 3 * 8 * model.parameters


def test_a_bucket_leaves_when_its_last_layer_is_done_and_not_later():
    run = train("overlap", residual(), 2, {"bucket_bytes": 0}, steps=1, batch=4, network=SLOW)
    assert [at for at, _ in sums(run)] == [end for _, _, end in passes(run, "B")]
    whole = train("overlap", residual(), 2, {"bucket_bytes": 1 << 20}, steps=1, batch=4, network=SLOW)
    assert [at for at, _ in sums(whole)] == [passes(whole, "B")[-1][2]]


def test_the_next_step_begins_when_all_sums_are_there():
    run = train("overlap", residual(), 2, {"bucket_bytes": 0}, steps=2, batch=4, network=SLOW)
    arrived = max(row[4] for row in run.outcome.event_logs[1].messages[:6])
    assert passes(run, "F")[6][1] > arrived


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["overlap", "priority", "delayed"])
def test_every_update_rule_gives_the_weights_of_synchronous_sgd(name, rule):
    s = {"learning_rate": 0.02, "update": rule}
    own = {"overlap": {"bucket_bytes": 8}, "priority": {"slice": 100}, "delayed": {"delay": 0}}[name]
    one, other = (train(n, residual(), 2, s | more, batch=4) for n, more in (("sync_sgd", {}), (name, own)))
    assert all(np.array_equal(a, b) for a, b in zip(one.models, other.models, strict=True))


@pytest.mark.parametrize("name", ["overlap", "priority", "delayed"])
def test_what_is_reported_is_the_model_after_each_update(name):
    settings = {"learning_rate": 0.1} | ({"delay": 0} if name == "delayed" else {})
    one, other = (train(n, ScalarChain(), 2, s) for n, s in (("sync_sgd", {"learning_rate": 0.1}), (name, settings)))
    reported = [[row[4].tolist() for row in run.outcome.event_logs[0].reports] for run in (one, other)]
    assert reported[0] == reported[1] and len(reported[0]) == 10


@pytest.mark.parametrize("name", ["overlap", "priority", "delayed"])
def test_a_model_that_cannot_be_cut_is_one_layer(name):
    settings = {"learning_rate": 0.1} | ({"delay": 0} if name == "delayed" else {})
    one, other = (
        train(n, Springs([1.0, -2.0, 4.0], parameters=7), 3, s)
        for n, s in (("sync_sgd", {"learning_rate": 0.1}), (name, settings))
    )
    assert np.array_equal(one.models[0], other.models[0])


@pytest.mark.parametrize("collective", ["fast", "ring", "recursive_doubling", "tree"])
@pytest.mark.parametrize("name", ["overlap", "priority", "delayed"])
def test_replicas_stay_identical_bit_for_bit(name, collective):
    run = train(name, residual(np.float32), 3, {}, batch=4, steps=4, collective=collective)
    assert all(np.array_equal(run.models[0], w) for w in run.models)
