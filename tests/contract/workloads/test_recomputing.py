"""Recomputed activations: the same gradients in less memory and more time.

Full: the memory of about two square roots of the depth, one more forward. Selective: all but attention weights.
"""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

import kernels
from experiments.execution.run import check, run
from experiments.specification.experiment import Experiment
from kernels.meter import Prices
from tests.contract.workloads.test_mixed_precision import MODELS, workload
from tests.quotes import quote
from tracing import HELD
from workloads.layers import Dense
from workloads.sequential import Sequential

ATTENTION = {
    **MODELS["transformer"],
    "depth": 8,
    "batch": 8,
    "learning_rate": 0.1,
    "recompute_activations": "selective",
}

each_model = pytest.mark.parametrize("name", MODELS)


def experiment(**values) -> Experiment:
    return Experiment.of({"algorithm": "sync_sgd", "steps": 3, "evaluations": 1, **values})


@each_model
@pytest.mark.parametrize("precision", ["float32", "bf16"])
def test_the_gradient_is_the_same_to_the_bit(name, precision):
    whole = workload(name, precision)
    w, batch = whole.start(1), whole.batch(np.arange(8))
    (loss, g), (again, h) = whole.gradient(w, batch), whole.with_recomputation().gradient(w, batch)
    assert loss == again and g.tobytes() == h.tobytes()


@pytest.mark.parametrize("name", ["transformer", "experts"])
@pytest.mark.parametrize("precision", ["float64", "float32", "bf16", "fp16"])
def test_attention_weights_computed_again_give_the_same_gradient_to_the_bit(name, precision):
    whole = workload(name, precision)
    w, batch = whole.start(1), whole.batch(np.arange(8))
    (loss, g), (again, h) = whole.gradient(w, batch), whole.with_recomputation("selective").gradient(w, batch)
    assert loss == again and g.tobytes() == h.tobytes()


@pytest.mark.parametrize(("precision", "itemsize"), [("float32", 4), ("bf16", 2)])
def test_selective_recomputation_holds_the_attention_weights_of_one_layer_at_a_time(precision, itemsize):
    n, context, heads = 8, 16, 2
    kept = workload("transformer", precision, depth=6)
    again = kept.with_recomputation("selective")
    for one in kept, again:
        one.gradient(one.start(1), one.batch(np.arange(n)))
    assert kept.activations[n] - again.activations[n] == (3 - 1) * n * heads * context**2 * itemsize


def test_selective_recomputation_with_one_attention_layer_is_said_to_save_nothing():
    one, two = (workload("transformer", "float32", depth=depth) for depth in (2, 4))
    assert (
        one.with_recomputation("selective")
        .notes[-1]
        .endswith("it takes longer and saves no memory. Use a larger depth.")
    )
    assert one.with_recomputation("full").notes == two.with_recomputation("selective").notes == ()


def test_selective_recomputation_computes_attention_once_more_and_nothing_else():
    whole = workload("transformer", "float32", depth=6)
    w, batch = whole.start(1), whole.batch(np.arange(8))

    def prices(one) -> Counter:
        meter = Prices()
        with kernels.meter_kernels(meter):
            one.gradient(w, batch)
        return Counter(meter.rows)

    more = prices(whole.with_recomputation("selective")) - prices(whole)
    n, time, width, heads = 8, 16, 16, 2
    flops = 4 * n * time**2 * width + 8 * n * heads * time**2
    assert [(name, cost, count) for (name, cost, _), count in more.items()] == [("attention_forward", flops, 3)]


@pytest.mark.parametrize("depth", [1, 2, 9, 16, 20])
def test_it_keeps_an_input_of_each_segment_and_the_activations_of_the_last_one(depth):
    width, n = 8, 5
    model = Sequential([Dense((width,), width, "tanh")] * depth, kernels.squared_error)
    other = model.with_recomputation()
    x, w = np.zeros((n, width), np.float32), model.start(0)
    model._by_layer(w, x, x), other.gradient(w, x, x)
    unit = 4 * n * width
    segments = math.ceil(math.sqrt(depth))
    last = depth // segments  # layers; the larger segments are the first ones
    first = math.ceil(depth / segments)
    assert model.activations[n] == (depth + 1) * unit
    assert other.activations[n] == max(segments + last, 1 + first) * unit


