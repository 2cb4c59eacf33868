"""What a run says that it has done, samples, updates, bytes and FLOPs, is what was done, for every algorithm.

The books, which summaries read, are held against meters that know nothing of them: one in every kernel, one in every
send, and the versions of the model that were reported.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest

import algorithms
import kernels
import workloads
from cluster.comm import nbytes
from cluster.simulated import simulation
from cluster.simulated.comm import SimulatedComm
from tests.training import train
from workloads import decoupled
from workloads.dense_pass import DensePass

BATCH, STEPS = 96, 7  # of one sixth of an epoch: AsySVRG passes its anchor
AUXILIARY = ("dni", "greedy")  # train networks beside the model
SETTINGS = {
    "async_svrg": {"passes": 1},
    "batch_growth": {"milestones": "0.3"},
    "pipedream": {"replicas": "2,1,1"},
    "polyak": {"after": 2},
    "sandblaster": {"shards": 2, "portion": 100},
}
"""Where defaults do too little in so few steps."""
every_algorithm = pytest.mark.parametrize("name", algorithms.names())


@cache
def digits(deep=False):
    module = workloads.find("digits")
    model = {"model": "residual", "depth": 6, "width": 16, "activation": "tanh"} if deep else {"hidden": "16,16,16,16"}
    return module.build(module.Settings(**model), np.dtype("float32"))


@cache
def text(experts):
    module = workloads.find("text")
    room = {"experts": experts, "capacity": max(1, experts)}  # for all tokens, so that all samples cost the same
    return module.build(module.Settings(context=8, width=8, heads=4, depth=2, **room), np.dtype("float32"))


def workload_of(name):
    if "workload" in algorithms.find(name).defaults:
        return text(algorithms.find(name).model_defaults.get("experts", 0))
    return digits(deep=bool(algorithms.find(name).model_defaults) and algorithms.family(name) != "model_parallel")


def course(name, settings=None, **where):
    """The training of this algorithm on digits, which leaves nothing unread."""
    workers = 4 if algorithms.find(name).shares_samples else algorithms.find(name).example_workers
    settings = SETTINGS.get(name, {}) | (settings or {})
    return train(name, workload_of(name), workers, settings, batch=BATCH, steps=STEPS, **where).outcome


@cache
def plain(name):
    """The training of this algorithm as it is; several tests look at it."""
    return course(name)


@pytest.fixture(scope="module", autouse=True)
def shapes_are_found_once():
    """Finding out the shapes of outputs is no training, so that it is done before anything is metered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoupled, "outputs", cache(decoupled.outputs))
        yield


class KernelMeter:
    """FLOPs of all kernels that were called, metered by the cluster or not, by kernel and rank.

    A sum that a product has formed on its way, `dense_backward_weights` with `add`, counts as the `add` that it is.
    """

    def __init__(self, monkeypatch):
        self.flops, called = Counter(), kernels.Kernel.__call__

        def call(kernel, *args):
            rank = getattr(kernels.METER.get(), "number", None)
            self.flops[kernel.name, rank] += kernel.price(*args)[0]
            if kernel.name == "dense_backward_weights" and args[-1] is True:
                self.flops["add", rank] += sum(kernels.add.price(total, total)[0] for total in args[:2])
            return called(kernel, *args)

        monkeypatch.setattr(kernels.Kernel, "__call__", call)
        monkeypatch.setattr(
            DensePass, "__call__", lambda found, *args: found.by_layer(*args)
        )  # compiled, it calls none

    def of(self, kernel=None, rank=None):
        return sum(f for (k, r), f in self.flops.items() if kernel in (None, k) and rank in (None, r))


def meter_of_one_sample(workload, kernel, monkeypatch):
    """FLOPs of this kernel in the gradient of one sample."""
    with monkeypatch.context() as patch:
        meter = KernelMeter(patch)
        workload.gradient(workload.start(0), workload.batch(np.arange(BATCH)))
    return meter.of(kernel) / BATCH


@every_algorithm
def test_flops_and_samples_on_the_books_are_those_of_the_kernels(name, monkeypatch):
    plain(name)  # finds out the shapes of outputs
    workload, kernel = workload_of(name), "dense_backward_weights"  # not repeated where a forward is
    if algorithms.family(name) == "model_parallel":
        kernel = "dense_backward_input"  # without biases, which several ranks may have
    if name in AUXILIARY:
        kernel = "softmax_cross_entropy"
    one = meter_of_one_sample(workload, kernel, monkeypatch)
    meter = KernelMeter(monkeypatch)
    logs = course(name).event_logs
    last = len(logs) - 1 if name in AUXILIARY else None  # whose loss is the model's
    assert sum(log.flops for log in logs) == meter.of() > 0
    assert sum(log.losses[-1][1] for log in logs if log.losses) == meter.of(kernel, last) / one > 0


@every_algorithm
def test_bytes_on_the_books_are_those_that_were_sent(name, monkeypatch):
    fast = plain(name).trace().traffic().sum()
    sent = []
    monkeypatch.setattr(simulation, "can_compile", lambda *_: False)  # compiled collectives call no send
    for method in ("send", "_send_by_priority"):
        called = getattr(SimulatedComm, method)
        place = 0 if method == "send" else 1

        def send(comm, *args, called=called, place=place, **options):
            sent.append(nbytes(args[place]))
            return called(comm, *args, **options)

        monkeypatch.setattr(SimulatedComm, method, send)
    ring = course(name, collective="ring").trace().traffic().sum()
    assert ring == sum(sent)
    if algorithms.find(name).deterministic is True:
        assert ring == fast


@every_algorithm
def test_updates_on_the_books_are_the_versions_of_the_model(name):
    outcome = plain(name)
    if algorithms.family(name) == "shared_memory":
        applied = sum(len(log.applied) for log in outcome.event_logs)
        assert outcome.updates() == applied > 0
        return
    start, most = workload_of(name).start(0), 0
    for log in outcome.event_logs:
        before = {}
        changes = Counter()
        for _, _, first, end, w in log.reports:
            where = log.places.get((first, end), slice(first, end))
            changes[first, end] += not np.array_equal(w, before.get((first, end), start[where]))
            before[first, end] = w
        most = max([most, *changes.values()])
    still = algorithms.find(name).example_workers if name == "easgd" else 0  # first visits come from the centre itself
    assert outcome.updates() == most + still > still
