"""Choose the samples over which a batch norm normalises: the mini-batch of one worker, or the mini-batches of all.

A layer gets from `GATHER` a function that exchanges a message with the same layer on all other workers. There is no
such function if each worker normalises over its own mini-batch, which is the default, and during evaluation.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

GATHER: ContextVar[Callable[[Any], list] | None] = ContextVar("lockstep_gather", default=None)
"""Takes a message and returns those of all workers, by rank, like `comm.all_gather`. Every worker must call it."""


@contextmanager
def use_gather(gather: Callable[[Any], list] | None) -> Iterator[None]:
    """Make batch norms in the block normalise over the mini-batches of all workers that `gather` reaches.

    If `gather` is None, they normalise over the worker's own mini-batch.
    """
    token = GATHER.set(gather)
    try:
        yield
    finally:
        GATHER.reset(token)


def pool(gather: Callable[[Any], list], mean, variance) -> tuple:
    """Return the mean and variance over the batches of all workers, shape (c,) each. `mean` and `variance` are this
    worker's; all batches have the same size.

    Workers' values are added in the order of ranks, so all workers get the same bits. The variance is summed from
    distances to the mean, which keeps its digits if the mean is far from zero.
    """
    parts = gather((mean, variance))
    m = sum(mean for mean, _ in parts) / len(parts)
    return m, sum(variance + (mean - m) ** 2 for mean, variance in parts) / len(parts)


def average(gather: Callable[[Any], list], *vectors) -> tuple:
    """Return the mean of each of these vectors over all workers. Values are added in the order of ranks."""
    parts = gather(vectors)
    return tuple(sum(values) / len(parts) for values in zip(*parts, strict=True))