def test_it_computes_the_forward_pass_of_all_segments_but_the_last_once_more():
    model = Sequential([Dense((8,), 8, "relu")] * 16, kernels.squared_error)
    x, w = np.zeros((5, 8), np.float32), model.start(0)

    def flops(pass_through) -> float:
        prices = Prices()
        with kernels.meter_kernels(prices):
            pass_through(w, x, x)
        return sum(flops for _, flops, _ in prices.rows)

    forward = flops(lambda w, x, _: model.forward(w, x))
    assert flops(model.with_recomputation().gradient) - flops(model._by_layer) == forward * 12 / 16


def test_a_run_trains_the_same_model_in_less_memory_and_more_time():
    deep = {"model": "residual", "depth": 14, "precision": "bf16"}
    plain, recomputed = (run(experiment(recompute_activations=how, **deep)) for how in ("none", "full"))
    assert plain.status == recomputed.status == "finished"
    assert plain.parameters.tobytes() == recomputed.parameters.tobytes()
    assert recomputed.summary["memory"] < plain.summary["memory"]
    assert recomputed.trace.seconds() > plain.trace.seconds() and recomputed.flops[0] < 4 / 3 * plain.flops[0]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"algorithm": "zero3"}, "only gradients of the whole model … sync_sgd"),
        ({"algorithm": "gpipe"}, "only gradients of the whole model … recompute"),
        ({"algorithm": "tensor"}, "only gradients of the whole model"),
        ({"algorithm": "dni"}, "only gradients of the whole model"),
        ({**ATTENTION, "algorithm": "tensor", "heads": 4}, "this is none of them … zero3"),
        ({**ATTENTION, "algorithm": "context"}, "this is none of them"),
        ({"workload": "quadratic"}, "quadratic does not consist of"),
        ({"recompute_activations": "selective"}, "has no attention … full"),
        ({"recompute_activations": "selective", "model": "residual"}, "has no attention … full"),
    ],
    ids=str,
)
def test_methods_and_models_that_cannot_recompute_refuse_it(values, words):
    with pytest.raises(ValueError, match=quote(words)):
        run(experiment(**{"recompute_activations": "full", **values}))


@pytest.mark.parametrize(
    ("algorithm", "layers", "samples"),  # whose weights are not held: all but one layer's, if the peak is in backward
    [("zero3", 4, 8), ("layer_wise", 2 - 1, 8), ("gpipe", 2 * 2 - 1, 4)],
)
def test_methods_that_run_whole_layers_recompute_attention_weights_in_less_memory(algorithm, layers, samples):
    values = {**ATTENTION, "algorithm": algorithm, "workers": 2} | ({"chunks": 2} if algorithm == "gpipe" else {})
    kept, again = (run(experiment(**{**values, "recompute_activations": how})) for how in ("none", "selective"))
    assert kept.parameters.tobytes() == again.parameters.tobytes()
    assert again.trace.seconds() > kept.trace.seconds()
    less = (kept.peaks() - again.peaks())[:, HELD.index("activations")]
    heads, context = values["heads"], values["context"]
    assert (less == layers * samples * heads * context**2 * 4).all()


def test_a_layerwise_pass_holds_the_attention_weights_of_one_layer_while_this_goes_backward():
    values = {**ATTENTION, "algorithm": "zero2", "heads": 16}  # so that they outweigh the layers that are freed before
    kept, again = (run(experiment(**{**values, "recompute_activations": how})) for how in ("none", "selective"))
    less = (kept.peaks() - again.peaks())[0, HELD.index("activations")]
    assert 3 < less / (8 * 16 * 16**2 * 4) < 4


def test_experiments_stored_when_it_was_a_switch_mean_the_same():
    for old, new in ((True, "full"), ("true", "full"), (False, "none"), ("false", "none")):
        assert experiment(recompute_activations=old) == experiment(recompute_activations=new)


def test_methods_that_need_only_the_places_of_layers_accept_it():
    check(experiment(algorithm="streaming_diloco", recompute_activations="full"))
