"""What tests of codecs share: gradients that meet on a simulated cluster, and codes made by one rank alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.compression import attach, find
from cluster import simulated


def layout(*shapes: tuple[int, ...]) -> tuple:
    """Tensors of these shapes, one after the other."""
    ends = np.cumsum([0, *(int(np.prod(shape)) for shape in shapes)]).tolist()
    return tuple((slice(a, b), shape) for a, b, shape in zip(ends, ends[1:], shapes, strict=False))


def draw(seed: int, n: int, dtype=np.float64) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(dtype)


def codec(name: str, tensors, rank: int = 0, size: int = 1, seed: int = 0, **settings):
    module = find(name)
    return module.Codec(module.Settings(**settings), tensors, rank, size, seed)


def told(one, v: np.ndarray) -> np.ndarray:
    """What a message says of v."""
    out = np.empty_like(v)
    one.decode(one.encode(v), out)
    return out


def expect_right_in_the_mean(q: np.ndarray, v: np.ndarray, unit: float) -> None:
    """Throws q, (throws, d), of v rounded by chance to multiples of `unit`: no number is off by 4 standard errors.

    Neither are their mean and the mean of their squares. Numbers that hardly ever round up or down are left out.
    """
    fraction = np.abs(v) / unit % 1
    variance = fraction * (1 - fraction)
    often = len(q) * variance > 25
    off = ((q.mean(0) - v) / unit)[often] / np.sqrt(variance[often] / len(q))
    many = often.sum()
    assert many > 0.8 * len(v)
    assert np.abs(off).max() < 4.5  # the largest of a thousand
    assert abs(off.mean()) < 4 / np.sqrt(many) and abs((off * np.sign(v[often])).mean()) < 4 / np.sqrt(many)
    assert abs(np.square(off).mean() - 1) < 4 * np.sqrt(2 / many)


@dataclass
class Meeting:
    """What came of it, and what is left."""

    means: np.ndarray  # of every step, (steps, d)
    kept: np.ndarray | None  # by each rank, (N, d)
    owed: np.ndarray | None  # by the owners of the parts, (d,)
    sent: np.ndarray  # bytes, by each rank, (N,)


def meet(name: str, gradients, tensors, seed: int = 0, **settings) -> Meeting:
    """Average `gradients`, (N, steps, d), step by step among N ranks."""
    module = find(name)

    def program(comm):
        compressed = attach(comm, find(name), module.Settings(**settings), tensors, seed)
        means = []
        for g in gradients[comm.rank]:
            means.append(compressed.all_reduce(g.copy(), op="mean"))
        exchange = compressed._feedback
        owned = getattr(exchange.codec, "by_part", None)
        return np.array(means), exchange.error, owned and owned.error, exchange.codec

    outcome = simulated.run(program, len(gradients))
    if outcome.error:
        raise outcome.error
    assert not outcome.notes
    means, kept, owed, (one, *_) = zip(*outcome.results, strict=True)
    assert all(np.array_equal(means[0], other, equal_nan=True) for other in means)
    owed = None if owed[0] is None else np.concatenate(owed)
    if owed is not None and hasattr(one, "by_row"):  # its parts are those of the columns, one after the other
        one.by_row(owed.copy(), owed)
    return Meeting(means[0], None if kept[0] is None else np.array(kept), owed, outcome.trace().traffic().sum(1))


def descend(name: str, centres: np.ndarray, steps: int, rate: float, tensors=None, **settings) -> np.ndarray:
    """Where gradient descent on the mean of |w - c_i|^2 / 2 ends, rank i holding c_i, from 0."""
    module = find(name)

    def program(comm):
        compressed = attach(comm, find(name), module.Settings(**settings), tensors or layout(centres[0].shape), 0)
        w = np.zeros_like(centres[0])
        for _ in range(steps):
            w -= rate * compressed.all_reduce(w - centres[comm.rank], op="mean")
        return w

    outcome = simulated.run(program, len(centres))
    if outcome.error:
        raise outcome.error
    return outcome.results[0]
