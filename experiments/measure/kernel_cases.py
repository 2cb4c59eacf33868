"""Kernel cases: the arguments of every kernel at a given size, and the same operation in torch.

`KERNEL_CASES[name].arguments(rng, n)` builds the arguments of a call on about n numbers, float32, outputs first.
`KERNEL_CASES[name].peer(torch, *tensors)` is the operation in torch's eager mode, as one would usually write it, or
None if torch has none. "eager" is the kernel's own reference applied to tensors, where each of its operations is one
torch operation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernels.compression import pack
from kernels.layers import gelu_forward
from kernels.layers import route_forward as route_forward_kernel

WIDTH = 64  # columns of a table: classes, channels, features of a transformer
BATCH = 64  # samples that go through a dense layer
TIME = 64  # positions of a sequence
EXPERTS = 8
RUNS = 8  # pieces of a vector that share a scale
BLOCK = 256  # numbers that share an exponent
IMAGE = (16, 16)
FILTERS = (8, 16)  # channels in and out of a convolution
NONZEROS = 16  # numbers in a sparse row
ROWS = 16  # sparse rows of one call


@dataclass(frozen=True)
class KernelCase:
    """A kernel's arguments and its torch equivalent, which either writes its results to its tensors, as the kernel
    does, or returns them.
    """

    arguments: Callable[[np.random.Generator, int], tuple]
    peer: Callable | str | None = None


def draw(rng: np.random.Generator, *shapes) -> tuple:
    return tuple(rng.standard_normal(shape, np.float32) for shape in shapes)


def vectors(count: int, *scalars: Any) -> Callable:
    """Return a function that builds `count` vectors of n numbers, then scalars."""
    return lambda rng, n: (*draw(rng, *[n] * count), *scalars)


def tables(count: int, *scalars: Any) -> Callable:
    """Return a function that builds `count` tables of n numbers in rows of WIDTH, then scalars."""
    return lambda rng, n: (*draw(rng, *[(samples(n), WIDTH)] * count), *scalars)


def samples(n: int, each: int = WIDTH) -> int:
    """Return how many samples of `each` numbers contain about n numbers together."""
    return max(1, n // each)


def edges(n: int) -> np.ndarray:
    return np.linspace(0, n, RUNS + 1).astype(np.int64)


def positive(arguments: Callable, *which: int) -> Callable:
    """Return a function that builds `arguments` and squares those at the positions `which`."""

    def built(rng, n):
        args = list(arguments(rng, n))
        for place in which:
            args[place] = args[place] ** 2
        return tuple(args)

    return built


# vectors


def places(rng, n):
    return np.sort(rng.permutation(n)[: max(1, n // 100)]).astype(np.int32)  # one in a hundred is sent


def mean(rng, n):
    return (*draw(rng, n), *draw(rng, (8, n)))


def gather(rng, n):
    index = places(rng, n)
    return (*draw(rng, len(index), n), index)


def scatter_add(rng, n):
    index = places(rng, n)
    out, values = draw(rng, n, len(index))
    return out, index, values


def scatter_signs(rng, n):
    index = places(rng, n)
    return (*draw(rng, n), np.where(rng.random(len(index)) < 0.5, index, ~index), 0.25)


def select(rng, n):
    (v,) = draw(rng, n)
    room = max(1, n // 100)
    return np.zeros(room, np.float32), np.zeros(room, np.int32), v, np.sort(np.abs(v))[-room], 1


def row_top_k(rng, n):
    k = WIDTH // 16
    empty = np.empty((samples(n), k), np.float32), np.empty((samples(n), k), np.int32)
    return *empty, *draw(rng, (samples(n), WIDTH))


def norms(rng, n):
    return np.empty(RUNS, np.float32), *draw(rng, n), edges(n), 2


def two_means(rng, n):
    return np.empty(RUNS, np.float32), np.empty(RUNS, np.float32), *draw(rng, n), edges(n)


def choose(rng, n):
    packed = rng.integers(0, 256, pack.size(n, 1), np.uint8)
    return np.empty(n, np.float32), packed, *draw(rng, RUNS, RUNS), edges(n)


def stochastic_quantize(rng, n):
    return np.empty(n, np.uint8), *draw(rng, n), np.full(RUNS, 3.0, np.float32), edges(n), 4, 1234567


def stochastic_dequantize(rng, n):
    packed = np.empty(pack.size(n, 4), np.uint8)
    pack.cpu(packed, rng.integers(0, 9, n).astype(np.uint8), 4)
    return np.empty(n, np.float32), packed, *draw(rng, RUNS), edges(n), 4, 4


def low_rank(rng, n):
    side = max(1, math.isqrt(n))
    return draw(rng, (side, 4), (side, side), (side, 4))


# sparse rows


def rows(rng, n):
    """Return the arguments of a kernel on sparse rows with n coordinates: w, rows, target, indptr, index, values,
    penalty.
    """
    held = min(NONZEROS, n)
    index = np.concatenate([rng.permutation(n)[:held] for _ in range(ROWS)]).astype(np.int32)
    target = np.where(rng.random(ROWS) < 0.5, -1, 1).astype(np.float32)
    w, values, penalty = draw(rng, n, len(index), n)
    return w, np.arange(ROWS), target, held * np.arange(ROWS + 1), index, values, penalty**2


def hogwild(rng, n):
    w, *data = rows(rng, n)
    return w, np.zeros_like(w), *data, 1e-3, 1, False


def svrg(rng, n):
    w, *data = rows(rng, n)
    anchor, slope = draw(rng, n, n)
    return w, np.zeros_like(w), *data, anchor, 1e-3 * slope, 1e-3, False


def margins(rng, n):
    w, which, *data, _ = rows(rng, n)
    return np.empty(ROWS, np.float32), w, which, *data


def logistic(rng, n):
    w, *data = rows(rng, n)
    return np.empty_like(w), w, *data


# layers


def dense_forward(rng, n):
    side = max(1, math.isqrt(n))
    return *draw(rng, (BATCH, side), (BATCH, side), (side, side), side), True


def dense_backward_input(rng, n):
    side = max(1, math.isqrt(n))
    return draw(rng, (BATCH, side), (BATCH, side), (side, side))


def dense_backward_weights(rng, n):
    side = max(1, math.isqrt(n))
    return draw(rng, (side, side), side, (BATCH, side), (BATCH, side))


def images(rng, n, *channels):
    return draw(rng, *((samples(n, FILTERS[0] * math.prod(IMAGE)), c, *IMAGE) for c in channels))


def conv2d_forward(rng, n):
    into, out = FILTERS
    return *images(rng, n, out, into), *draw(rng, (out, into, 3, 3), out), True


def conv2d_backward_input(rng, n):
    into, out = FILTERS
    return *images(rng, n, into, out), *draw(rng, (out, into, 3, 3))


def conv2d_backward_weights(rng, n):
    into, out = FILTERS
    return *draw(rng, (out, into, 3, 3), out), *images(rng, n, into, out)


def max_pool_forward(rng, n):
    (x,) = images(rng, n, FILTERS[0])
    return np.empty((*x.shape[:2], *(side // 2 for side in IMAGE)), np.float32), x, 2


def max_pool_backward(rng, n):
    _, x, window = max_pool_forward(rng, n)
    y = np.maximum.reduce([x[:, :, u::2, v::2] for u in (0, 1) for v in (0, 1)])
    return np.empty_like(x), *draw(rng, y.shape), x, y, window


def batch_norm_forward(rng, n):
    c = FILTERS[0]
    return *images(rng, n, c)[:1], *draw(rng, c, c), *images(rng, n, c), *draw(rng, c, c), 1e-5, True


def batch_norm_apply(rng, n):
    y, mean, variance, x, *others = batch_norm_forward(rng, n)
    return y, x, mean, variance**2 + 1, *others


def batch_norm_backward_weights(rng, n):
    c = FILTERS[0]
    return *draw(rng, c, c), *images(rng, n, c, c), *draw(rng, c), draw(rng, c)[0] ** 2 + 1, 1e-5


def batch_norm_backward_input(rng, n):
    c = FILTERS[0]
    mean, variance, *others = draw(rng, c, c, c, c, c)
    return *images(rng, n, c, c, c), mean, variance**2 + 1, *others, 1e-5


def sequences(n: int) -> int:
    return samples(n, TIME * WIDTH)


def embedding_forward(rng, n):
    shape = (sequences(n), TIME)
    return *draw(rng, (*shape, WIDTH)), rng.integers(0, 256, shape), *draw(rng, (256, WIDTH), (TIME, WIDTH))


def embedding_backward_weights(rng, n):
    shape = (sequences(n), TIME)
    return *draw(rng, (256, WIDTH), (TIME, WIDTH)), rng.integers(0, 256, shape), *draw(rng, (*shape, WIDTH))


def attention_forward(rng, n):
    whole, p = (sequences(n), TIME, WIDTH), (sequences(n), 4, TIME, TIME)
    y, q, k, v = draw(rng, *[whole] * 4)
    return y, np.empty(p, np.float32), q, k, v


def attention_backward(rng, n):
    whole, p = (sequences(n), TIME, WIDTH), (sequences(n), 4, TIME, TIME)
    chances = np.tril(rng.random(p, np.float32))
    dq, dk, dv, dy, q, k, v = draw(rng, *[whole] * 7)
    return dq, dk, dv, dy, chances / chances.sum(3, keepdims=True), q, k, v


def attention_block_forward(rng, n):
    """Return arguments in which every query sees all keys of an earlier block of the same length."""
    y, q, k, v = draw(rng, *[(sequences(n), TIME, WIDTH)] * 4)
    (total,) = draw(rng, (sequences(n), 4, TIME))
    return y, total, q, k, v, np.full(TIME, TIME), float(TIME**2)


def attention_block_backward(rng, n):
    y, total, *rest = attention_block_forward(rng, n)
    return *draw(rng, *[y.shape] * 4), y, total + 10, *rest


def layer_norm_forward(rng, n):
    y, u, x = draw(rng, *[(samples(n), WIDTH)] * 3)
    return y, u, np.empty(len(x), np.float32), x, *draw(rng, WIDTH, WIDTH), 1e-5


def layer_norm_backward_input(rng, n):
    dx, dy, u = draw(rng, *[(samples(n), WIDTH)] * 3)
    return dx, dy, u, np.ones(len(u), np.float32), *draw(rng, WIDTH)


def layer_norm_backward_weights(rng, n):
    return draw(rng, WIDTH, WIDTH, *[(samples(n), WIDTH)] * 2)


def gelu_backward(rng, n):
    dz, dy, z = draw(rng, *[(samples(n), WIDTH)] * 3)
    y = np.empty_like(z)
    gelu_forward.reference(y, z)
    return dz, dy, z, y


def softmax_cross_entropy(rng, n):
    dz, z = draw(rng, *[(samples(n), WIDTH)] * 2)
    return dz, z, rng.integers(0, WIDTH, len(z))


def bias_forward(rng, n):
    return *draw(rng, *[(samples(n), WIDTH)] * 2, WIDTH), True


def row_largest(rng, n):
    (z,) = draw(rng, (samples(n), WIDTH))
    return np.empty(len(z), np.float32), z


def vocabulary_sums(rng, n):
    largest, z = row_largest(rng, n)
    return np.empty((2, len(z)), np.float32), z, np.full_like(largest, 5), rng.integers(0, 2 * WIDTH, len(z)), 0


def vocabulary_cross_entropy(rng, n):
    sums, z, largest, target, first = vocabulary_sums(rng, n)
    return np.empty_like(z), z, largest, np.ones_like(sums), target, first


def route_forward(rng, n):
    z, p = draw(rng, *[(samples(n, EXPERTS), EXPERTS)] * 2)
    return p, *draw(rng, (len(z), 2)), np.zeros((len(z), 2), np.int64), z


def route_backward(rng, n):
    p, weight, chosen, z = route_forward(rng, n)
    route_forward_kernel.reference(p, weight, chosen, z)
    return z, *draw(rng, weight.shape), p, weight, chosen, np.full(EXPERTS, 1 / EXPERTS, np.float32), 0.01


def dispatch_rows(rng, n):
    out, x = draw(rng, *[(samples(n), WIDTH)] * 2)
    return out, x, rng.permutation(len(x))[:, None]  # one expert for each token


def combine_rows(rng, n):
    rows, x, place = dispatch_rows(rng, n)
    return np.empty_like(x), x, rows, place, *draw(rng, place.shape)


def combine_rows_backward(rng, n):
    drows, dy, rows, place, weight = combine_rows(rng, n)
    return drows, np.empty_like(weight), dy, rows, place, weight


def quadratic(rng, n):
    g, w, points, curvature = draw(rng, n, n, (8, n), n)
    return g, w, points, curvature**2


# the same operations in torch


def torch_adam(torch, w, m, v, g, t, rate, b1, b2, eps):
    m.lerp_(g, 1 - b1)
    v.mul_(b2).addcmul_(g, g, value=1 - b2)
    w.addcdiv_(m, (v.sqrt() / math.sqrt(1 - b2**t)).add_(eps), value=-rate / (1 - b1**t))


def torch_nesterov(torch, w, v, g, rate, momentum):
    v.mul_(momentum).add_(g)
    w.add_(torch.add(g, v, alpha=momentum), alpha=-rate)


def torch_block_momentum(torch, start, model, step, drift, momentum, rate, stride, look):
    step.mul_(momentum).add_(drift, alpha=rate)
    model.add_(step, alpha=stride)
    torch.add(model, step, alpha=look, out=start)


def torch_clip(torch, g, most):
    g.mul_(torch.clamp(most / torch.linalg.vector_norm(g), max=1.0))


def torch_softmax_cross_entropy(torch, dz, z, target):
    log_p = torch.log_softmax(z, 1)
    torch.exp(log_p, out=dz)
    dz[torch.arange(len(z), device=z.device), target] -= 1
    dz.div_(len(z))
    torch.nn.functional.nll_loss(log_p, target)


def torch_squared_error(torch, dy, y, t):
    torch.sub(y, t, out=dy)
    dy.square().sum()
    dy.div_(len(y))


def torch_convolution_gradient(torch, dw, db, x, dz):
    return torch.nn.grad.conv2d_weight(x, dw.shape, dz, padding=1), dz.sum((0, 2, 3))


def torch_attention(torch, y, p, q, k, v):
    heads = (x.unflatten(2, (4, -1)).transpose(1, 2) for x in (q, k, v))
    done = torch.nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
    return (done.transpose(1, 2).flatten(2),)


def torch_embedding_gradient(torch, dtable, dplaces, x, dy):
    dtable.zero_().index_add_(0, x.flatten(), dy.flatten(0, 1))
    torch.sum(dy, 0, out=dplaces)


EAGER = "eager"

KERNEL_CASES: dict[str, KernelCase] = {
    # updates
    "sgd": KernelCase(vectors(2, 1e-3), lambda torch, w, g, rate: w.add_(g, alpha=-rate)),
    "sign_sgd": KernelCase(
        vectors(2, 1e-3), lambda torch, w, g, rate: w.add_(torch.sign(g), alpha=-rate)
    ),
    "momentum": KernelCase(
        vectors(3, 1e-3, 0.9), lambda torch, w, v, g, rate, mu: w.add_(v.mul_(mu).add_(g), alpha=-rate)
    ),
    "nesterov": KernelCase(vectors(3, 1e-3, 0.9), torch_nesterov),
    "sutskever": KernelCase(vectors(4, 1e-3, 0.9), EAGER),
    "adagrad": KernelCase(
        positive(vectors(3, 1e-3, 1e-8), 1),
        lambda torch, w, s, g, rate, eps: w.addcdiv_(g, s.addcmul_(g, g).sqrt().add_(eps), value=-rate),
    ),
    "rmsprop": KernelCase(
        positive(vectors(3, 1e-3, 0.99, 1e-8, 0.0), 1),
        lambda torch, w, s, g, rate, a, eps, inside: w.addcdiv_(
            g, s.mul_(a).addcmul_(g, g, value=1 - a).sqrt().add_(eps), value=-rate
        ),
    ),
    "rmsprop_blend": KernelCase(positive(vectors(4, 1e-3, 0.9, 0.99, 0.3, 0.02, 1e-8), 2)),
    "adam": KernelCase(positive(vectors(4, 3, 1e-3, 0.9, 0.999, 1e-8), 2), torch_adam),
    # averaging
    "ema": KernelCase(vectors(2, 0.3), lambda torch, z, w, weight: z.lerp_(w, weight)),
    "elastic": KernelCase(vectors(3, 0.2), lambda torch, p, c, x, pull: c.add_(torch.sub(x, c, out=p).mul_(pull))),
    "mean": KernelCase(mean, lambda torch, out, rows: torch.mean(rows, 0, out=out)),
    "trimmed_mean": KernelCase(
        lambda *given: (*mean(*given), 1),
        lambda torch, out, rows, cut: torch.mean(torch.sort(rows, 0)[0][cut : len(rows) - cut], 0, out=out),
    ),
    "add": KernelCase(vectors(2), lambda torch, out, x: out.add_(x)),
    "scale": KernelCase(vectors(1, 1.0), lambda torch, x, factor: x.mul_(factor)),
    "mix": KernelCase(vectors(2, 0.5, 0.5), lambda torch, x, y, a, b: x.mul_(a).add_(y, alpha=b)),
    "squared_norm": KernelCase(vectors(1), lambda torch, x: (torch.dot(x, x),)),
    "displacement": KernelCase(vectors(3, 0.3), lambda torch, p, x, y, factor: torch.sub(x, y, out=p).mul_(factor)),
    "block_momentum": KernelCase(vectors(4, 0.9, 0.1, 1e-3, 0.4), torch_block_momentum),
    # compression
    "residual": KernelCase(vectors(2), lambda torch, v, q: v.sub_(q)),
    "kth_largest": KernelCase(
        lambda rng, n: (*draw(rng, n), max(1, n // 100)),
        lambda torch, v, k: (torch.kthvalue(v.abs(), len(v) - k + 1).values,),
    ),
    "select": KernelCase(select),
    "row_top_k": KernelCase(
        row_top_k, lambda torch, values, index, x: (torch.gather(x, 1, torch.topk(x.abs(), index.shape[1])[1]),)
    ),
    "gather": KernelCase(gather, lambda torch, out, v, index: torch.index_select(v, 0, index, out=out)),
    "scatter_add": KernelCase(scatter_add, lambda torch, out, index, values: out.index_add_(0, index, values)),
    "threshold": KernelCase(lambda rng, n: (np.zeros(n, np.int32), *draw(rng, n), 2.5)),
    "scatter_signs": KernelCase(scatter_signs),
    "correct": KernelCase(vectors(3, 0.9, False), lambda torch, v, u, g, m, ahead: v.add_(u.mul_(m).add_(g))),
    "forget": KernelCase(
        lambda rng, n: (*draw(rng, n), places(rng, n)), lambda torch, v, index: v.index_fill_(0, index.long(), 0)
    ),
    "clip": KernelCase(vectors(1, 0.3), torch_clip),
    "norms": KernelCase(norms),
    "two_means": KernelCase(two_means),
    "choose": KernelCase(choose),
    "pack": KernelCase(
        lambda rng, n: (np.empty(pack.size(n, 3), np.uint8), rng.integers(0, 8, n).astype(np.uint8), 3)
    ),
    "stochastic_quantize": KernelCase(stochastic_quantize),
    "stochastic_dequantize": KernelCase(stochastic_dequantize),
    "majority_vote": KernelCase(lambda rng, n: (np.empty(n, np.uint8), rng.integers(0, 256, (8, n), np.uint8), 7)),
    "to_fixed": KernelCase(
        lambda rng, n: (np.empty(n, np.int8), np.empty(-(-n // BLOCK), np.int8), *draw(rng, n), BLOCK)
    ),
    "from_fixed": KernelCase(
        lambda rng, n: (
            np.empty(n, np.float32),
            rng.integers(-127, 128, n).astype(np.int8),
            rng.integers(-9, 9, -(-n // BLOCK)).astype(np.int8),
            BLOCK,
        )
    ),
    "to_bf16": KernelCase(
        lambda rng, n: (np.empty(n, np.uint16), *draw(rng, n)),
        lambda torch, codes, v: codes.view(torch.bfloat16).copy_(v),
    ),
    "from_bf16": KernelCase(
        lambda rng, n: (np.empty(n, np.float32), (draw(rng, n)[0].view(np.uint32) >> 16).astype(np.uint16)),
        lambda torch, out, codes: out.copy_(codes.view(torch.bfloat16)),
    ),
    "matmul": KernelCase(low_rank, lambda torch, c, a, b: torch.mm(a, b, out=c)),
    "gram_schmidt": KernelCase(lambda rng, n: (*draw(rng, (samples(n, 4), 4)), 1e-5)),
    # vectors
    "dot": KernelCase(vectors(2), lambda torch, x, y: (torch.dot(x, y),)),
    "round_to": KernelCase(
        vectors(2, 8, -126, -1), lambda torch, out, v, *_: out.copy_(v.to(torch.bfloat16).to(torch.float32))
    ),
    # sparse
    "margins": KernelCase(margins),
    "logistic": KernelCase(logistic),
    "hogwild": KernelCase(hogwild),
    "svrg": KernelCase(svrg),
    "descend_atomic": KernelCase(vectors(2, 1e-3)),
    # staleness
    "delay_compensated": KernelCase(vectors(3, 1e-3, 0.04), EAGER),
    "delay_compensated_adaptive": KernelCase(positive(vectors(4, 1e-3, 2.0, 0.95, 1e-7), 1)),
    "distance_scaled": KernelCase(vectors(3, 1e-3)),
    "adam_ahead": KernelCase(positive(vectors(4, 3, 2, 1e-3, 0.9, 0.999, 1e-8), 3)),
    # layers
    "dense_forward": KernelCase(
        dense_forward, lambda torch, y, x, w, b, relu: torch.addmm(b, x, w, out=y).relu_()
    ),
    "dense_backward_input": KernelCase(dense_backward_input, lambda torch, dx, dz, w: torch.mm(dz, w.T, out=dx)),
    "dense_backward_weights": KernelCase(
        dense_backward_weights,
        lambda torch, dw, db, x, dz: (torch.mm(x.T, dz, out=dw), torch.sum(dz, 0, out=db)),
    ),
    "relu_backward": KernelCase(tables(3), lambda torch, dz, dy, y: (torch.ops.aten.threshold_backward(dy, y, 0),)),
    "tanh_forward": KernelCase(tables(2), lambda torch, y, z: torch.tanh(z, out=y)),
    "tanh_backward": KernelCase(tables(3), lambda torch, dz, dy, y: (torch.ops.aten.tanh_backward(dy, y),)),
    "residual_add": KernelCase(tables(3, 0.3), lambda torch, y, x, a, scale: torch.add(x, a, alpha=scale, out=y)),
    "conv2d_forward": KernelCase(
        conv2d_forward,
        lambda torch, y, x, w, b, relu: (torch.nn.functional.conv2d(x, w, b, padding=1).relu_(),),
    ),
    "conv2d_backward_input": KernelCase(
        conv2d_backward_input,
        lambda torch, dx, dz, w: (torch.nn.grad.conv2d_input(dx.shape, w, dz, padding=1),),
    ),
    "conv2d_backward_weights": KernelCase(conv2d_backward_weights, torch_convolution_gradient),
    "max_pool_forward": KernelCase(
        max_pool_forward, lambda torch, y, x, window: (torch.nn.functional.max_pool2d(x, window),)
    ),
    "max_pool_backward": KernelCase(max_pool_backward),
    "batch_norm_forward": KernelCase(
        batch_norm_forward,
        lambda torch, y, m, v, x, gain, bias, eps, relu: (
            torch.nn.functional.batch_norm(x, None, None, gain, bias, True, 0.0, eps).relu_(),
        ),
    ),
    "batch_norm_apply": KernelCase(
        batch_norm_apply,
        lambda torch, y, x, m, v, gain, bias, eps, relu: (
            torch.nn.functional.batch_norm(x, m, v, gain, bias, False, 0.0, eps).relu_(),
        ),
    ),
    "batch_norm_backward_weights": KernelCase(batch_norm_backward_weights),
    "batch_norm_backward_input": KernelCase(batch_norm_backward_input),
    "embedding_forward": KernelCase(
        embedding_forward,
        lambda torch, y, x, table, places: (torch.nn.functional.embedding(x, table).add_(places),),
    ),
    "embedding_backward_weights": KernelCase(embedding_backward_weights, torch_embedding_gradient),
    "attention_forward": KernelCase(attention_forward, torch_attention),
    "attention_backward": KernelCase(attention_backward),
    "attention_block_forward": KernelCase(attention_block_forward),
    "attention_block_backward": KernelCase(attention_block_backward),
    "layer_norm_forward": KernelCase(
        layer_norm_forward,
        lambda torch, y, u, r, x, gain, bias, eps: (torch.nn.functional.layer_norm(x, (WIDTH,), gain, bias, eps),),
    ),
    "layer_norm_backward_input": KernelCase(layer_norm_backward_input),
    "layer_norm_backward_weights": KernelCase(
        layer_norm_backward_weights,
        lambda torch, dgain, dbias, dy, u: (torch.sum(dy * u, 0, out=dgain), torch.sum(dy, 0, out=dbias)),
    ),
    "gelu_forward": KernelCase(
        tables(2), lambda torch, y, z: (torch.nn.functional.gelu(z, approximate="tanh"),)
    ),
    "gelu_backward": KernelCase(
        gelu_backward, lambda torch, dz, dy, z, y: (torch.ops.aten.gelu_backward(dy, z, approximate="tanh"),)
    ),
    "softmax_cross_entropy": KernelCase(softmax_cross_entropy, torch_softmax_cross_entropy),
    "squared_error": KernelCase(tables(3), torch_squared_error),
    "quadratic": KernelCase(quadratic),
    "bias_forward": KernelCase(bias_forward, lambda torch, y, z, b, relu: torch.add(z, b, out=y).relu_()),
    "row_largest": KernelCase(row_largest, lambda torch, largest, z: torch.amax(z, 1, out=largest)),
    "vocabulary_sums": KernelCase(vocabulary_sums),
    "vocabulary_cross_entropy": KernelCase(vocabulary_cross_entropy),
    "route_forward": KernelCase(route_forward),
    "route_backward": KernelCase(route_backward),
    "dispatch_rows": KernelCase(
        dispatch_rows, lambda torch, out, x, place: out.index_copy_(0, place.flatten(), x)
    ),
    "combine_rows": KernelCase(
        combine_rows, lambda torch, y, x, rows, place, weight: torch.add(x, rows[place[:, 0]] * weight, out=y)
    ),
    "combine_rows_backward": KernelCase(combine_rows_backward),
}  # fmt: skip
