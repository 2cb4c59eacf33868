"""Transformer: a sequential model of an embedding, alternating blocks of attention and MLP, and a head.

    Embedding         x_t = table[token_t] + places[t]
    AttentionBlock    x <- x + Wo attention(Wq LN(x), Wk LN(x), Wv LN(x))       causal
    MlpBlock          x <- x + W2 gelu(W1 LN(x))                                each position separately
    MoeBlock          x <- x + those MLPs that a position chooses               instead of MlpBlock; see `experts.py`
    Head              logits = W LN(x)                                          of the next token

Samples are (time, width), except for the input tokens, which are (time,) integers. Blocks are pre-norm, so the residual
path from the last layer to the first does not pass a norm. All products have biases. Two blocks, one of each kind, with
t positions and width h, cost t h (24 h + 4 t) FLOPs forward, t h (24 h + 8 t) for B and 24 t h^2 for W, plus
lower-order terms.
Source: Vaswani et al., NeurIPS 2017; norms as in GPT-2 (Radford et al., 2019); FLOPs as Qi et al., ICLR 2024, count.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

import kernels
from workloads.layers import Layer, he
from workloads.mixed_precision import round_short

EPS = 1e-5  # added to the variance in a layer norm
GROWTH = 4  # hidden size of an MLP block, as a multiple of its width


def layers(
    tokens: int, time: int, width: int, heads: int, depth: int, block: Callable[[int, int, float], Layer] | None = None
) -> list[Layer]:
    """Return the `depth` + 2 layers of the model. Raise ValueError if heads do not divide the width.

    block(time, width, gain) makes the blocks that alternate with attention, by default an MlpBlock.
    """
    if width % heads:
        lower = max(heads, width - width % heads)
        raise ValueError(f"{heads} heads do not divide a width of {width}; use a width of {lower} or {lower + heads}.")
    gain = 1 / math.sqrt(depth)
    pair = AttentionBlock(time, width, heads, gain), (block or MlpBlock)(time, width, gain)
    return [Embedding(tokens, time, width), *(pair[i % 2] for i in range(depth)), Head(time, width, tokens)]


@dataclass(frozen=True)
class Embedding(Layer):
    """y = table[x] + places: learned embeddings of token and position. Always the first layer."""

    tokens: int
    time: int
    width: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return (self.time,)

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.time, self.width

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.tokens, self.width), (self.time, self.width)

    @property
    def flops(self) -> int:
        return self.time * self.width

    def start(self, generator):
        return tuple(0.5 * generator.standard_normal(shape) for shape in self.shapes)

    def forward(self, parts, x):
        y = kernels.empty((*x.shape, self.width), parts[0])
        kernels.embedding_forward(y, x, *parts)
        return y, (x,)

    def backward_input(self, parts, saved, dy, needed=True):
        return None, (*saved, dy)  # tokens are discrete

    def backward_weights(self, gradients, pending):
        kernels.embedding_backward_weights(*gradients, *pending)


@dataclass(frozen=True)
class AttentionBlock(Layer):
    """y = x + Wo attention(Wq h, Wk h, Wv h) + bo, h = LN(x): causal multi-head attention.

    Parameters: gain and bias of the norm, then Wq, bq, Wk, bk, Wv, bv, Wo, bo. A head has its own columns of Wq, Wk and
    Wv and the same rows of Wo. The initial Wo is `gain` times He's; see Residual in layers.py.

    With `again` (selective recomputation: Korthikanti et al., MLSys 2023), attention weights are not saved: backward
    repeats attention. In 16-bit format `kind`, attention reads queries, keys and values rounded, as they are saved, so
    that both times it computes the same weights.
    """

    time: int
    width: int
    heads: int
    gain: float = 1.0
    again: bool = False
    kind: str = ""  # of mixed_precision.FORMATS; "" rounds nothing

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.time, self.width

    outputs = inputs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.width,), (self.width,), *((self.width, self.width), (self.width,)) * 4

    @property
    def flops(self) -> int:
        return self.time * self.width * (8 * self.width + 4 * self.time)

    @property
    def scratch(self) -> int:
        return self.heads * self.time**2 if self.again else 0

    def in_precision(self, kind):
        return replace(self, kind=kind)

    def with_recomputation(self):
        return replace(self, again=True)

    def start(self, generator):
        return *_norm(self.width), *_dense(generator, *[(self.width, self.width)] * 4, gain=self.gain)

    def forward(self, parts, x):
        qkv, entered = self.enter(parts, x)
        round_short(qkv, self.kind)
        a, p = attend(self.heads, *qkv)
        return self.leave(parts, a, x), (*entered, *qkv, None if self.again else p, a)

    def backward_input(self, parts, saved, dy, needed=True):
        *entered, q, k, v, p, a = saved
        if p is None:
            _, p = attend(self.heads, q, k, v)
            round_short(p, self.kind)
        dqkv = attend_back(self.leave_back(parts, dy), p, q, k, v)
        dx, before = self.enter_back(parts, entered, dqkv, dy, needed)
        return dx, (*before, *dqkv, a, dy)

    # what each position does by itself, before attention and after it

    def enter(self, parts, x) -> tuple:
        """Return ((q, k, v), saved): queries, keys and values of each position."""
        gain, bias, wq, bq, wk, bk, wv, bv, _, _ = parts
        h, u, r = norm(x, gain, bias)
        return (project(h, wq, bq), project(h, wk, bk), project(h, wv, bv)), (u, r, h)

    def leave(self, parts, a, x):
        """Return the block's output y: x plus the projection of a, the attention output of each position."""
        y = project(a, *parts[8:])
        kernels.residual_add(y, x, y, 1.0)
        return y

    def leave_back(self, parts, dy):
        """Return the gradient of a, the attention output of each position, given the gradient of the block's output."""
        return back(dy, parts[8])

    def enter_back(self, parts, saved, dqkv, dy, needed=True) -> tuple:
        """Return (dx, (u, dh, h)), given the gradients of queries, keys and values."""
        gain, _, wq, _, wk, _, wv, _, _, _ = parts
        (u, r, h), (dq, dk, dv) = saved, dqkv
        dh = back(dq, wq)
        for other in back(dk, wk), back(dv, wv):
            kernels.residual_add(dh, dh, other, 1.0)
        return (norm_back(dy, dh, u, r, gain) if needed else None), (u, dh, h)

    def backward_weights(self, gradients, pending):
        u, dh, h, dq, dk, dv, a, dy = pending
        norm_weights(gradients[:2], u, dh)
        for i, (x, dz) in enumerate(((h, dq), (h, dk), (h, dv), (a, dy)), 1):
            kernels.dense_backward_weights(*gradients[2 * i : 2 * i + 2], rows(x), rows(dz))


