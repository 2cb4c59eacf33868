"""Layer kernels against torch's, and what is their own: NaN, ties, large logits, prices."""

from __future__ import annotations

import numpy as np
import pytest

import kernels

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.standard_normal(shape)


def torch_gradients(function, *arrays):
    """The outputs of `function`, and what their gradients become when dy is 1, 2, 3, ... (y, dy, gradients)."""
    torch = pytest.importorskip("torch")
    tensors = [torch.tensor(array, requires_grad=True) for array in arrays]
    y = function(torch, *tensors)
    dy = torch.arange(1.0, 1 + y.numel(), dtype=torch.float64).reshape(y.shape)
    gradients = torch.autograd.grad(y, tensors, dy)
    return y.detach().numpy(), dy.numpy(), [g.numpy() for g in gradients]


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)


def test_dense_goes_forward_and_backward_as_in_torch():
    x, w, b = normal(6, 5), normal(5, 4), normal(4)
    expected, dy, (dx0, dw0, db0) = torch_gradients(lambda torch, x, w, b: torch.relu(x @ w + b), x, w, b)
    y, dz, dx, dw, db = np.empty((6, 4)), np.empty((6, 4)), np.empty_like(x), np.empty_like(w), np.empty_like(b)
    kernels.dense_forward(y, x, w, b, True)
    kernels.relu_backward(dz, dy, y)
    kernels.dense_backward_input(dx, dz, w)
    kernels.dense_backward_weights(dw, db, x, dz)
    for ours, theirs in ((y, expected), (dx, dx0), (dw, dw0), (db, db0)):
        close(ours, theirs)


def test_dense_gradients_are_added_to_those_before_with_the_bits_of_a_sum():
    for dtype in (np.float32, np.float64):
        for samples, inputs, outputs in ((0, 3, 4), (1, 1, 1), (17, 5, 3), (64, 33, 70)):
            x, dz = normal(samples, inputs).astype(dtype), normal(samples, outputs).astype(dtype)
            dw, db = normal(inputs, outputs).astype(dtype), normal(outputs).astype(dtype)
            own = np.empty_like(dw), np.empty_like(db)
            kernels.dense_backward_weights(*own, x, dz)
            expected = dw + own[0], db + own[1]
            kernels.dense_backward_weights(dw, db, x, dz, True)
            assert np.array_equal(dw, expected[0]) and np.array_equal(db, expected[1])


def test_tanh_goes_forward_and_backward_as_in_torch():
    z = normal(4, 3)
    expected, dy, (dz0,) = torch_gradients(lambda torch, z: torch.tanh(z), z)
    y, dz = np.empty_like(z), np.empty_like(z)
    kernels.tanh_forward(y, z)
    kernels.tanh_backward(dz, dy, y)
    close(y, expected)
    close(dz, dz0)


