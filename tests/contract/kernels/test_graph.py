"""CUDA graphs, on a stand-in for a GPU (`tests/recorded_launches.py`) that records launches and replays the records."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import kernels
from kernels.arrays import to_numpy
from kernels.capturing import sum_on_host
from kernels.graph import MOST, CapturedGradient, ReplayedGradient
from kernels.meter import Prices
from tests.recorded_launches import DEFAULT, SIDE, gpu  # noqa: F401 - a fixture
from workloads import text
from workloads.layers import Dense
from workloads.sequential import Sequential


def mlp() -> tuple:
    """The gradient of a small MLP, its parameters and four batches, all tensors."""
    layers = Dense((3,), 2), Dense((2,), 3, "none")
    model = Sequential(layers, kernels.softmax_cross_entropy)
    batches = [(torch.randn(2, 3), torch.tensor([k % 3, 1])) for k in range(4)]
    return model.gradient, torch.tensor(model.start(0)), batches


def transformer() -> tuple:
    workload = text.build(text.Settings(context=2, width=2, heads=1))
    batches = [tuple(map(torch.tensor, workload.batch(np.arange(2 * k, 2 * k + 2)))) for k in range(4)]
    return workload.model.gradient, torch.tensor(workload.start(0)), batches


def cost(w, x) -> tuple:
    """A loss and its gradient, in two launches and a few of torch's operations."""
    g, losses = kernels.empty_like(w), x * w
    kernels.residual_add(g, w, losses, 0.5)
    kernels.sgd(g, w, 0.25)
    return sum_on_host(losses, len(x)), g


def bits(result: tuple) -> tuple:
    return np.float64(result[0]).tobytes(), result[1].numpy().tobytes()


def new(machine, call):
    """Return what `call` launches."""
    first = len(machine.launches)
    call()
    return machine.launches[first:]


@pytest.mark.parametrize("model", [mlp, transformer])
def test_every_step_launches_the_same_kernels_with_the_same_shapes_and_numbers(gpu, model):  # noqa: F811
    gradient, w, batches = model()
    gpu.runs = False
    steps = [[launch.seen for launch in new(gpu, lambda batch=batch: gradient(w, *batch))] for batch in batches]
    assert len(steps[0]) > 9 and steps[1] == steps[2] == steps[3] == steps[0]


@pytest.mark.parametrize("model", [mlp, transformer])
def test_a_graph_holds_the_launches_of_a_step_in_their_order_on_a_stream_of_its_own(gpu, model):  # noqa: F811
    gradient, w, batches = model()
    gpu.runs = False
    step = new(gpu, lambda: gradient(w, *batches[0]))
    before = len(gpu.launches)
    graph = CapturedGradient(gradient, (w, *batches[1]))
    captured = graph.replay.__self__.launches
    assert [launch.seen for launch in captured] == [launch.seen for launch in step]
    assert {launch.configuration[2] for launch in captured} == {SIDE} and gpu.stream == DEFAULT
    copies = gpu.launches[before : len(gpu.launches) - len(captured)]
    assert [launch.name for launch in copies] == ["aten.clone.default"] * 3, "only the inputs were copied"


def test_what_changes_between_replays_is_in_the_inputs_of_the_graph(gpu):  # noqa: F811
    gradient, w, batches = mlp()
    graph = CapturedGradient(gradient, (w, *batches[0]))
    own = [x.data_ptr() for x in graph.inputs]
    for batch in batches:
        *copies, result = new(gpu, lambda batch=batch: graph(w, *batch))
        assert [launch.addresses[0] for launch in copies] == own
        assert [launch.addresses[1] for launch in copies] == [x.data_ptr() for x in (w, *batch)]
        assert result.name == "aten.clone.default" and result.addresses[1] == graph.g.data_ptr()


@pytest.mark.parametrize("model", [mlp, pytest.param(transformer, marks=pytest.mark.slow)])
def test_a_replay_computes_the_bits_of_the_launches_that_it_repeats(gpu, model):  # noqa: F811
    gradient, w, batches = model()
    refusals = []
    replayed = ReplayedGradient(gradient, refusals.append)
    *_, first, second = [bits(replayed(w, *batch)) for batch in batches]
    assert replayed.replays == 2 and not refusals
    assert [first, second] == [bits(gradient(w, *batch)) for batch in batches[2:]] and first != second


