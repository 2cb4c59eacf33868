"""Faults: slow ranks, jitter, pauses, crashes and restarts, as plain values.

slow     a rank takes longer than the others by a constant factor; with a factor below 1 it is faster
jitter   the time of every step of every rank is multiplied by a random factor, drawn from one distribution and seeded
         per rank; its mean is 1, so some steps are shorter, except for "noisy cloud", whose mean is 1.03
pause    a rank stops at one time and continues at another
crash    a rank is lost at a given time, either for good or until it restarts its program, without its memory
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Jitter:
    """A distribution of the factors by which the time of a step varies.

    `draw(generator, count)` draws `count` factors. `source` describes the distribution.
    """

    draw: Callable[[np.random.Generator, int], np.ndarray]
    source: str


def _lognormal(sigma: float, generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.lognormal(-sigma * sigma / 2, sigma, count)


def _noisy_cloud(generator: np.random.Generator, count: int) -> np.ndarray:
    factors = _lognormal(0.15, generator, count)
    return factors * np.where(generator.random(count) < 0.01, 4.0, 1.0)


def _shifted_exponential(generator: np.random.Generator, count: int) -> np.ndarray:
    return 0.8 + generator.exponential(0.2, count)


def _exponential(generator: np.random.Generator, count: int) -> np.ndarray:
    return generator.exponential(1.0, count)


def _pareto(generator: np.random.Generator, count: int) -> np.ndarray:
    return (generator.pareto(2.5, count) + 1) * 0.6


JITTERS: dict[str, Jitter | None] = {
    "none": None,
    "hpc": Jitter(partial(_lognormal, 0.03), "log-normal, mean 1, sigma 0.03: our choice for a quiet cluster"),
    "cloud": Jitter(partial(_lognormal, 0.15), "log-normal, mean 1, sigma 0.15: our choice for rented machines"),
    "noisy cloud": Jitter(_noisy_cloud, "like cloud, but one step in a hundred takes four times as long: our choice"),
    "shifted exponential": Jitter(_shifted_exponential, "0.8 + an exponential, mean 0.2: our choice"),
    "exponential": Jitter(_exponential, "exponential, mean 1: the distribution that the formulas assume"),
    "pareto": Jitter(_pareto, "Pareto, mean 1, shape 2.5: a heavy tail, our choice"),
}


@dataclass(frozen=True)
class Faults:
    """The faults of a run, by rank. Times are in seconds on the run's clock."""

    slow: dict[int, float] = field(default_factory=dict)  # rank -> factor
    jitter: Jitter | None = None
    pause: dict[int, tuple[tuple[float, float], ...]] = field(default_factory=dict)  # rank -> ((from, to), ...)
    crash: dict[int, float] = field(default_factory=dict)  # rank -> time
    back: dict[int, float] = field(default_factory=dict)  # rank -> time of restart, for some of those in `crash`
    seed: int = 0

    def after_restart(self, rank: int) -> Faults:
        """Return the faults from the restart of `rank` on: it does not crash again, and only later pauses are left."""
        born = self.back[rank]
        left = tuple((max(start, born), end) for start, end in self.pause.get(rank, ()) if end > born)
        crash = {other: at for other, at in self.crash.items() if other != rank}
        return replace(self, pause={**self.pause, rank: left}, crash=crash)


NONE = Faults()


class Slowness:
    """The factor by which a rank is slower than its device: constant or, with jitter, drawn again for every step."""

    __slots__ = ("_draws", "_drawn", "_factor", "_jitter", "_slow")

    def __init__(self, faults: Faults, rank: int):
        self._slow = self._factor = faults.slow.get(rank, 1.0)
        self._jitter, self._drawn = faults.jitter, -1  # the step of the last draw
        self._draws: Any = np.random.default_rng([faults.seed, 0x517E, rank]) if faults.jitter else None

    def at(self, step: int) -> float:
        """Return the factor of this step. The step must not decrease from call to call."""
        if self._jitter:
            while self._drawn < step:
                self._drawn += 1
                self._factor = self._slow * float(self._jitter.draw(self._draws, 1)[0])
        return self._factor


LONGEST = 1e7  # s: the largest time budget of a run, and the latest time of a fault
_NUMBER = r"(\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)"