@pytest.mark.parametrize("size", [1, 3, 5, 7])
@pytest.mark.parametrize("image", [(8, 8), (5, 6), (2, 3), (3, 2), (1, 1)])
def test_a_convolution_goes_forward_and_backward_as_in_torch(size, image):
    x, w, b = normal(2, 3, *image), normal(4, 3, size, size), normal(4)
    expected, dy, (dx0, dw0, db0) = torch_gradients(
        lambda torch, x, w, b: torch.nn.functional.conv2d(x, w, b, padding=size // 2), x, w, b
    )
    y, dx, dw, db = np.empty((2, 4, *image)), np.empty_like(x), np.empty_like(w), np.empty_like(b)
    kernels.conv2d_forward(y, x, w, b, False)
    kernels.conv2d_backward_input(dx, dy, w)
    kernels.conv2d_backward_weights(dw, db, x, dy)
    for ours, theirs in ((y, expected), (dx, dx0), (dw, dw0), (db, db0)):
        close(ours, theirs)


@pytest.mark.parametrize("window", [1, 2, 3])
def test_max_pooling_goes_forward_and_backward_as_in_torch_ties_included(window):
    x = np.maximum(RNG.integers(-2, 3, (2, 3, 7, 8)), 0).astype(float)
    expected, dy, (dx0,) = torch_gradients(lambda torch, x: torch.nn.functional.max_pool2d(x, window), x)
    y, dx = np.empty(expected.shape), np.empty_like(x)
    kernels.max_pool_forward(y, x, window)
    kernels.max_pool_backward(dx, dy, x, y, window)
    np.testing.assert_array_equal(y, expected)
    np.testing.assert_array_equal(dx, dx0)


@pytest.mark.parametrize("shape", [(6, 3), (4, 3, 5, 2), (1, 3, 2, 2)])
@pytest.mark.parametrize("relu", [True, False])
def test_batch_norm_goes_forward_and_backward_as_in_torch(shape, relu):
    x, gain, bias = 3 * normal(*shape) + 2, normal(3), normal(3)

    def norm(torch, x, gain, bias):
        y = torch.nn.functional.batch_norm(x, None, None, gain, bias, training=True, eps=1e-3)
        return y.relu() if relu else y

    expected, dy, (dx0, dgain0, dbias0) = torch_gradients(norm, x, gain, bias)
    y, dz, dx = (np.empty_like(x) for _ in range(3))
    mean, variance, dgain, dbias = (np.empty(3) for _ in range(4))
    kernels.batch_norm_forward(y, mean, variance, x, gain, bias, 1e-3, relu)
    kernels.relu_backward(dz, dy, y) if relu else np.copyto(dz, dy)
    kernels.batch_norm_backward_weights(dgain, dbias, dz, x, mean, variance, 1e-3)
    kernels.batch_norm_backward_input(dx, dz, x, mean, variance, gain, dgain, dbias, 1e-3)
    for ours, theirs in ((y, expected), (dx, dx0), (dgain, dgain0), (dbias, dbias0)):
        close(ours, theirs)


@pytest.mark.parametrize("relu", [True, False])
def test_a_batch_norm_applied_with_its_own_mean_and_variance_is_the_forward_pass_bit_for_bit(relu):
    x, gain, bias = (part.astype("f4") for part in (3 * normal(4, 3, 5, 2) + 2, normal(3), normal(3)))
    y, again, (mean, variance) = np.empty_like(x), np.empty_like(x), np.empty((2, 3), np.float32)
    kernels.batch_norm_forward(y, mean, variance, x, gain, bias, 1e-3, relu)
    kernels.batch_norm_apply(again, x, mean, variance, gain, bias, 1e-3, relu)
    assert y.tobytes() == again.tobytes()


def test_a_batch_norm_keeps_its_digits_far_from_zero():
    x = (10_000 + RNG.standard_normal((50, 1, 4, 4))).astype(np.float32)
    y, mean, variance, gain = np.empty_like(x), *(np.ones(1, np.float32) for _ in range(3))
    kernels.batch_norm_forward(y, mean, variance, x, gain, np.zeros(1, np.float32), 1e-5, False)
    np.testing.assert_allclose(variance, x.var(dtype=np.float64), rtol=1e-4)
    assert abs(y.mean(dtype=np.float64)) < 1e-3


def test_softmax_cross_entropy_is_torch_s_mean_loss_and_its_gradient():
    torch = pytest.importorskip("torch")
    z, target = normal(7, 5), RNG.integers(0, 5, 7)
    logits = torch.tensor(z, requires_grad=True)
    loss = torch.nn.functional.cross_entropy(logits, torch.tensor(target))
    loss.backward()
    dz = np.empty_like(z)
    close(kernels.softmax_cross_entropy(dz, z, target), loss.item())
    close(dz, logits.grad.numpy())


def test_logits_too_large_for_an_exponential_give_a_finite_loss():
    z = np.array([[1000.0, 0.0], [0.0, -1000.0]])
    dz = np.empty_like(z)
    assert kernels.softmax_cross_entropy(dz, z, np.array([1, 0])) == 500
    np.testing.assert_array_equal(dz, [[0.5, -0.5], [0, 0]])


def test_squared_error_is_half_the_mean_squared_distance_and_its_gradient():
    dy = np.empty((2, 2))
    loss = kernels.squared_error(dy, np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[0.0, 0.0], [3.0, 2.0]]))
    assert loss == (1 + 4 + 0 + 4) / 4
    np.testing.assert_array_equal(dy, [[0.5, 1], [0, 1]])


