"""Search for the best learning rate of an experiment: the rate is swept and nothing else, over several seeds.

Rates are 1, 2 and 5 times powers of ten. The search climbs: from where it begins in large strides to the lowest
held-out loss at the end of the run, the mean over seeds, and on in single ones until both neighbours are worse. A rate at
which a run of any seed diverges is worse than every other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from experiments.experiment import Experiment
from experiments.run import run

SEEDS = (0, 1, 2)
LOWEST, HIGHEST = -18, 9  # rungs: 1e-6 to 1000


def rung(number: int) -> float:
    """Return the rate on a rung of the ladder: 1 on rung 0, 2 on 1, 5 on 2, 10 on 3.

    >>> [rung(n) for n in (-3, -2, -1, 0, 1, 2, 3)]
    [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0]
    """
    power, place = divmod(number, 3)
    return float(f"{(1, 2, 5)[place]}e{power}")


def nearest(rate: float) -> int:
    """Return the rung that is nearest to a rate, by its ratio.

    >>> nearest(0.2), nearest(0.29), nearest(700)
    (-2, -2, 8)
    """
    return min(range(LOWEST, HIGHEST + 1), key=lambda number: abs(math.log(rung(number) / rate)))


@dataclass
class Search:
    """A search under way, or done: `losses` by rung, one of each seed tried; infinite where a run did not finish.

    `call(rung, seeds)` may be used on its own; what was run once is not run again.
    """

    experiment: Experiment
    seeds: Sequence[int] = SEEDS
    tell: Callable[[float, list[float]], None] | None = None
    losses: dict[int, dict[int, float]] = field(default_factory=dict)

    def loss(self, number: int, seeds: Sequence[int] | None = None) -> float:
        """Return the mean held-out loss at the end over the seeds; infinite if a run diverged."""
        done = self.losses.setdefault(number, {})
        for seed in self.seeds if seeds is None else seeds:
            if seed not in done:
                done[seed] = end(self.experiment.change(learning_rate=rung(number), seed=seed))
                if self.tell:
                    self.tell(rung(number), list(done.values()))
            if math.isinf(done[seed]):
                return math.inf
        return sum(done[seed] for seed in (self.seeds if seeds is None else seeds)) / len(seeds or self.seeds)

    def climb(self, number: int, stride: int, seeds: Sequence[int] | None = None) -> int:
        """Return the rung from which neither a stride up nor one down lowers the loss, beginning at `number`."""
        while True:
            around = [n for n in (number, number - stride, number + stride) if LOWEST <= n <= HIGHEST]
            best = min(around, key=lambda n: self.loss(n, seeds))
            if math.isinf(self.loss(best, seeds)):
                best = number - stride  # all diverged: lower
                if best < LOWEST:
                    return number
            if best == number:
                return number
            number = best

    def best(self, start: int) -> int:
        """Return the rung of the lowest loss, from rung `start`. The first seed leads near it, and all decide."""
        near = self.climb(start, 3, self.seeds[:1])
        return self.climb(self.climb(near, 1, self.seeds[:1]), 1)

    def interior(self, number: int) -> bool:
        """Return whether the rates beside this one were tried and are worse."""
        return all(n in self.losses and self.loss(n) >= self.loss(number) for n in (number - 1, number + 1))


def end(experiment: Experiment) -> float:
    """Return the held-out loss at the end of the experiment's run; infinite unless it finished."""
    done = run(experiment)
    loss = done.summary["held_out_loss"]
    return loss if done.status == "finished" and loss is not None and math.isfinite(loss) else math.inf
