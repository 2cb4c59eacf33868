"""Schedules of the learning rate, batch size and momentum, as pure functions of training time.

Time is counted in steps or in epochs (passes over the data, with fractions), never in seconds.
"""

from bisect import bisect_right
from math import exp
from typing import Literal

WarmUp = Literal["gradual", "constant", "none"]
Growth = Literal["decay", "grow", "hybrid", "larger_rate", "larger_momentum"]


def linear_scaling(rate: float, batch: float, base_batch: float) -> float:
    """Return k times the learning rate for k times the batch size (Goyal et al.).

    One large step then moves about as far as k small ones.

    >>> linear_scaling(0.1, 8192, 256)
    3.2
    """
    return rate * (batch / base_batch)


def root_scaling(rate: float, batch: float, base_batch: float) -> float:
    """Return √k times the learning rate for k times the batch size (You et al.).

    The noise in a step then stays the same.

    >>> root_scaling(0.1, 1024, 256)
    0.2
    """
    return rate * (batch / base_batch) ** 0.5


def warm_up_rate(base: float, peak: float, step: float, length: float, kind: WarmUp = "gradual") -> float:
    """Return the learning rate of a warm-up from `base` to `peak` in `length` steps (Goyal et al.).

    From then on, it is exactly `peak`.

    gradual: linear in the steps. constant: base, then peak. none: peak at once.

    >>> [warm_up_rate(0.5, 2.5, step, 4) for step in range(6)]
    [0.5, 1.0, 1.5, 2.0, 2.5, 2.5]
    """
    if kind == "none" or step >= length:
        return peak
    return base if kind == "constant" else base + (peak - base) * step / length


def milestones_passed(epoch: float, epochs: tuple[float, ...]) -> int:
    """Return how many of the milestones `epochs` have been reached.

    >>> [milestones_passed(epoch, (30, 60, 80)) for epoch in (0, 29.9, 30, 85)]
    [0, 0, 1, 3]
    """
    return bisect_right(epochs, epoch)


def slow_start(epoch: float, length: float = 90) -> float:
    """Return the fraction of the full learning rate that Akiba et al. use after their warm-up.

    It is 1/2 for the first 40 of 90 epochs, and then less.

    >>> [slow_start(epoch) for epoch in (0, 40, 70, 85)]
    [0.5, 0.075, 0.01, 0.001]
    """
    return (0.5, 0.075, 0.01, 0.001)[milestones_passed(90 * epoch / length, (40, 70, 85))]


def sgd_share(epoch: float, centre: float = 10, period: float = 5) -> float:
    """Return the share of SGD in Akiba et al.'s transition from RMSprop to SGD.

    It is 1/2 at `centre`, and 1 from half a `period` after that.

        exp(2 (e - c) / p) / 2     until c
        1/2 + (e - c) / p          until c + p/2, with the same slope at c; the paper's notes have twice this slope,
                                   which would pass 1

    >>> [round(sgd_share(epoch), 5) for epoch in (0, 5, 10, 11, 12, 12.5)]
    [0.00916, 0.06767, 0.5, 0.7, 0.9, 1.0]
    """
    since = epoch - centre
    if since >= period / 2:
        return 1.0
    if since >= 0:
        return 0.5 + since / period
    return exp(2 * since / period) / 2 if period else 0.0


def with_less_noise(
    schedule: Growth,
    drops: int,
    *,
    rate: float,
    batch: int,
    momentum: float = 0.9,
    factor: int = 5,
    largest: int | None = None,
) -> tuple[float, int, float]:
    """Return (learning rate, batch size, momentum) after `drops` milestones (Smith et al.).

    Each milestone divides the noise scale by `factor`.

    Noise is proportional to rate / batch / (1 - momentum), so any of the three can reduce it:

        decay            the rate decays
        grow             the batch grows up to `largest`, then the rate decays
        hybrid           the batch grows once, then the rate decays
        larger_rate      grow, from `factor` times the rate and the batch
        larger_momentum  grow, from `factor` times the rate, `factor` times 1 / (1 - momentum), and the batch for both

    >>> [with_less_noise("grow", drops, rate=0.1, batch=128)[:2] for drops in range(4)]
    [(0.1, 128), (0.1, 640), (0.1, 3200), (0.1, 16000)]
    """
    if schedule in ("larger_rate", "larger_momentum"):
        rate, batch = factor * rate, factor * batch
    if schedule == "larger_momentum":
        momentum, batch = 1 - (1 - momentum) / factor, factor * batch
    growths = {"decay": 0, "hybrid": 1}.get(schedule, drops)
    grown = batch * factor ** min(growths, drops)
    if largest is not None:
        grown = max(batch, min(grown, largest))
    return rate * (grown / (batch * factor**drops)), grown, momentum
