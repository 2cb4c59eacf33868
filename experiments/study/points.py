"""Points between bounds: a sweep draws values of several settings so that their combinations are spread evenly.

    lockstep sweep easgd --learning-rate 0.01..1 --period 1..32 --points 50

The first coordinate of the n-th point is 0. followed by the digits of n in base 2, in reverse order, the second the
same in base 3, and so on. So new points fall into the gaps that the earlier ones left, half of a sweep covers the same
ground as the whole, and a longer one contains the shorter one. On a grid of 7 x 7 a setting has seven values; here it
has 49. Source: Halton, Numerische Mathematik 2, 1960.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
SPAN = re.compile(rf"({NUMBER})\.\.({NUMBER})", re.IGNORECASE)
BASES = (2, 3, 5, 7, 11, 13)  # with larger ones, the first points of two coordinates lie on a line
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
    """Return the span written as LOW..HIGH, or None if `text` is not a span. Raise ValueError if LOW is not below HIGH.

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
    """Return the first `count` points of the sequence, each with a value for every span. Equal points appear only once.

    Raise ValueError for more spans than BASES.

    >>> points({"period": Span(1, 4, True)}, 3)
    [{'period': 3}, {'period': 2}, {'period': 4}]
    """
    if len(spans) > len(BASES):
        raise ValueError(
            f"{len(spans)} ranges are too many to fill evenly; use at most {len(BASES)}, or fix some values."
        )
    found = []
    for n in range(1, count + 1):
        point = {name: span.value(_mirrored(n, base)) for (name, span), base in zip(spans.items(), BASES, strict=False)}
        if point not in found:
            found.append(point)
    return found


def _mirrored(n: int, base: int) -> float:
    """Return the number whose digits after the point are those of n, reversed: 6 is 110 in base 2, and 0.011 is 3/8."""
    value, unit = 0.0, 1.0
    while n:
        n, digit = divmod(n, base)
        unit /= base
        value += digit * unit
    return value