@dataclass(frozen=True)
class MlpBlock(Layer):
    """y = x + W2 gelu(W1 h + b1) + b2, h = LN(x): the hidden layer is four times as wide.

    Parameters: gain and bias of the norm, then W1, b1, W2, b2. The initial W2 is `gain` times He's.
    """

    time: int
    width: int
    gain: float = 1.0

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.time, self.width

    outputs = inputs

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.width,), (self.width,), *mlp_shapes(self.width)

    @property
    def flops(self) -> int:
        return 4 * GROWTH * self.time * self.width**2

    def start(self, generator):
        return *_norm(self.width), *mlp_start(generator, self.width, self.gain)

    def forward(self, parts, x):
        gain, bias, *products = parts
        h, u, r = norm(x, gain, bias)
        y, inside = mlp(products, h)
        kernels.residual_add(y, x, y, 1.0)
        return y, (u, r, *inside)

    def backward_input(self, parts, saved, dy, needed=True):
        gain, _, *products = parts
        u, r, *inside = saved
        dh, pending = mlp_back(products, inside, dy)
        dx = norm_back(dy, dh, u, r, gain) if needed else None
        return dx, (u, dh, *pending)

    def backward_weights(self, gradients, pending):
        u, dh, *products = pending
        norm_weights(gradients[:2], u, dh)
        mlp_weights(gradients[2:], products)


@dataclass(frozen=True)
class Head(Layer):
    """y = W LN(x) + b: logits of the next token.

    W is not tied to the embedding, which is on another stage of a pipeline. Parameters: gain and bias of the norm, then
    W, b.
    """

    time: int
    width: int
    tokens: int

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.time, self.width

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.time, self.tokens

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        return (self.width,), (self.width,), (self.width, self.tokens), (self.tokens,)

    @property
    def flops(self) -> int:
        return 2 * self.time * self.width * self.tokens

    def start(self, generator):
        return *_norm(self.width), *_dense(generator, self.shapes[2], gain=0.1)

    def forward(self, parts, x):
        gain, bias, w, b = parts
        h, u, r = norm(x, gain, bias)
        return project(h, w, b), (u, r, h)

    def backward_input(self, parts, saved, dy, needed=True):
        gain, _, w, _ = parts
        u, r, h = saved
        dh = back(dy, w)
        dx = None
        if needed:
            dx = kernels.empty_like(dh)
            kernels.layer_norm_backward_input(rows(dx), rows(dh), rows(u), r, gain)
        return dx, (u, dh, h, dy)

    def backward_weights(self, gradients, pending):
        u, dh, h, dy = pending
        norm_weights(gradients[:2], u, dh)
        kernels.dense_backward_weights(*gradients[2:], rows(h), rows(dy))


