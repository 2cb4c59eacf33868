"""Mixed precision of a model: what its layers round, how it compares with torch's autocast, what scaling saves."""

from __future__ import annotations

import math

import numpy as np
import pytest

import kernels
from cluster.devices import Bill, Device
from experiments.execution.run import workload_of
from experiments.specification.experiment import Experiment
from kernels.meter import Prices
from workloads.layers import Dense
from workloads.loss_scale import LossScale, use_scale
from workloads.mixed_precision import FORMATS
from workloads.sequential import Sequential

MODELS = {
    "mlp": {"model": "mlp"},
    "tanh": {"model": "residual", "activation": "tanh", "depth": 3},
    "cnn": {"model": "cnn", "channels": 2},
    "cnn_bn": {"model": "cnn_bn", "channels": 2},
    "transformer": {"workload": "text", "context": 16, "width": 16, "heads": 2, "depth": 2},
    "experts": {"workload": "text", "context": 16, "width": 16, "heads": 2, "depth": 2, "experts": 4},
}
each_model = pytest.mark.parametrize("name", MODELS)
each_format = pytest.mark.parametrize("kind", FORMATS)


def workload(name: str, precision: str, **values):
    return workload_of(Experiment.of({"algorithm": "sgd", "precision": precision, **MODELS[name], **values}))


def is_short(x: np.ndarray, kind: str) -> bool:
    """Whether 16 bits of this format hold every number of x."""
    out = np.empty(x.size, np.float32)
    kernels.round_to(out, np.ascontiguousarray(x).reshape(-1), *FORMATS[kind], -1)
    return np.array_equal(out, x.reshape(-1), equal_nan=True)


def every(nest):
    """All float32 arrays in nested tuples and lists."""
    if isinstance(nest, tuple | list):
        return [x for part in nest for x in every(part)]
    return [nest] if getattr(nest, "dtype", None) == np.float32 else []


@each_model
@each_format
def test_a_layer_passes_on_and_keeps_only_what_16_bits_hold_except_statistics(name, kind):
    one = workload(name, kind)
    model, (x, target) = one.model, one.batch(np.arange(8))
    w = model.start(3)
    assert not is_short(w, kind)  # the master weights
    passed = [x] if x.dtype == np.float32 else []
    for layer in model.split(model.depth):
        place = slice(layer.offset, layer.offset + layer.parameters)
        x, saved = layer.forward(w[place], x)
        passed += [x, *(y for y in every(saved) if y.ndim > 1)]
    _, dy = model.loss(x, target)
    y, saved = model.forward(w, one.batch(np.arange(8))[0])
    _, pending = model.backward_input(w, saved, dy)
    g = model.backward_weights(pending)
    assert all(is_short(array, kind) for array in (*passed, dy, y, g, *(p for p in every(pending) if p.ndim > 1)))
    assert g.dtype == w.dtype == np.float32 and np.isfinite(g).all() and g.any()


@each_model
@each_format
def test_its_gradient_is_near_that_of_float32_and_not_equal(name, kind):
    exact, short = workload(name, "float32"), workload(name, kind)
    batch = exact.batch(np.arange(16))
    w = exact.start(1)
    (loss, g), (rough, h) = exact.gradient(w, batch), short.gradient(w, short.batch(np.arange(16)))
    eps = 2.0 ** -FORMATS[kind][0]
    assert loss != rough and abs(loss - rough) < 8 * eps
    assert 0 < np.linalg.norm(g - h) < 50 * eps * np.linalg.norm(g)


@each_model
def test_a_loss_scale_that_is_a_power_of_two_changes_no_bit_where_the_range_is_wide(name):
    one = workload(name, "bf16")
    w, batch = one.start(1), one.batch(np.arange(8))
    loss, g = one.gradient(w, batch)
    for factor in (2.0**10, 2.0**-10):
        with use_scale(LossScale(factor)):
            scaled, h = one.gradient(w, batch)
        assert scaled == loss and np.array_equal(g, h)


def test_gradients_below_the_least_number_of_fp16_vanish_and_a_loss_scale_keeps_them():
    layers = [Dense((3,), 2, "none")]
    exact = Sequential(layers, kernels.squared_error)
    x, w = np.float32([[1, 2, 4]]), np.zeros(8, np.float32)
    target = np.float32([[1e-8, -2e-8]])  # the error, less than half of 2^-24
    _, g = exact.gradient(w, x, target)
    short = exact.in_precision("fp16")
    assert not short.gradient(w, x, target)[1].any()
    with use_scale(LossScale(2.0**16)):
        _, kept = short.gradient(w, x, target)
    np.testing.assert_allclose(kept, g, rtol=2 * 2.0**-11)
    np.testing.assert_allclose(exact.in_precision("bf16").gradient(w, x, target)[1], g, rtol=2 * 2.0**-8)


def test_too_large_a_loss_scale_overflows_the_gradient_but_not_the_loss():
    one = workload("mlp", "fp16")
    w, batch = one.start(1), one.batch(np.arange(8))
    loss, _ = one.gradient(w, batch)
    with use_scale(LossScale(2.0**40)):
        scaled, g = one.gradient(w, batch)
    assert scaled == loss and not np.isfinite(g).all()