def parse_slow(text: str, ranks: int) -> dict[int, float]:
    """Return the factor of each slow rank. In the text "2:3,5:1.5", for example, rank 2 takes three times as long.

    Raise ValueError for invalid text.
    """
    slow: dict[int, float] = {}
    for rank, (factor,) in _entries(text, ranks, _NUMBER, "slow", "rank:factor, for example 2:3,5:1.5"):
        if not 0.01 <= factor <= 1000:
            raise ValueError(f"slow: factor {factor:g} of rank {rank} is out of range; use 0.01 to 1000.")
        if rank in slow:
            raise ValueError(f"slow: rank {rank} has two factors, {slow[rank]:g} and {factor:g}; remove one.")
        slow[rank] = factor
    return slow


def parse_pause(text: str, ranks: int) -> dict[int, tuple[tuple[float, float], ...]]:
    """Return the pauses of each rank. In the text "1:0.5-0.8", for example, rank 1 pauses from 0.5 to 0.8 s.

    Overlapping pauses of a rank are merged. Raise ValueError for invalid text.
    """
    pauses: dict[int, tuple] = {}
    form = "rank:from-to in seconds, for example 1:0.5-0.8"
    for rank, (start, end) in _times(text, ranks, _NUMBER + "-" + _NUMBER, "pause", form):
        if end <= start:
            raise ValueError(
                f"pause: for rank {rank} the end, {end:g} s, is not after the start, {start:g} s; write {form}."
            )
        joined: list[tuple[float, float]] = []
        for pause in sorted((*pauses.get(rank, ()), (start, end))):
            if joined and pause[0] < joined[-1][1]:
                first, last = joined.pop()
                pause = first, max(last, pause[1])
            joined.append(pause)
        pauses[rank] = tuple(joined)
    return pauses


def parse_crash(text: str, ranks: int) -> dict[int, tuple[float, float]]:
    """Return the crash of each rank that has one.

    In the text "3:0.4,1:0.5-0.8", for example, rank 3 is lost for good at 0.4 s, and rank 1 restarts at 0.8 s.

    A crash is (time of the crash, time of the restart); the latter is inf for a rank that is lost for good. Raise
    ValueError for invalid text.
    """
    crashes: dict[int, tuple[float, float]] = {}
    form = "rank:second, for example 3:0.4, or rank:from-to if it restarts, for example 1:0.5-0.8"
    for rank, (lost, again) in _times(text, ranks, _NUMBER + f"(?:-{_NUMBER})?", "crash", form):
        back = math.inf if again is None else again
        if rank in crashes:
            raise ValueError(f"crash: rank {rank} is listed twice; each rank can crash once per run.")
        if back <= lost:
            raise ValueError(
                f"crash: for rank {rank} the restart, {back:g} s, is not after the crash, {lost:g} s; write {form}."
            )
        crashes[rank] = lost, back
    return crashes


def spell_slow(slow: dict[int, float]) -> str:
    """Return these factors as text that `parse_slow` can parse."""
    return ",".join(f"{rank}:{factor:g}" for rank, factor in sorted(slow.items()))


def spell_pause(pause: dict[int, tuple[tuple[float, float], ...]]) -> str:
    """Return these pauses as text that `parse_pause` can parse."""
    return ",".join(f"{rank}:{a:g}-{b:g}" for rank, pauses in sorted(pause.items()) for a, b in pauses)


def spell_crash(crash: dict[int, tuple[float, float]]) -> str:
    """Return these crashes as text that `parse_crash` can parse."""
    return ",".join(
        f"{rank}:{lost:g}" + (f"-{back:g}" if back < math.inf else "") for rank, (lost, back) in sorted(crash.items())
    )


def _entries(text: str, ranks: int, value: str, name: str, form: str):
    for entry in filter(None, (part.strip() for part in text.split(","))):
        match = re.fullmatch(r"(\d{1,6}):" + value, entry)
        if not match:
            raise ValueError(f"{name}: {entry[:40]!r} cannot be read; write {form}.")
        if int(match[1]) >= ranks:
            raise ValueError(f"{name}: there is no rank {match[1]}; ranks are 0 to {ranks - 1}.")
        yield int(match[1]), tuple(None if v is None else float(v) for v in match.groups()[1:])


def _times(text: str, ranks: int, value: str, name: str, form: str):
    for rank, times in _entries(text, ranks, value, name, form):
        if late := [at for at in times if at is not None and at > LONGEST]:
            raise ValueError(f"{name}: {late[0]:g} s is out of range for rank {rank}; use 0 to {LONGEST:g} s.")
        yield rank, times
