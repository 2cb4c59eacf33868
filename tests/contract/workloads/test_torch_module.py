"""Any torch module: the same numbers as our own layers, and stages that keep the contract of stages."""

from __future__ import annotations

import math
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import kernels
from cluster.devices import DEVICES
from experiments.measure.profile import measure_profile, price_profile
from kernels.arrays import extents
from tests.training import train
from workloads import models
from workloads.supervised import Supervised
from workloads.torch_module import TorchModule

torch = pytest.importorskip("torch")
nn = torch.nn

RNG = np.random.default_rng(0)
X, TARGET = RNG.standard_normal((64, 6)), RNG.integers(0, 3, 64)
DATA = {"train": (X[:48], TARGET[:48]), "test": (X[48:], TARGET[48:])}


def sequential(*sizes, act=nn.ReLU):
    layers = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), act()]
    return nn.Sequential(*layers[:-1])


def wrapped(module, loss=nn.functional.cross_entropy, dtype=np.float64, **more):
    return TorchModule(module, loss, **{**DATA, **more}, dtype=dtype)


def ours(dtype=np.float64):
    chain = models.build(models.ModelKnobs(hidden="8,7"), (6,), 3, dtype)
    return Supervised("ours", chain, DATA["train"], DATA["test"])


def theirs(w, chain):
    """The same model in torch with our numbers; torch keeps its matrices transposed."""
    module = sequential(6, 8, 7, 3).to(torch.from_numpy(w).dtype)
    at = 0
    with torch.no_grad():
        for layer, linear in zip(chain.layers, [m for m in module if isinstance(m, nn.Linear)], strict=True):
            (a, b), _ = layer.shapes
            linear.weight.copy_(torch.tensor(w[at : at + a * b].reshape(a, b).T))
            linear.bias.copy_(torch.tensor(w[at + a * b : at + a * b + b]))
            at += a * b + b
    return module


def reordered(g, chain):
    """A gradient in the order and shapes of torch, from ours."""
    parts, at = [], 0
    for layer in chain.layers:
        (a, b), _ = layer.shapes
        parts += [g[at : at + a * b].reshape(a, b).T.ravel(), g[at + a * b : at + a * b + b]]
        at += a * b + b
    return np.concatenate(parts)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_a_torch_module_gives_the_gradient_of_the_same_model_made_of_our_layers(dtype, tolerance):
    mine = ours(dtype)
    w = mine.start(0)
    workload = wrapped(theirs(w, mine.model), dtype=dtype)
    v, batch = workload.start(), workload.batch(np.arange(32))
    loss, g = workload.gradient(v, batch)
    expected_loss, expected = mine.gradient(w, mine.batch(np.arange(32)))
    assert g.dtype == v.dtype == dtype
    assert loss == pytest.approx(expected_loss, rel=tolerance)
    np.testing.assert_allclose(g, reordered(expected, mine.model), rtol=0, atol=tolerance)
    evaluation, other = workload.evaluate(v), mine.evaluate(w)
    assert evaluation.loss == pytest.approx(other.loss, rel=tolerance)
    assert evaluation.accuracy == other.accuracy


def test_parameters_are_in_torch_s_order():
    module = sequential(6, 8, 3).double()
    expected = nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    np.testing.assert_array_equal(wrapped(module).start(), expected)


def test_training_changes_a_copy_and_not_the_user_s_module():
    module = sequential(6, 8, 3)
    before = [p.detach().clone() for p in module.parameters()]
    workload = wrapped(module)
    trained = train("sgd", workload, batch=8, steps=5).models[0]
    assert not np.array_equal(trained, workload.start())
    assert all(torch.equal(a, b) and b.dtype == torch.float32 for a, b in zip(before, module.parameters(), strict=True))


