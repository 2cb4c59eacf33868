"""Answers to the quiz on overlap, computed by the simulator or by closed forms that it is tested against."""

import math

from lessons.overlap.experiments import BACKWARD, DEEP, FIFO, NONE, URGENT, WHOLE, step
from theory.delay import largest_rate

PASSES = 10, 20  # ms of a forward and of a backward pass


def most(run, sum: int) -> float:
    """Return the largest speed-up of a step if `sum` ms of all-reduce overlap with the backward pass."""
    forward, backward = PASSES
    return (forward + backward + sum) / (forward + max(backward, sum))


def by_layer(run, latency: int, speed: str) -> str:
    """Return whether sending 18 layers one by one makes a step "faster", "slower" or the "same", compared with one
    message.

    `latency` is in microseconds.
    """
    where = DEEP | {"latency": 1e-6 * latency, "bandwidth": 1e7 if "ten megabytes" in speed else 1e9}
    ratio = step(run(**BACKWARD, **where)) / step(run(**NONE, **where))
    return "same" if abs(ratio - 1) < 0.05 else "faster" if ratio < 1 else "slower"


def bucket(run, latency: int) -> str:
    """Return which of three bucket sizes is fastest: a "layer", "some" layers or "all".

    `latency` is in microseconds.
    """
    where = DEEP | {"latency": 1e-6 * latency, "bandwidth": 1e9}
    sizes = {"layer": 0, "some": 150_000, "all": WHOLE}
    took = {name: step(run(**BACKWARD | {"bucket_bytes": nbytes}, **where)) for name, nbytes in sizes.items()}
    return min(took, key=took.get)


def fifo(run, order: str) -> str:
    """Return how much of the step time is saved if all-reduces overlap with the next forward pass, too: "nothing",
    "some" or "half".

    The comparison is with overlap with back-propagation alone.
    """
    where = DEEP | {"latency": 0.0, "bandwidth": 6e8}
    more = FIFO if order == "as they become ready" else URGENT | {"slice": 1 << 20}
    before, after = (step(run(**how, **where)) for how in (BACKWARD, more))
    return "nothing" if after > 0.99 * before else "some" if after > before / 2 else "half"


def largest(run, delay: int) -> float:
    """Return the largest stable learning rate with gradients `delay` updates late, as a percentage of the largest
    without delay.
    """
    return 100 * largest_rate(delay) / largest_rate(0)


def late(run, sum: float, rate: str) -> str:
    """Return whether training with a delay of one step finishes "sooner", "later" or at the same time ("even").

    The learning rate is the largest that training tolerates, or far below it, as `rate` says. `sum` is the time of the
    all-reduce divided by that of computing. On the bowl, half the learning rate takes twice the steps.
    """
    steps = 100 / largest(run, 1) if "largest" in rate else 1.0
    before, after = 1 + sum, max(1, sum)
    ratio = steps * after / before
    return "even" if math.isclose(ratio, 1) else "later" if ratio > 1 else "sooner"