def attend(heads: int, q, k, v) -> tuple:
    """Return (a, p), the outputs and weights of causal attention over whole samples; backward needs p."""
    a, p = kernels.empty_like(q), kernels.empty((len(q), heads, q.shape[1], q.shape[1]), q)
    kernels.attention_forward(a, p, q, k, v)
    return a, p


def attend_back(da, p, q, k, v) -> tuple:
    """Return (dq, dk, dv), the gradients of queries, keys and values."""
    dqkv = tuple(kernels.empty_like(x) for x in (q, k, v))
    kernels.attention_backward(*dqkv, da, p, q, k, v)
    return dqkv


# an MLP of one hidden layer: parameters W1, b1, W2, b2


def mlp_shapes(width: int) -> tuple[tuple[int, ...], ...]:
    hidden = GROWTH * width
    return (width, hidden), (hidden,), (hidden, width), (width,)


def mlp_start(generator: np.random.Generator, width: int, gain: float) -> list[np.ndarray]:
    """Return the initial parameters of an MLP block. W2 is He's initialisation times `gain`."""
    return _dense(generator, *mlp_shapes(width)[::2], gain=gain)


def mlp(parts, h) -> tuple:
    """Return (W2 gelu(W1 h + b1) + b2, what `mlp_back` needs)."""
    w1, b1, w2, b2 = parts
    z = project(h, w1, b1)
    a = kernels.empty_like(z)
    kernels.gelu_forward(a, z)
    return project(a, w2, b2), (h, z, a)


def mlp_back(parts, saved, dy) -> tuple:
    """Return (dh, pending): the gradient of h, and what `mlp_weights` needs."""
    w1, _, w2, _ = parts
    h, z, a = saved
    dz = back(dy, w2)
    kernels.gelu_backward(dz, dz, z, a)
    return back(dz, w1), (h, dz, a, dy)


def mlp_weights(gradients, pending) -> None:
    """Write the gradients of an MLP block's parameters to `gradients`."""
    h, dz, a, dy = pending
    kernels.dense_backward_weights(*gradients[:2], rows(h), rows(dz))
    kernels.dense_backward_weights(*gradients[2:], rows(a), rows(dy))


# operations on single positions treat the positions of all samples as rows


def rows(x):
    """Return x, (n, time, width), as a view of shape (n time, width)."""
    return x.reshape(-1, x.shape[-1])


def norm(x, gain, bias) -> tuple:
    """Return (y, u, r) of a layer norm; backward needs u and r."""
    y, u, r = kernels.empty_like(x), kernels.empty_like(x), kernels.empty(math.prod(x.shape[:-1]), x)
    kernels.layer_norm_forward(rows(y), rows(u), r, rows(x), gain, bias, EPS)
    return y, u, r


def norm_back(dy, dh, u, r, gain):
    """Return dx of a block: the gradient through its norm, plus dy, which comes along the residual path."""
    dx = kernels.empty_like(dy)
    kernels.layer_norm_backward_input(rows(dx), rows(dh), rows(u), r, gain)
    kernels.residual_add(dx, dx, dy, 1.0)
    return dx


def norm_weights(gradients, u, dh) -> None:
    """Write the gradients of a norm's gain and bias to `gradients`."""
    kernels.layer_norm_backward_weights(*gradients, rows(dh), rows(u))


def project(x, w, b):
    """Return x w + b at every position."""
    y = kernels.empty((*x.shape[:-1], w.shape[1]), x)
    kernels.dense_forward(rows(y), rows(x), w, b, False)
    return y


def back(dy, w):
    """Return dy w^T at every position."""
    dx = kernels.empty((*dy.shape[:-1], w.shape[0]), dy)
    kernels.dense_backward_input(rows(dx), rows(dy), w)
    return dx


def _norm(width: int) -> tuple[np.ndarray, np.ndarray]:
    return np.ones(width), np.zeros(width)


def _dense(generator: np.random.Generator, *shapes: tuple[int, int], gain: float) -> list[np.ndarray]:
    """Return the initial weights and biases of products, alternately. Weights have He's initialisation, the last ones
    times `gain`.
    """
    parts = []
    for shape in shapes:
        parts += he(generator, shape, shape[0], "none"), np.zeros(shape[1])
    parts[-2] *= gain
    return parts
