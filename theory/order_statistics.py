"""Order statistics of stragglers: the mean time of a step that waits for the k fastest of n, in closed form.

A step that waits for all (k = n) waits for the slowest, which gets slower as n grows. Times are independent, with
mean 1 unless stated otherwise. H_n = 1 + 1/2 + ... + 1/n.

    shifted exponential    shift + mean (H_n - H_(n-k))
    Pareto                 least G(n + 1) G(n - k + 1 - 1/shape) / (G(n - k + 1) G(n + 1 - 1/shape))      G: gamma
    log-normal             an integral

Source: order statistics as in any textbook; the log-normal one has no closed form.
"""

import math

import numpy as np


def harmonic(n: int) -> float:
    """Return the harmonic number H_n = 1 + 1/2 + ... + 1/n; H_0 = 0.

    >>> harmonic(100).__round__(3)
    5.187
    """
    return math.fsum(1 / i for i in range(1, n + 1))


def exponential(n: int, k: int, mean: float = 1.0, shift: float = 0.0) -> float:
    """Return the mean time until k of n workers are done. Times are `shift` plus an exponential time of mean `mean`."""
    _check(n, k)
    return shift + mean * math.fsum(1 / i for i in range(n - k + 1, n + 1))


def pareto(n: int, k: int, shape: float) -> float:
    """Return the mean time until k of n workers are done. Times are Pareto (a heavy tail) of mean 1.

    `shape` must exceed 1.
    """
    _check(n, k)
    least, late = (shape - 1) / shape, 1 / shape
    logs = math.lgamma(n + 1), math.lgamma(n - k + 1 - late), -math.lgamma(n - k + 1), -math.lgamma(n + 1 - late)
    return least * math.exp(sum(logs))


def lognormal(n: int, k: int, sigma: float) -> float:
    """Return the mean time until k of n workers are done. Times are log-normal of mean 1.

    A time is exp(sigma z - sigma^2 / 2), where z is standard normal.
    """
    _check(n, k)
    z = np.linspace(-9, 9 + sigma, 4001)  # the integrand is smooth and 0 at both ends, so the trapezoid rule is exact
    below = np.array([math.erfc(-x / math.sqrt(2)) / 2 for x in z])
    above = np.array([math.erfc(x / math.sqrt(2)) / 2 for x in z])
    ways = math.lgamma(n + 1) - math.lgamma(k) - math.lgamma(n - k + 1)
    density = np.exp(ways + (k - 1) * np.log(below) + (n - k) * np.log(above) - z**2 / 2) / math.sqrt(2 * math.pi)
    return float((np.exp(sigma * z - sigma**2 / 2) * density).sum() * (z[1] - z[0]))


def backup_step(workers: int, backups: int) -> float:
    """Return the mean duration of a step with backup workers. The step ends once all but `backups` workers are done.

    Times are exponential. `exponential(workers, workers - backups)` would be right if all workers began every step
    together. Here the stragglers of one step first finish their old work and join the next step late, so it takes a
    little longer. Exponential times are memoryless: the mean time to the next arrival is 1 / (number of workers
    computing), and each of these is equally likely to be next.
    """
    needed = workers - backups
    _check(workers, needed)
    rest = [0.0] * (
        backups + 1
    )  # mean time left in the step, by the number of workers on a stale gradient; 0 once all that are needed arrived
    for arrived in reversed(range(needed)):
        busy, after, rest = workers - arrived, rest, []
        for stale in range(backups + 1):
            late = stale * rest[stale - 1] if stale else 0.0  # a stale arrival is dropped, and its worker starts again
            rest.append((1 + late + (busy - stale) * after[stale]) / busy)
    return rest[backups]


def _check(n: int, k: int) -> None:
    if not 1 <= k <= n:
        raise ValueError(f"a step cannot wait for {k} of {n} workers; wait for 1 to {n}.")