@pytest.mark.parametrize("act", [nn.ReLU, nn.Tanh])
@pytest.mark.parametrize("stages", [1, 2, 3, 4])
def test_stages_one_after_the_other_are_the_whole(stages, act):
    workload = wrapped(sequential(6, 8, 8, 8, 3, act=act))
    w, batch = workload.start(), workload.batch(np.arange(10))
    loss, g = workload.gradient(w, batch)
    parts = workload.split(stages)
    x, target = batch
    saved = []
    for part in parts:
        x, kept = part.forward(w[part.offset : part.offset + part.parameters], x)
        saved.append(kept)
    cut_loss, dy = parts[-1].loss(x, target)
    found = []
    for part, kept in zip(reversed(parts), reversed(saved), strict=True):
        own = w[part.offset : part.offset + part.parameters]
        half, pending = part.backward_input(own, kept, dy)
        weights = part.backward_weights(pending)
        dy, both = part.backward(own, kept, dy)
        np.testing.assert_array_equal(weights, both)
        if part.offset:
            np.testing.assert_array_equal(half, dy)
        found.insert(0, both)
    assert dy is None and half is None
    assert cut_loss == loss
    np.testing.assert_allclose(np.concatenate(found), g, rtol=0, atol=1e-15)


def test_backward_takes_products_from_the_weights_it_is_given_and_all_else_from_its_forward():
    mine = ours()
    w, batch = mine.start(0), mine.batch(np.arange(16))
    workload = wrapped(theirs(w, mine.model))
    other = mine.start(1)
    v, changed = workload.start(), wrapped(theirs(other, mine.model)).start()

    y, saved = mine.model.forward(w, batch[0])
    _, dy = mine.model.loss(y, batch[1])
    _, expected = mine.model.backward(other, saved, dy)
    y, saved = workload.whole.forward(v, batch[0])
    _, dy = workload.whole.loss(y, batch[1])
    v[:] = np.nan  # an update in place between forward and backward must not matter
    _, pending = workload.whole.backward_input(changed, saved, dy)
    np.testing.assert_allclose(workload.whole.backward_weights(pending), reordered(expected, mine.model), atol=1e-13)
    _, g = workload.whole.backward(changed, saved, dy)
    np.testing.assert_allclose(g, reordered(expected, mine.model), rtol=0, atol=1e-13)
    assert np.isnan(v).all()  # the weights of the forward pass belong to the caller


def test_boundaries_count_what_crosses_them():
    assert wrapped(sequential(6, 9, 5, 3)).boundaries(3) == (9, 5)


def test_children_without_parameters_stay_with_the_one_before():
    workload = wrapped(nn.Sequential(nn.Flatten(), nn.Linear(6, 4), nn.ReLU(), nn.Dropout(0.0), nn.Linear(4, 3)))
    assert [len(stage.module) for stage in workload.split(2)] == [4, 1]
    with pytest.raises(ValueError, match=r"^3 stages .*2 children.* 1 to 2\.$"):
        workload.split(3)
    assert [len(stage.module) for stage in workload.split((1, 1))] == [4, 1]
    assert workload.boundaries((1, 1)) == (4,)
    with pytest.raises(ValueError, match=r"^cuts 2,1 .* 3.* 2 children"):
        workload.split((2, 1))


def test_a_module_that_is_no_sequence_refuses_to_be_cut():
    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(6, 3)

        def forward(self, x):
            return self.a(x) + x[:, :3]

    workload = wrapped(Skip())
    assert np.isfinite(workload.gradient(workload.start(), workload.batch(np.arange(4)))[0])
    with pytest.raises(ValueError, match=r"^Skip .*stages.*nn.Sequential.*\.$"):
        workload.split(2)


def test_children_that_share_parameters_are_not_cut_apart():
    shared = nn.Linear(6, 6)
    with pytest.raises(ValueError, match="share parameters"):
        wrapped(nn.Sequential(shared, nn.ReLU(), shared)).split(2)


def test_a_module_without_parameters_is_refused():
    with pytest.raises(ValueError, match="has none"):
        wrapped(nn.ReLU())


def test_batch_norms_are_evaluated_with_statistics_of_training_samples_at_these_weights():
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3)).double()
    workload = wrapped(module)
    w = workload.start()
    x, held_out, target = (torch.from_numpy(a) for a in (X[:48], X[48:], TARGET[48:]))
    linear, norm, act, head = module
    z, seen = linear(held_out), linear(x)
    y = head(act((z - seen.mean(0)) / (seen.var(0) + norm.eps).sqrt()))
    for _ in range(2):
        assert workload.evaluate(w).loss == pytest.approx(nn.functional.cross_entropy(y, target).item())
        workload.gradient(w + 7, workload.batch(np.arange(9)))  # which leaves nothing behind
    assert workload.over_batch


