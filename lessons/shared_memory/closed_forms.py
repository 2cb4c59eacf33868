"""Closed forms for threads that share a vector: how often samples collide, what is lost, and when a lock saturates.

In samples with k of d features, feature v occurs with probability p = p_v. Each of N threads takes T per step on
average, and the time is exponential, so during a step of one thread the others write n times with probability
(1 - q) q^n, with mean N - 1:

    conflict    1 - 1 / (1 + (N - 1) p)      the chance that any of these n writes covers coordinate v
    lost        (N - 1) p r / T              the fraction of additions lost because two periods from load to store,
                                             r each, overlap

A core stores in order, so r grows with the number of cache lines that a sample touches up to that of v.
"""

from dataclasses import dataclass

import numpy as np

from cluster.devices import DEVICES
from cluster.simulated.cells import LINE, TAKEN

NUMBERS = LINE // 4  # float32 numbers in a cache line


@dataclass(frozen=True)
class SparseRows:
    """Rows of `nonzeros` draws from `features` features. Feature v, counted from 0, is (v + 1)^-skew times as likely as
    the first.
    """

    features: int
    nonzeros: int = 8
    skew: float = 0.0

    @property
    def present(self) -> np.ndarray:
        """The probability p_v that a row has feature v, (features,)."""
        drawn = np.arange(1, self.features + 1) ** -self.skew
        return 1 - (1 - drawn / drawn.sum()) ** self.nonzeros

    def conflicts(self, threads: int) -> float:
        """Return the fraction of written coordinates that another thread has written since they were read."""
        p = self.present
        return float(p @ (1 - 1 / (1 + (threads - 1) * p)) / p.sum())

    def lost_fraction(self, threads: int, step: float) -> float:
        """Return the fraction of additions that are lost if a step takes `step` seconds."""
        p = self.present
        lines = [1 - np.prod(1 - part) for part in np.split(p, range(NUMBERS, len(p), NUMBERS))]  # lines of a row
        before = np.repeat(np.cumsum(lines) - lines, NUMBERS)[: len(p)]  # the mean number of lines before that of v
        window = TAKEN * (1 + before)
        return (threads - 1) * float(p**2 @ window / p.sum()) / step

    def coordinates_written(self, rows: int) -> float:
        """Return the number of coordinates written per row if `rows` rows are accumulated before each write."""
        return float((1 - (1 - self.present) ** rows).sum() / rows)

    @property
    def lock(self) -> float:
        """The seconds per step that a lock is held: each coordinate's cache line is moved three times."""
        return 3 * LINE * float(self.present.sum()) / DEVICES["laptop"].bandwidth