def test_a_gradient_is_a_new_array_in_every_step(gpu):  # noqa: F811
    graph = CapturedGradient(cost, (torch.ones(3), torch.ones(3)))
    first, second = (graph(torch.ones(3), torch.full((3,), x))[1] for x in (2.0, 5.0))
    assert first.tolist() != second.tolist()


def test_the_driver_is_called_in_this_order(gpu):  # noqa: F811
    replayed = ReplayedGradient(cost, pytest.fail)
    capture = [f"to stream {SIDE}", f"begin capture of stream {SIDE}, thread_local"]
    capture += ["end capture", f"to stream {DEFAULT}"]
    for calls in (capture, *[[f"replay on stream {DEFAULT}"]] * 3):
        gpu.calls.clear()
        replayed(torch.ones(3), torch.ones(3))
        assert gpu.calls == calls


def test_a_capture_charges_nothing_and_a_replay_what_its_launches_would(gpu):  # noqa: F811
    args, replayed = (torch.ones(3), torch.ones(3)), ReplayedGradient(cost, pytest.fail)
    charged = []
    for _ in range(4):
        charged.append(Prices())
        with kernels.meter_kernels(charged[-1]):
            replayed(*args)
    assert replayed.replays == 2 and [name for name, *_ in charged[0].rows] == ["residual_add", "sgd"]
    assert all(meter.rows == charged[0].rows for meter in charged)


def refusal(function, calls: int = 3, size=lambda call: 3) -> list[str]:
    """Return why `function` is not replayed in some calls that work as they do without a graph."""
    reasons: list[str] = []
    replayed = ReplayedGradient(function, reasons.append)
    for call in range(calls):
        args = torch.ones(size(call)), torch.full((size(call),), call + 1.0)
        assert bits(replayed(*args)) == bits(function(*args))
    return reasons


def test_a_step_that_reads_a_number_to_choose_its_launches_is_launched_as_before(gpu):  # noqa: F811
    def by_sign(w, x):
        return cost(w, x if float(x.sum()) > 0 else -x)

    def by_values(w, x):
        return cost(w, x if to_numpy(x)[0] > 0 else -x)

    def by_host(w, x):
        return cost(w, x + kernels.beside(np.ones(3, np.float32), x))

    assert refusal(by_sign) == ["CUDA error: operation not permitted when stream is capturing"]
    assert refusal(by_values) == ["the host reads numbers from the GPU before all kernels have been launched"]
    assert refusal(by_host) == ["the host sends numbers to the GPU before all kernels have been launched"]


def test_an_error_of_the_driver_is_one_sentence_and_leaves_the_stream_as_it_was(gpu):  # noqa: F811
    gpu.fault = "CUDA error: out of memory\nCUDA kernel errors might be reported asynchronously.\n"
    assert refusal(cost) == ["CUDA error: out of memory"]
    assert gpu.stream == DEFAULT and gpu.calls[-1] == f"to stream {DEFAULT}"
    assert gpu.calls.count("end capture") == 1, "it is tried once"


def test_a_number_of_python_that_changes_between_steps_is_found_and_the_graph_dropped(gpu):  # noqa: F811
    rates = iter(np.linspace(0.1, 1, 99).tolist())

    def with_rate(w, x):
        _, g = cost(w, x)
        kernels.sgd(g, w, next(rates))
        return 0.0, g

    reasons = []
    replayed = ReplayedGradient(with_rate, reasons.append)
    for _ in range(4):
        replayed(torch.ones(3), torch.ones(3))
    assert reasons == ["a replay computed other bits than the launches that it repeats"] and not replayed.replays


def test_a_function_has_no_more_graphs_than_its_memory_allows(gpu):  # noqa: F811
    assert refusal(cost, MOST) == refusal(cost, 2 * MOST, lambda call: 2 + call % MOST) == []
    assert refusal(cost, MOST + 3, lambda call: call + 2) == [f"there are more than {MOST} batch sizes"]
