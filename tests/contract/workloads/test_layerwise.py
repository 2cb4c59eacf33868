import weakref

import numpy as np
import pytest

import workloads
from cluster import simulated
from tests.training import ScalarChain, Springs
from tracing import HELD
from workloads.budget import Budget
from workloads.task import Task


def small(name, **settings):
    module = workloads.find(name)
    return module.build(module.Settings(**settings), np.float64)


def torch_net():
    torch = pytest.importorskip("torch")
    from workloads.torch_module import TorchModule

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2), torch.nn.ReLU())
    x, y = np.random.default_rng(0).standard_normal((12, 3)), np.arange(12) % 2
    return TorchModule(net, torch.nn.functional.cross_entropy, (x, y), (x, y), dtype=np.float64)


MODELS = {
    "mlp": lambda: small("digits", hidden="8,6"),
    "residual": lambda: small("digits", model="residual", depth=3, width=8),
    "cnn": lambda: small("digits", model="cnn", channels=2),
    "cnn_bn": lambda: small("digits", model="cnn_bn", channels=2),
    "transformer": lambda: small("text", context=4, width=8, heads=2),
    "bowl": lambda: small("quadratic", noise=1.0),
    "scalars": ScalarChain,
    "springs": lambda: Springs([1.0, -1.0], parameters=3),
    "torch": torch_net,
}
every_model = pytest.mark.parametrize("workload", MODELS.values(), ids=MODELS.keys())


def passes(workload, program):
    """What `program(task, w, batch)` gives on the only rank."""

    def rank(comm):
        task = Task(workload, comm, budget=Budget(steps=1), batch=2)
        return program(task, task.start(), task.next_batch())

    outcome = simulated.run(rank, 1)
    if outcome.error:
        raise outcome.error
    return outcome.results[0], outcome.event_logs[0]


@every_model
def test_the_layers_gradients_together_are_the_gradient_bit_for_bit(workload):
    workload = workload()

    def program(task, w, batch):
        _, whole = task.gradient(w, batch)
        layers, g = task.layerwise(batch), np.full_like(w, np.nan)
        ahead, back = [], []
        for layer in layers:
            layer.forward(w[layer.place])
            ahead.append(layer.place)
        for layer in reversed(layers):
            g[layer.place] = layer.backward(w[layer.place])
            back.append(layer.place)
        return whole, g, ahead, back

    (whole, g, ahead, back), event_log = passes(workload, program)
    assert np.array_equal(whole, g) and np.any(g)
    assert ahead == back[::-1]
    assert len(ahead) == workload.depth
    assert len(event_log.losses) == 2 and event_log.losses[0][3] == event_log.losses[1][3]


def test_a_layer_reads_its_parameters_when_it_comes_to_them():
    def program(task, w, batch):
        other, late = w + 1.0, w.copy()
        layers = task.layerwise(batch)
        for layer in layers:
            late[layer.place] = other[layer.place]
            layer.forward(late[layer.place])
        g = np.concatenate([layer.backward(late[layer.place]) for layer in reversed(layers)][::-1])
        return g, task.gradient(other, batch)[1], task.gradient(w, batch)[1]

    (g, there, before), _ = passes(ScalarChain(), program)
    assert np.array_equal(g, there) and not np.array_equal(g, before)


@pytest.mark.parametrize("name", ["mlp", "residual", "cnn", "cnn_bn"])
def test_a_dense_layers_gradient_is_made_of_its_inputs_and_errors(name):
    workload = MODELS[name]()

    def program(task, w, batch):
        layers = task.layerwise(batch)
        layers.forward(w)
        return [layer.backward_factors(w[layer.place]) for layer in reversed(layers)]

    layers, _ = passes(workload, program)
    dense = [(g, factors) for g, factors in layers if factors is not None]
    assert len(dense) == {"mlp": 3, "residual": 5, "cnn": 2, "cnn_bn": 2}[name]
    for g, (inputs, errors) in dense:
        rebuilt = np.concatenate([(inputs.T @ errors).ravel(), errors.sum(0)])
        assert np.allclose(g, rebuilt, rtol=1e-12, atol=1e-15)


def test_activations_grow_on_the_way_forward_and_are_let_go_on_the_way_back():
    def program(task, w, batch):
        def held():
            return task.event_log.held[HELD.index("activations")] // (2 * 8)  # numbers per sample

        layers, forward, backward = task.layerwise(batch), [], []
        for layer in layers:
            forward.append(held())
            layer.forward(w[layer.place])
        forward.append(held())
        for layer in reversed(layers):
            layer.backward(w[layer.place])
            backward.append(held())
        task.gradient(w, batch)
        return forward, backward, held()

    forward, backward, whole = passes(MODELS["mlp"](), program)[0]
    assert forward == [0, 64 + 8, 64 + 8 + 6, 64 + 8 + 6 + 10]
    assert backward == [64 + 8 + 6, 64 + 8, 0]
    assert whole == forward[-1]


@every_model
def test_layers_that_are_handed_their_weights_one_at_a_time_find_the_same_gradient(workload):
    workload = workload()

    def program(task, w, batch):
        _, whole = task.gradient(w, batch)
        layers, g = task.layerwise(batch), np.full_like(w, np.nan)
        for layer in layers:
            layer.forward(w[layer.place].copy())
        for layer in reversed(layers):
            g[layer.place] = layer.backward(w[layer.place].copy())
        return whole, g, [layer.place for layer in layers.layers] == list(task.layers)

    (whole, g, in_order), event_log = passes(workload, program)
    assert np.array_equal(whole, g) and in_order
    assert len(event_log.losses) == 2 and event_log.losses[0][3] == event_log.losses[1][3]


def test_nothing_between_two_layers_is_one_call():
    def program(task, w, batch):
        layers = task.layerwise(batch)
        layers.forward(w)
        g = [layer.backward(w[layer.place]) for layer in reversed(layers)]
        return np.concatenate(g[::-1]), task.gradient(w, batch)[1]

    g, whole = passes(MODELS["mlp"](), program)[0]
    assert np.array_equal(g, whole)


@pytest.mark.parametrize("name", ["mlp", "residual", "cnn", "transformer"])
def test_the_weights_of_a_layer_are_freed_after_its_pass(name):
    def program(task, w, batch):
        layers, gathered = task.layerwise(batch), []

        def gather(layer):
            own = w[layer.place].copy()
            gathered.append(weakref.ref(own))
            return own

        def freed():  # at once, and not only when the garbage collector comes by
            return gathered.pop()() is None

        forward = [layer.forward(gather(layer)) or freed() for layer in layers]
        backward = [layer.backward(gather(layer)) is not None and freed() for layer in reversed(layers)]
        return all(forward), all(backward), len(forward) == len(backward) > 1

    assert passes(MODELS[name](), program)[0] == (True, True, True)


def test_a_layer_that_is_left_out_is_told_with_what_to_call():
    def program(task, w, batch):
        with pytest.raises(ValueError, match=r"skipped layer 0; call layer.forward\(w\)"):
            list(task.layerwise(batch))
        layers = task.layerwise(batch)
        layers.forward(w)
        with pytest.raises(ValueError, match=r"skipped layer 2; call layer.backward\(w\)"):
            list(reversed(layers))

    passes(MODELS["mlp"](), program)


@every_model
def test_tensors_lie_side_by_side_and_fill_the_model(workload):
    workload = workload()
    edge = 0
    for place, shape in workload.tensors:
        assert place.start == edge and place.stop - place.start == np.prod(shape)
        edge = place.stop
    assert edge == workload.parameters
