"""Points between bounds: settings whose values a sweep draws, spread evenly over all of them together.

    lockstep sweep easgd --learning-rate 0.01..1 --period 1..32 --points 50

Every new point falls into the largest gap that the earlier ones left, so half of a sweep covers the same ground as the
whole, and a longer one contains the shorter one. On a grid of 7 x 7 a setting has seven values; here it has 49.
Source: Roberts, "The Unreasonable Effectiveness of Quasirandom Sequences", 2018 (R_d, additive recurrence).
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
SPAN = re.compile(rf"({NUMBER})\.\.({NUMBER})", re.IGNORECASE)
WIDE = 10.0  # ratio of the bounds from which values are spread over their logarithms


class Span(NamedTuple):
    """The values from `low` to `high`, both included, or the whole numbers among them."""

    low: float
    high: float
    is_whole: bool

    def value(self, share: float) -> float | int:
        """Return the value at `share` (0 to below 1) of the way from `low` to `high`."""
        low, high = self.low, self.high + self.is_whole
        wide = low > 0 and high >= WIDE * low
        found = low * (high / low) ** share if wide else low + share * (high - low)
        return math.floor(found) if self.is_whole else float(f"{found:.3g}")


def parse(text: str) -> Span | None:
    """Return the span written as LOW..HIGH, None if `text` is none. Raise ValueError unless its bounds are ascending.

    >>> parse("1..32")
    Span(low=1.0, high=32.0, is_whole=True)
    """
    if not (match := SPAN.fullmatch(text)):
        return None
    low, high = map(float, match.groups())
    if not low < high:
        raise ValueError(f"the range {text[:40]} has no values between its bounds; write the smaller one first.")
    return Span(low, high, all(bound.isdecimal() for bound in match.groups()))


def points(spans: Mapping[str, Span], count: int) -> list[dict[str, Any]]:
    """Return `count` points of the sequence, each with a value for every span; equal ones only once.

    >>> points({"period": Span(1, 4, True)}, 3)
    [{'period': 1}, {'period': 3}, {'period': 2}]
    """
    step = _ratio(len(spans))
    found = []
    for n in range(1, count + 1):
        shares = ((0.5 + n * step ** (axis + 1)) % 1.0 for axis in range(len(spans)))
        point = {name: span.value(share) for (name, span), share in zip(spans.items(), shares, strict=True)}
        if point not in found:
            found.append(point)
    return found


def _ratio(dimensions: int) -> float:
    """Return 1 / x for the x above 1 with x^(d+1) = x + 1: the golden ratio for one dimension."""
    x = 2.0
    for _ in range(60):
        x = (1 + x) ** (1 / (dimensions + 1))
    return 1 / x
