"""A script's run in numbers, and its waits: plain values, so that stored runs can be read without torch.

`cluster.torch.summary` computes them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tracing import Trace

PRINTED = "printed "
"""Prefix of the names of values that were found in printed lines."""


class Waited(NamedTuple):
    """A wait of `rank` in the operation `what`, at `line` of the script. It ended when `culprit`, the last rank,
    arrived.

    `ready` is when the rank itself had joined or sent. It may have computed from then until it had to wait.
    """

    rank: int
    culprit: int
    what: str
    line: str
    start: float  # s
    end: float  # s
    ready: float  # s


@dataclass(frozen=True)
class WaitFor:
    """The seconds that ranks waited for `culprit`, summed over ranks.

    `what` is the operation that they waited in, and `line` the line of the script that called it.

    The culprit is where the chain of waits begins: the rank that was working, or -1 if messages were in flight. A rank
    is never its own culprit.
    """

    culprit: int
    what: str
    line: str
    seconds: float
    ranks: int  # number of ranks that waited for it
    waiter: int = -1  # the rank that waited, if it was only one; -1 also in runs stored by older versions

    @property
    def mean(self) -> float:
        """The mean waiting time of the ranks that waited, in s."""
        return self.seconds / self.ranks


@dataclass(frozen=True)
class Summary:
    """Summary statistics of a run. Times are on the run's clock; arrays have one element per rank.

    `step_seconds` is the median time of a step, without the first if there are others; NaN without an optimizer.
    `waits` leaves out the first step, too; it covers `waits_over` seconds of the run, on average over ranks. A rank is
    idle while it is paused, after its end, and while it is blocked at the end of a failed run. `losses` are means by
    step over the ranks that call backward on a scalar; `logged` are means of the values that the script logs or prints,
    by name and step. If no optimizer takes a step, values count as steps: see `mean_by_step`.
    """

    ranks: int
    seconds: float
    steps: int
    step_seconds: float
    losses: dict[int, float]
    logged: dict[str, dict[int, float]]
    compute: np.ndarray  # s, with updates
    communicate: np.ndarray  # s
    wait: np.ndarray  # s
    idle: np.ndarray  # s
    memory: dict[str, np.ndarray]  # bytes by kind of tracing.HELD, in the last step; for activations its peak
    sent: np.ndarray  # bytes
    messages: int
    waits: tuple[WaitFor, ...]  # the longest first
    waits_over: float  # s

    def seconds_by_culprit(self) -> dict[int, float]:
        """Return how long others waited because of each rank, in s, without ranks that made nobody wait."""
        caused: dict[int, float] = {}
        for one in self.waits:
            if one.culprit >= 0:
                caused[one.culprit] = caused.get(one.culprit, 0.0) + one.seconds
        return caused

    @property
    def waiting_share(self) -> float:
        """The largest share of the run that any rank spends waiting, from 0 to 1."""
        return float(self.wait.max() / self.seconds) if self.seconds else 0.0


def counted_spans(trace: Trace, steps: int) -> np.ndarray:
    """Return the mask of the spans whose waits count: all but those of the first step, if there are other steps."""
    return trace.spans["step"] >= (1 if steps > 1 else -1)


Column = Sequence[float] | np.ndarray


def mean_by_step(ranks: Column, steps: Column, values: Column, is_stepless: bool = False) -> dict[int, float]:
    """Return the mean of the values of each step. Rows must be ordered by rank, so that results are repeatable.

    If the run `is_stepless`, i.e. no optimizer takes a step, the first values of the ranks count as step 0, the second
    ones as step 1, and so on.
    """
    if is_stepless:
        _, first, many = np.unique(ranks, return_index=True, return_counts=True)
        steps = np.arange(len(values)) - np.repeat(first, many)
    found, place = np.unique(steps, return_inverse=True)
    means = np.bincount(place, values) / np.bincount(place)
    return dict(zip(found.tolist(), means.tolist(), strict=True))
