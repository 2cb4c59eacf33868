"""A pipeline that never waits, computed on one machine: one mini-batch at a time, on the weights it would see.

Stage s goes forward with mini-batch b after update b - hops (S-1-s) of its own, and backward after update b:

    met_s = w_s(b - hops (S-1-s))     v <- m v + g_s     w_s(b+1) = w_s(b) - lr v

    g_s: activations at met_s, errors through w_s(b)

Two hops give the order of Pétrowski and Chen, one hop 1F1B, none SGD. With vertical sync every stage reads the version
that the first one read. The weights equal the pipeline's, up to rounding.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from workloads.batches import Batches


class Update(NamedTuple):
    """What one mini-batch computed and changed in all stages. A vector, (d,), holds the vectors of all stages, one
    after the other.
    """

    samples: tuple
    loss: float
    met: np.ndarray  # weights that its forward read
    newest: np.ndarray  # weights that its backward reads without a stash, and that it changes
    g: np.ndarray  # the gradient that the update applies


def updates(
    workload, stages: int, rate: float | Sequence[float], *, steps: int, batch: int, seed: int, hops: int = 2,
    stash: bool = False, vertical: bool = False, momentum: float = 0.0, divided: bool = False,
) -> Iterator[Update]:  # fmt: skip
    """Yield the updates of a pipeline with this many stages, one for each mini-batch.

    `rate` is one learning rate for all stages, or a sequence with one for each. With a `stash`, the backward pass reads
    the same weights as the forward pass. `vertical`: all stages are as late as the first. `divided`: the learning rate
    of a stage is divided by its delay plus one.
    """
    parts = workload.split(stages)
    places = [slice(part.offset, part.offset + part.parameters) for part in parts]
    late = [hops * (stages - 1 - (0 if vertical else s)) for s in range(stages)]
    given = rate if isinstance(rate, Sequence) else [rate] * stages
    w = workload.start(seed)
    rates = np.empty_like(w)
    for place, one, d in zip(places, given, late, strict=True):
        rates[place] = one / (d + 1) if divided else one
    past, velocity, momentum = deque([w], maxlen=max(late) + 1), np.zeros_like(w), w.dtype.type(momentum)
    stream = Batches(workload.samples, batch, seed=seed, shuffle=workload.shuffle)
    for _ in range(steps):
        x, target = samples = workload.batch(next(stream))
        newest = past[-1]
        met = [past[max(0, len(past) - 1 - d)][place] for d, place in zip(late, places, strict=True)]
        saved = []
        for part, mine in zip(parts, met, strict=True):
            x, kept = part.forward(mine, x)
            saved.append(kept)
        loss, dy = parts[-1].loss(x, target)
        back, g = met if stash else [newest[place] for place in places], np.empty_like(w)
        for s in reversed(range(stages)):
            dy, _ = parts[s].backward(back[s], saved[s], dy, g[places[s]])
        yield Update(samples, float(loss), np.concatenate(met), newest, g)
        velocity = momentum * velocity + g
        past.append(newest - rates * velocity)
