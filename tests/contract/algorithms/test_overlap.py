from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import kernels
import workloads
from cluster.devices import DEVICES
from cluster.network import NETWORKS, Link, Network
from tests.training import ScalarChain, Springs, train
from theory.overlap import (
    Cost,
    StepCosts,
    fill_buckets,
    forward_overlap,
    no_overlap,
    prefetching,
    steps,
    wait_free,
)
from tracing import COMPUTE

SLOW = Network(Link(1e-4, 1e7), Link(1e-4, 1e7))
RULES = ["sgd", "momentum", "nesterov", "adagrad", "rmsprop", "adam"]


def residual(dtype=np.float64, depth=4, width=8):
    digits = workloads.find("digits")
    return digits.build(digits.Settings(model="residual", depth=depth, width=width), dtype)


IN_TURN = {"network": SLOW, "collective": "stream"}  # a row for each sum


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
    buckets = fill_buckets(StepCosts([0] * 6, [0] * 6, sizes, Cost()), bucket)
    run = train("overlap", model, 2, {"bucket_bytes": bucket}, steps=3, batch=4, **IN_TURN)
    nbytes = [moved for _, moved in sums(run)]
    assert nbytes == [sum(sizes[layer] for layer in layers) for layers in buckets] * 3
    assert sum(nbytes) == 3 * 8 * model.parameters


def test_a_bucket_leaves_when_its_last_layer_is_done_and_not_later():
    run = train("overlap", residual(), 2, {"bucket_bytes": 0}, steps=1, batch=4, **IN_TURN)
    assert [at for at, _ in sums(run)] == [end for _, _, end in passes(run, "B")]
    whole = train("overlap", residual(), 2, {"bucket_bytes": 1 << 20}, steps=1, batch=4, **IN_TURN)
    assert [at for at, _ in sums(whole)] == [passes(whole, "B")[-1][2]]


def test_the_next_step_begins_when_all_sums_are_there():
    run = train("overlap", residual(), 2, {"bucket_bytes": 0}, steps=2, batch=4, **IN_TURN)
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


@pytest.mark.parametrize("name", ["overlap", "priority", "delayed"])
def test_what_travels_while_others_compute_is_not_predicted_slower_than_what_they_wait_for(name):
    where = {"steps": 4, "batch": 16, "network": NETWORKS["1GbE"]}
    alone, hidden = (
        train(n, residual(depth=6, width=96), 4, **where).outcome.trace().seconds() for n in ("sync_sgd", name)
    )
    assert hidden < alone


# the simulated cluster takes the time of the closed forms

LATENCY, ITEM, DEVICE = 3e-5, 8, DEVICES["laptop"]
EVEN = {"depth": 6, "width": 32}  # layers of 2080, 1056 and 330 numbers: all of them even


def seconds(kernel):
    """The price of a kernel on vectors, as a Cost per number."""
    flops, words = kernel.price(np.ones(1000), np.ones(1000))
    return Cost(DEVICE.overhead, max(flops / DEVICE.flops, words * ITEM / DEVICE.bandwidth) / 1000)


@cache
def profile(bandwidth, collective, loss_in_forward=False):
    """The layers' own times, from the spans of one worker alone; the network's, from its link and its kernels."""
    event_log = train("overlap", residual(**EVEN), steps=1, batch=16, network=NETWORKS["ideal"]).outcome.event_logs[0]
    took = {label: end - start for _, start, end, _, label in event_log.spans}
    work = residual(**EVEN)
    forward, backward = ([took[f"{letter}{layer}"] for layer in range(work.depth)] for letter in "FB")
    (forward if loss_in_forward else backward)[-1] += took["loss"]
    add, scale, beta = seconds(kernels.add), seconds(kernels.scale), ITEM / bandwidth
    if collective == "stream":  # two messages of half the vector; the second leaves when the first was added
        line = Cost(LATENCY + add.start + scale.start, beta + (add.each + scale.each) / 2)
        lag = Cost(LATENCY)
    else:  # one message each way; adding goes on while the next is on the wire
        line, lag = Cost(0.0, beta), Cost(LATENCY + add.start + scale.start, add.each + scale.each)
    sizes = [part.parameters for part in work.split(work.depth)]
    return StepCosts(forward, backward, sizes, line, lag, seconds(kernels.sgd))


RUNS = {
    "sync_sgd": ({}, no_overlap),
    "overlap": ({"bucket_bytes": 0}, wait_free),
    "overlap in buckets": ({"bucket_bytes": 2000 * ITEM}, lambda p: wait_free(p, fill_buckets(p, 2000))),
    "overlap in one": ({"bucket_bytes": 1 << 30}, no_overlap),
    "priority, fifo": ({"order": "fifo", "slice": 300}, lambda p: forward_overlap(p, urgent=False, most=300)),
    "priority": ({"slice": 300}, lambda p: forward_overlap(p, most=300)),
    "priority, whole": ({"slice": 1 << 20}, forward_overlap),
    "delayed 0": ({"delay": 0}, lambda p: forward_overlap(p, urgent=False)),
    "delayed 1": ({"delay": 1}, lambda p: steady(p, 1)),
    "delayed 2": ({"delay": 2}, lambda p: steady(p, 2)),
}
STEPS = 12


def steady(p, delay):
    begins = steps(p, STEPS, delay=delay)
    return (begins[-1] - begins[-5]) / 4


@pytest.mark.parametrize("collective", ["stream", "recursive_doubling"])
@pytest.mark.parametrize("bandwidth", [2e7, 2e8, 2e9])
@pytest.mark.parametrize("name", RUNS)
def test_two_simulated_workers_take_the_time_of_the_profile(name, bandwidth, collective):
    settings, predicted = RUNS[name]
    link = Network(Link(LATENCY, bandwidth), Link(LATENCY, bandwidth))
    where = {"network": link, "collective": collective}
    event_log = train(
        name.split(" ")[0].strip(","), residual(**EVEN), 2, settings, steps=STEPS, batch=16, **where
    ).outcome.event_logs[0]
    at = [row[2] for row in event_log.losses]
    assert (at[-1] - at[-5]) / 4 == pytest.approx(predicted(profile(bandwidth, collective)), rel=1e-9)


@pytest.mark.parametrize("bandwidth", [2e7, 2e8, 2e9])
@pytest.mark.parametrize("ahead", [0, 1, 2, 9])
def test_two_workers_that_prefetch_shards_take_the_time_of_the_profile(ahead, bandwidth):
    settings = {"update": "sgd", "prefetch": ahead}
    network = Network(Link(LATENCY, bandwidth), Link(LATENCY, bandwidth))
    event_log = train("hsdp", residual(**EVEN), 2, settings, steps=3, batch=16, network=network).outcome.event_logs[0]
    at = [row[2] for row in event_log.losses]
    add, scale, update = (seconds(kernel) for kernel in (kernels.add, kernels.scale, kernels.sgd))
    add_up = Cost(add.start + scale.start, (add.each + scale.each) / 2)  # of half a layer, as all that follows
    line, update = Cost(0.0, ITEM / bandwidth / 2), Cost(update.start, update.each / 2)
    layers = profile(bandwidth, "stream", loss_in_forward=True)  # gathers for backward begin after the loss
    p = replace(layers, line=line, lag=Cost(LATENCY), update=update)
    assert at[2] - at[1] == pytest.approx(prefetching(p, ahead, add_up), rel=1e-9)
