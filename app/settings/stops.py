"""The stops of a scale: round numbers around the default, within the bounds of a setting."""

import math
from typing import Any

FARTHEST = 64  # times the default is where a slider ends; links and the command line allow values up to the bound
NEAR_ONE = (0.0, 0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)  # where a share that must stay below 1 stops
_BINARY = [2**n for n in range(13)] + [3 * 2**n for n in range(12)]
_DECIMAL = [m * 10**n for n in range(7) for m in (1, 2, 5)]
_SMALLEST = {"s": 1e-6, "bytes/s": 1e6, "bytes": 1e3, "epochs": 0.1}  # the first stop of a scale, by unit


def whole_stops(default: int | None, low: float | None, high: float | None) -> tuple:
    """Return the stops of a scale of whole numbers: powers of two if the default is one, else 1, 2, 5, 10 ..."""
    low, high = _bounds(low, high)
    series = sorted(_BINARY) if default in _BINARY else _DECIMAL
    return _with(default, [n for n in series if low <= n <= min(high, FARTHEST * (default or 10_000))])


def real_stops(default: float | None, unit: str, low: float | None, high: float | None, zero: bool = False) -> tuple:
    """Return the stops of a scale of numbers that may be fractions: 1, 2, 5, 10 ... above `low`.

    If `low` is 0 and `zero` is true, 0 is a stop as well.
    """
    low, high = _bounds(low, high)
    least = default / 1000 if default else _SMALLEST.get(unit, 1e-3)
    most = min(high, default * 1000 if default else least * 1e7)
    powers = range(math.floor(math.log10(least)), math.ceil(math.log10(most)) + 1)
    stops = [float(f"{m}e{power}") for power in powers for m in (1, 2, 5)]
    stops = [x for x in stops if low < x and least * 0.999 <= x <= most]
    return _with(default, [0.0, *stops] if low == 0 and zero else stops)


def _bounds(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high


def _with(default: Any, stops: list) -> tuple:
    return tuple(sorted({*stops} if default is None else {*stops, default}))
