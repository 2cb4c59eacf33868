"""Dense pass: loss and gradient of a chain of dense layers and blocks with softmax cross-entropy, in one compiled call.

It is not a kernel of its own: it calls those of the layers with the same numbers in the same order as a pass layer by
layer, so its bits are the same. Called separately, a small layer's kernel takes 1 us or more, of which only 0.3 us
are arithmetic.
"""

import numpy as np

from kernels.compiled import exact
from kernels.layers import (
    dense_backward_input,
    dense_backward_weights,
    dense_forward,
    relu_backward,
    residual_add,
    softmax_cross_entropy,
    tanh_backward,
    tanh_forward,
)

RELU, TANH = 1, 2  # any other number means no activation

_forward, _tanh = dense_forward.cpu, tanh_forward.cpu
_backward_input, _backward_weights = dense_backward_input.cpu, dense_backward_weights.cpu
_relu_backward, _tanh_backward = relu_backward.cpu, tanh_backward.cpu
_residual_add, _criterion = residual_add.cpu, softmax_cross_entropy.cpu


@exact
def loss_and_gradient(g, w, x, target, widths, activations, scales):
    """Return the loss, and write the gradient of the parameters into g.

    g and w (parameters,), x (n, ...), target (n,); widths (layers + 1,): the inputs of each layer, and the outputs of
    the last; activations (layers,); scales (layers,): the scale of a residual block's layer, 0 for any other.
    """
    n, depth = len(x), len(activations)
    outputs = n * np.cumsum(widths)  # where each layer's outputs end in y; x comes first
    weights = np.zeros(depth + 1, np.int64)  # where each layer's parameters begin in w
    y = np.empty(outputs[-1], w.dtype)
    inside = np.empty(outputs[-1] if scales.any() else 0, w.dtype)  # of blocks, before the input is added
    y[: outputs[0]] = x.ravel()
    for k in range(depth):
        a, b = widths[k], widths[k + 1]
        at, biases, weights[k + 1] = weights[k], weights[k] + a * b, weights[k] + a * b + b
        inputs = y[outputs[k] - n * a : outputs[k]].reshape(n, a)
        own = inside if scales[k] else y
        z = own[outputs[k] : outputs[k + 1]].reshape(n, b)
        _forward(z, inputs, w[at:biases].reshape(a, b), w[biases : biases + b], activations[k] == RELU)
        if activations[k] == TANH:
            _tanh(z, z)
        if scales[k]:
            _residual_add(y[outputs[k] : outputs[k + 1]].reshape(n, b), inputs, z, scales[k])
    last = y[outputs[-2] :].reshape(n, widths[-1])
    dy = np.empty_like(last)
    loss = _criterion(dy, last, target)
    for k in range(depth - 1, -1, -1):
        a, b = widths[k], widths[k + 1]
        at, biases = weights[k], weights[k] + a * b
        inputs = y[outputs[k] - n * a : outputs[k]].reshape(n, a)
        own = inside if scales[k] else y
        z = own[outputs[k] : outputs[k + 1]].reshape(n, b)
        dz = dy.dtype.type(scales[k]) * dy if scales[k] else dy
        if activations[k] == RELU:
            _relu_backward(dz, dz, z)
        elif activations[k] == TANH:
            _tanh_backward(dz, dz, z)
        _backward_weights(g[at:biases].reshape(a, b), g[biases : biases + b], inputs, dz)
        if k:
            dx = np.empty_like(inputs)
            _backward_input(dx, dz, w[at:biases].reshape(a, b))
            if scales[k]:
                _residual_add(dx, dx, dy, 1.0)
            dy = dx
    return loss