def test_a_batch_norm_learns_by_the_mean_and_variance_of_each_batch():
    workload = wrapped(nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 3)))
    w = workload.start()
    halves = [workload.gradient(w, workload.batch(np.arange(8) + at))[1] for at in (0, 8)]
    _, whole = workload.gradient(w, workload.batch(np.arange(16)))
    assert np.abs(sum(halves) / 2 - whole).max() > 1e-3


class Counting(nn.Module):
    """A layer whose buffer is what `follow` makes of it in each pass."""

    def __init__(self, follow):
        super().__init__()
        self.follow = follow
        self.register_buffer("seen", torch.full((3,), torch.nan))

    def forward(self, x):
        self.seen = self.follow(self.seen, x)
        return x + self.seen.nan_to_num()


def test_a_buffer_that_training_changes_is_refused_by_name_and_a_constant_is_not():
    changing = (
        Counting(lambda seen, x: seen.nan_to_num() + 1),
        Counting(lambda seen, x: x.detach().mean(0)),
        nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
    )
    for layer in changing:
        with pytest.raises(
            ValueError, match=r"training changes the module's buffer 1\.\S*(seen|_u|_v), so it would differ"
        ):
            wrapped(nn.Sequential(nn.Linear(6, 3), layer))
    frozen = nn.BatchNorm1d(3).eval()
    rows = nn.Sequential(nn.Unflatten(1, (1, 3)), nn.InstanceNorm1d(1, track_running_stats=True), nn.Flatten())
    for layer in (Counting(lambda seen, x: seen), rows, frozen):
        workload = wrapped(nn.Sequential(nn.Linear(6, 3), layer))
        assert np.isfinite(workload.evaluate(workload.start()).loss) and not workload.over_batch
    assert not workload.norms


def test_buffers_go_where_the_weights_are():
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(6, 3)
            self.register_buffer("mask", torch.tensor([1.0, 0.0, 1.0]))

        def forward(self, x):
            return self.linear(x) * self.mask

    stage = wrapped(Masked(), dtype=np.float32).whole
    assert stage.apply(torch.empty(stage.parameters, device="meta"), torch.empty(2, 6, device="meta")).is_meta


def test_threads_that_share_a_module_do_not_see_each_other_s_weights():
    workload = wrapped(sequential(6, *[8] * 20, 3, act=nn.Tanh))
    batch, weights = workload.batch(np.arange(8)), [workload.start() * scale for scale in (1, 2, 3, 4)]
    alone = [workload.gradient(w, batch)[0] for w in weights]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda w: workload.gradient(w, batch)[0], weights * 60))
    finally:
        sys.setswitchinterval(interval)
    assert found == alone * 60


def test_a_regression_has_no_accuracy_and_any_loss_will_do():
    target = X[:, :3]
    workload = wrapped(sequential(6, 4, 3), nn.functional.l1_loss, train=(X, target), test=(X, target))
    evaluation = workload.evaluate(workload.start())
    assert math.isnan(evaluation.accuracy)
    assert evaluation.loss > 0


def test_dropout_is_off_in_evaluation_and_on_in_training():
    workload = wrapped(nn.Sequential(nn.Linear(6, 100), nn.Dropout(0.5), nn.Linear(100, 3)))
    w, batch = workload.start(), workload.batch(np.arange(8))
    assert workload.evaluate(w) == workload.evaluate(w)
    assert workload.gradient(w, batch)[0] != workload.gradient(w, batch)[0]


@pytest.mark.parametrize("algorithm", ["sync_sgd", "gpipe"])
def test_every_run_in_one_process_begins_with_the_same_dropout(algorithm):
    workload = wrapped(nn.Sequential(nn.Linear(6, 100), nn.Dropout(0.5), nn.Linear(100, 3)))
    first, second = (train(algorithm, workload, 2, batch=8, steps=3).shipped for _ in range(2))
    assert np.array_equal(first, second)


