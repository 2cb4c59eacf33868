"""A pipeline that never waits, computed on one machine: mini-batch after mini-batch, on the weights that it would meet.

Stage s goes forward with mini-batch b after update b - hops (S-1-s) of its own, and backward after update b:

    met_s = w_s(b - hops (S-1-s))     w_s(b+1) = w_s(b) - lr g_s     g_s: activations at met_s, errors through w_s(b)

With two hops it is Pétrowski's order, with one 1F1B, with none SGD. Weights are those of the pipeline, to rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from workloads.batches import Batches


class Update(NamedTuple):
    """One mini-batch through all stages; vectors are the stages', one after the other, (d,)."""

    samples: tuple
    met: np.ndarray  # weights that its forward read
    newest: np.ndarray  # weights that its backward reads, without a stash, and that it changes
    g: np.ndarray  # the direction of its update


def updates(
    workload, stages: int, rate: float, *, steps: int, batch: int, seed: int, hops: int = 2, stash: bool = False
) -> Iterator[Update]:
    """Yield the updates of a pipeline of `stages`, without momentum; with a `stash`, both passes read what it met."""
    parts = workload.split(stages)
    weights = [part.start(seed) for part in parts]
    versions = [deque([w], maxlen=hops * (stages - 1 - s) + 1) for s, w in enumerate(weights)]  # oldest first
    stream = Batches(workload.samples, batch, seed=seed, shuffle=workload.shuffle)
    for _ in range(steps):
        x, target = samples = workload.batch(next(stream))
        met, newest, saved, gradients = [v[0] for v in versions], [v[-1] for v in versions], [], []
        for part, w in zip(parts, met, strict=True):
            x, kept = part.forward(w, x)
            saved.append(kept)
        _, dy = parts[-1].loss(x, target)
        back = met if stash else newest
        for part, w, kept in zip(reversed(parts), reversed(back), reversed(saved), strict=True):
            dy, g = part.backward(w, kept, dy)
            gradients.insert(0, g)
        yield Update(samples, *map(np.concatenate, (met, newest, gradients)))
        for mine, g in zip(versions, gradients, strict=True):
            mine.append(mine[-1] - mine[-1].dtype.type(rate) * g)