@each_format
def test_a_linear_layer_is_torchs_under_autocast_up_to_the_order_of_its_sums(kind):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    x, target = rng.standard_normal((64, 96)).astype(np.float32), rng.integers(0, 32, 64)
    model = Sequential([Dense((96,), 32, "none")], kernels.softmax_cross_entropy).in_precision(kind)
    w = model.start(5)
    matrix, bias = ([p] for p in model.cut(w)[0])
    theirs = torch.nn.Linear(96, 32)
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(matrix[0].T.copy()))
        theirs.bias.copy_(torch.from_numpy(bias[0].copy()))
    with torch.autocast("cpu", dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[kind]):
        z = theirs(torch.from_numpy(x))
        loss = torch.nn.functional.cross_entropy(z, torch.from_numpy(target))
    loss.backward()
    layer = model.layers[0]
    ours = layer.forward(model.cut(w)[0], model.round_inputs(x))[0]
    own_loss, g = model.gradient(w, model.round_inputs(x), target)
    digits = FORMATS[kind][0]
    expected = z.detach().float().numpy()
    last = 2.0 ** (np.frexp(np.abs(expected).astype(float))[1] - digits)  # one unit in the last place
    assert (np.abs(ours - expected) <= last).all()
    assert (ours == expected).mean() > 0.95  # sums in another order rarely round to another number
    assert own_loss == pytest.approx(loss.item(), rel=2.0**-digits)
    dw, db = model.cut(g)[0]
    for mine, yours in ((dw, theirs.weight.grad.numpy().T), (db, theirs.bias.grad.numpy())):
        apart = np.abs(mine - yours)
        assert (apart <= 2.0**-digits * (np.abs(yours) + 0.1 * np.abs(yours).max())).mean() > 0.99
        assert apart.max() < 4 * 2.0**-digits * np.abs(yours).max()


@each_model
def test_its_activations_take_half_of_the_bytes_except_statistics_and_tokens(name):
    exact, short = workload(name, "float32"), workload(name, "bf16")
    for one in (exact, short):
        one.gradient(one.start(0), one.batch(np.arange(8)))
    if name in ("mlp", "tanh", "cnn"):
        assert 2 * short.activations[8] == exact.activations[8]
    assert 0.5 * exact.activations[8] <= short.activations[8] < 0.56 * exact.activations[8]


def bill(one, device: Device) -> float:
    meter = Bill(device)
    w, batch = one.start(0), one.batch(np.arange(16))
    with kernels.meter_kernels(meter):
        one.model._by_layer(w, *batch)
    return meter()


def test_products_run_at_the_rate_for_16_bits_and_everything_else_does_not():
    exact, short = (workload("mlp", precision) for precision in ("float32", "fp16"))
    prices = Prices()
    with kernels.meter_kernels(prices):
        exact.model._by_layer(exact.start(0), *exact.batch(np.arange(16)))
    products = sum(flops for name, flops, _ in prices.rows if name in kernels.PRODUCTS)
    others = sum(flops for name, flops, _ in prices.rows if name not in kernels.PRODUCTS)
    d = exact.parameters
    assert bill(exact, Device(1.0, math.inf, 0.0)) == pytest.approx(products + others)
    tensor_cores = Device(1.0, math.inf, 0.0, half=8.0)
    casts = 5 * (d + d)  # of the weights, once, and of the gradient
    assert bill(short, tensor_cores) == pytest.approx(products / 8 + others + casts)
    assert bill(short, Device(1.0, math.inf, 0.0)) == pytest.approx(products + others + casts)


def test_the_kernels_that_multiply_matrices_are_those_of_dense_layers_convolutions_attention_and_codecs():
    known = {name for names in kernels.FAMILIES.values() for name in names}
    assert known >= kernels.PRODUCTS
    assert {name for name in known if name.startswith(("dense_", "conv2d_", "attention_"))} | {
        "matmul"
    } == kernels.PRODUCTS


def test_half_of_the_bytes_are_moved_and_six_for_every_conversion():
    exact, short = (workload("mlp", precision) for precision in ("float32", "fp16"))
    link, d, classes = Device(math.inf, 1.0, 0.0), exact.parameters, 10
    judged = kernels.softmax_cross_entropy
    z = np.zeros((16, classes), np.float32)
    loss = 4 * judged.price(z, z, np.zeros(16, np.int64))[1]  # in float32 in both
    assert bill(short, link) == pytest.approx((bill(exact, link) - loss) / 2 + loss + 6 * 2 * d)


def test_a_dynamic_scale_follows_torchs_gradient_scaler_on_any_sequence_of_overflows():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(4)
    for window in (1, 3, 5):
        theirs, ours = torch.amp.GradScaler("cpu", growth_interval=window), LossScale(None, window)
        p = torch.nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([p], lr=1.0)
        skipped = 0
        for overflows in rng.random(60) < 0.3:
            before = p.item()
            theirs.scale(p.sum() * 0)
            p.grad = torch.full((1,), math.inf if overflows else theirs.get_scale())
            theirs.step(optimizer)
            theirs.update()
            skipped += p.item() == before
            ours.update(not overflows)
            assert (ours.value, ours.skipped) == (theirs.get_scale(), skipped)
        assert 0 < skipped < 60


def test_a_fixed_scale_stays():
    scale = LossScale(8.0, 1)
    for usable in (True, True):
        scale.update(usable)
    assert not LossScale(8.0).is_dynamic and LossScale().is_dynamic
