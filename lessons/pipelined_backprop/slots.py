"""A pipeline that never waits, computed on one machine: one mini-batch at a time, on the weights it would meet.

Stage s goes forward with mini-batch b after update b - hops (S-1-s) of its own, and backward after update b:

    met_s = w_s(b - hops (S-1-s))     v <- m v + g_s     w_s(b+1) = w_s(b) - lr v

    g_s: activations at met_s, errors through w_s(b)

Two hops give the order of Pétrowski and Chen, one hop 1F1B, none SGD. With vertical sync every stage reads the version
that the first one met. Weights are the pipeline's, up to rounding.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from workloads.batches import Batches


class Update(NamedTuple):
    """One mini-batch through all stages; vectors concatenate those of the stages, (d,)."""

    samples: tuple
    loss: float
    met: np.ndarray  # weights that its forward read
    newest: np.ndarray  # weights that its backward reads without a stash, and that it changes
    g: np.ndarray  # the gradient that it is used as


def updates(
    workload, stages: int, rate: float | Sequence[float], *, steps: int, batch: int, seed: int, hops: int = 2,
    stash: bool = False, vertical: bool = False, momentum: float = 0.0, divided: bool = False,
) -> Iterator[Update]:  # fmt: skip
    """Yield the updates of a pipeline of `stages`.

    `rate` is that of all stages, or has one for each. With a `stash` both passes read what the forward met. `vertical`:
    all stages are as late as the first. `divided`: the rate of a stage is divided by its delay plus one.
    """
    parts = workload.split(stages)
    late = [hops * (stages - 1 - (0 if vertical else s)) for s in range(stages)]
    versions = [deque([part.start(seed)], maxlen=d + 1) for part, d in zip(parts, late, strict=True)]  # oldest first
    given = rate if isinstance(rate, Sequence) else [rate] * stages
    rates = [one / (d + 1) if divided else one for one, d in zip(given, late, strict=True)]
    velocities = [0 * mine[0] for mine in versions]
    stream = Batches(workload.samples, batch, seed=seed, shuffle=workload.shuffle)
    for _ in range(steps):
        x, target = samples = workload.batch(next(stream))
        met, newest, saved, gradients = [v[0] for v in versions], [v[-1] for v in versions], [], []
        for part, w in zip(parts, met, strict=True):
            x, kept = part.forward(w, x)
            saved.append(kept)
        loss, dy = parts[-1].loss(x, target)
        back = met if stash else newest
        for part, w, kept in zip(reversed(parts), reversed(back), reversed(saved), strict=True):
            dy, g = part.backward(w, kept, dy)
            gradients.insert(0, g)
        yield Update(samples, float(loss), *map(np.concatenate, (met, newest, gradients)))
        for s, (mine, g) in enumerate(zip(versions, gradients, strict=True)):
            velocities[s] = mine[-1].dtype.type(momentum) * velocities[s] + g
            mine.append(mine[-1] - mine[-1].dtype.type(rates[s]) * velocities[s])