def test_another_seed_is_another_dropout_from_the_same_weights():
    workload = wrapped(nn.Sequential(nn.Linear(6, 100), nn.Dropout(0.5), nn.Linear(100, 3)))
    batch = workload.batch(np.arange(8))
    weights, losses = zip(*((w, workload.gradient(w, batch)[0]) for w in map(workload.start, (0, 1, 0))), strict=True)
    assert np.array_equal(weights[0], weights[1]) and losses[0] != losses[1] and losses[0] == losses[2]


def test_passes_are_charged_what_they_cost():
    charged = []

    class Meter:
        def charge(self, kernel, flops, nbytes):
            charged.append((flops, nbytes))

    workload = wrapped(sequential(6, 8, 3))
    with kernels.meter_kernels(Meter()):
        workload.gradient(workload.start(), workload.batch(np.arange(16)))
        workload.gradient(workload.start(), workload.batch(np.arange(16)))
    product = 2 * 16 * (6 * 8 + 8 * 3)
    assert [flops for flops, _ in charged] == [product, 2 * product] * 2
    assert charged[0][1] == 8 * (workload.parameters + 16 * 6 + 16 * 3)


def test_a_pipeline_of_torch_stages_learns_what_one_process_does():
    torch.manual_seed(0)
    module = sequential(6, 8, 8, 3)
    piped = train("gpipe", wrapped(module), 3, {"chunks": 2, "learning_rate": 0.3}, batch=8, steps=10).models[0]
    alone = train("sgd", wrapped(module), settings={"learning_rate": 0.3}, batch=8, steps=10).models[0]
    np.testing.assert_allclose(piped, alone, rtol=0, atol=1e-13)


def test_it_is_profiled_by_its_children():
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 3))
    workload = wrapped(net, dtype=np.float32)
    batch = workload.batch(np.arange(8))
    for profile in (measure_profile(workload, batch, range(2)), price_profile(workload, batch, DEVICES["laptop"])):
        assert profile.layers == ("0 flatten, linear, relu", "1 linear")
        assert profile.activations == (4 * 8 * 12, 4 * 8 * 3) and profile.weights == (4 * 7 * 12, 4 * 13 * 3)
        assert all(profile.forward) and all(profile.backward)


def kept(workload, samples):
    workload.gradient(workload.start(), workload.batch(np.arange(samples)))
    return workload.activations[samples]


def test_the_bytes_kept_for_backward_are_the_inputs_of_each_layer_without_weights_and_buffers():
    assert kept(wrapped(sequential(6, 8, 7, 3)), 16) == 16 * (6 + 8 + 7) * 8
    masked = nn.Sequential(nn.Linear(6, 8, bias=False), Masked(), nn.Linear(8, 3))
    assert kept(wrapped(masked), 5) == 5 * (6 + 8) * 8  # the mask is a constant


def test_what_a_function_written_in_python_saves_is_kept_for_backward_too():
    assert kept(wrapped(nn.Sequential(nn.Linear(6, 3), Squared())), 4) == 4 * (6 + 3 + 5) * 8


def test_a_network_that_differentiates_in_its_forward_pass_is_weighed_as_well():
    class Slope(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.last = nn.Linear(6, 1), nn.Linear(6, 3)

        def forward(self, x):
            return self.last(torch.func.grad(lambda x: self.inner(x).tanh().sum())(x))

    assert kept(wrapped(Slope()), 4) > 4 * 6 * 8


def test_stages_keep_together_what_the_whole_keeps_but_each_its_input():
    whole = wrapped(sequential(6, 8, 7, 3))
    w, x, held = whole.start(), X[:16], 0
    for stage in whole.split(3):
        x, saved = stage.forward(w[stage.offset : stage.offset + stage.parameters], x)
        held += sum(extents((saved, saved)).values())
    assert held == kept(whole, 16) + 16 * (8 + 7) * 8  # an output that leaves a stage is copied into the next


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.ones(8, dtype=torch.float64))

    def forward(self, x):
        return x * self.mask


class Squared(nn.Module):
    def forward(self, x):
        return _Square.apply(x)


class _Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x, x.new_zeros(4 * 5))
        return x * x

    @staticmethod
    def backward(ctx, dy):
        x, _ = ctx.saved_tensors
        return 2 * x * dy