def test_the_quadratic_pulls_towards_the_mean_of_its_points():
    g = np.empty(2)
    loss = kernels.quadratic(g, np.array([1.0, 1.0]), np.array([[2.0, 0.0], [4.0, 0.0]]), np.array([1.0, 0.5]))
    assert loss == ((1 + 0.5) / 2 + (9 + 0.5) / 2) / 2
    np.testing.assert_array_equal(g, [-2, 0.5])


@pytest.mark.parametrize("relu", [True, False])
def test_a_nan_passes_through_a_dense_layer(relu):
    y = np.empty((1, 2))
    kernels.dense_forward(y, np.array([[np.nan]]), np.ones((1, 2)), np.zeros(2), relu)
    assert np.isnan(y).all()


def test_a_nan_wins_the_pooling():
    x = np.zeros((1, 1, 2, 2))
    y = np.empty((1, 1, 1, 1))
    for place in range(4):
        x[:] = 1
        x.flat[place] = np.nan
        kernels.max_pool_forward(y, x, 2)
        assert np.isnan(y[0, 0, 0, 0])


def test_the_gradient_of_a_pooling_goes_to_the_nan_that_won_it():
    x, dy, y, kernel = (
        np.ones((1, 1, 2, 2)),
        np.full((1, 1, 1, 1), 3.0),
        np.empty((1, 1, 1, 1)),
        kernels.max_pool_backward,
    )
    x[0, 0, 1] = np.nan
    kernels.max_pool_forward(y, x, 2)
    for implementation in (kernel.module.reference, kernel.module.cpu):
        dx = np.empty_like(x)
        implementation(dx, dy, x, y, 2)
        np.testing.assert_array_equal(dx.ravel(), [0, 0, 3, 0])


def test_both_halves_of_a_backward_pass_cost_a_forward_pass_each_in_products():
    x, w, b, y = np.empty((32, 64)), np.empty((64, 10)), np.empty(10), np.empty((32, 10))
    product = 2 * 32 * 64 * 10
    assert kernels.dense_forward.price(y, x, w, b, False)[0] == product + 32 * 10
    assert kernels.dense_backward_input.price(x, y, w)[0] == product
    assert kernels.dense_backward_weights.price(w, b, x, y)[0] == product + 32 * 10


def test_a_kernel_moves_each_of_its_arrays_once():
    x, w, b, y = np.empty((2, 3, 8, 8)), np.empty((4, 3, 3, 3)), np.empty(4), np.empty((2, 4, 8, 8))
    c = np.empty(3)
    for kernel, args in (
        (kernels.batch_norm_forward, (x, c, c, x, c, c, 1e-5, True)),
        (kernels.batch_norm_apply, (x, x, c, c, c, c, 1e-5, True)),
        (kernels.batch_norm_backward_weights, (c, c, x, x, c, c, 1e-5)),
        (kernels.batch_norm_backward_input, (x, x, x, c, c, c, c, c, 1e-5)),
        (kernels.conv2d_forward, (y, x, w, b, True)),
        (kernels.conv2d_backward_input, (x, y, w)),
        (kernels.conv2d_backward_weights, (w, b, x, y)),
        (kernels.dense_forward, (np.empty((5, 2)), np.empty((5, 3)), np.empty((3, 2)), np.empty(2), True)),
    ):
        assert kernel.price(*args)[1] == sum(a.size for a in args if isinstance(a, np.ndarray))


ELEMENTWISE = {"tanh_forward": 2, "tanh_backward": 3, "relu_backward": 3, "gelu_forward": 2, "gelu_backward": 4}


@pytest.mark.parametrize(("name", "arrays"), [*ELEMENTWISE.items(), ("residual_add", 3)])
def test_an_elementwise_layer_refuses_strided_and_unlike_arrays_and_changes_nothing(name, arrays):
    kernel, scalars = getattr(kernels, name).module, (0.5,) * (name == "residual_add")
    strided = [np.ones(16)[::2] for _ in range(arrays)]
    unlike = [np.ones(8 - (i == arrays - 1)) for i in range(arrays)]
    for implementation in (kernel.cpu, kernel.gpu):  # on a GPU they are refused before anything is launched
        for given, why in ((strided, "strided"), (unlike, "must be equal")):
            with pytest.raises(ValueError, match=why):
                implementation(*given, *scalars)
            assert all((x == 1).all() for x in given)
