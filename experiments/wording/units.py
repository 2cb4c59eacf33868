"""Numbers formatted for people, such as "20 µs", "1.4 MB" or "12,800"."""

import contextlib
import math
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Literal

_TIMES = ((60.0, "min"), (1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_WORK = ((1e15, "PFLOP"), (1e12, "TFLOP"), (1e9, "GFLOP"), (1e6, "MFLOP"), (1e3, "kFLOP"), (1.0, "FLOP"))
DIVERGED = "diverged"  # the word for a loss that is not finite, and the status of a run that ended with one
_COUNTS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def plus_minus(value: float, error: float | None, alone: Callable[[float], str], decimals: int | None = None) -> str:
    """Return a value and its error as text, such as "0.2376 ± 0.0012". The error has two significant digits, and the
    value as many decimals.

    With `decimals`, both have that many. Without an error, or with one too small to be visible, return `alone(value)`.
    """
    if not error or not math.isfinite(error) or error < 1e-6 * abs(value):
        return alone(value)
    decimals = _decimals(error) if decimals is None else decimals
    if decimals > 6 or abs(value) >= 1e7:
        return f"{value:.4g} ± {error:.2g}"
    return f"{value:,.{decimals}f} ± {error:,.{decimals}f}"


def common_decimals(errors: Iterable[float | None]) -> int | None:
    """Return the fewest decimals that give each error one significant digit, and at least one error two. Return None if
    there are no errors.

    >>> common_decimals([1.02, 0.98])
    1
    """
    each = [_decimals(error) for error in errors if error and math.isfinite(error)]
    return max(min(each), max(each) - 1) if each else None


def _decimals(error: float) -> int:
    return max(0, 1 - math.floor(math.log10(error)))


def moment(iso: str) -> str:
    """Return a date and time for people, such as "1 January 2026, 12:00" for "2026-01-01T12:00+00:00"."""
    when = datetime.fromisoformat(iso)
    return f"{when.day} {when:%B %Y, %H:%M}"


def parse_size(text: str) -> float:
    """Parse a number of bytes such as "4e9", "4GB" or "4 GB". Raise ValueError for anything else."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?\d+)?)\s*([kMGT]?B)?\s*", text, re.IGNORECASE)
    scales = {name.lower(): scale for scale, name in _SIZES}
    with contextlib.suppress(ValueError):
        if found:
            return float(found[1]) * scales[(found[2] or "B").lower()]
    raise ValueError(f"bytes is {text[:40]!r}, which is not a size; write 4e9, 4GB or 500kB.")


def parse_count(text: str, name: str) -> float:
    """Parse a positive number such as "7.5e9" or "7.5B". Raise ValueError, naming `name`, for anything else."""
    found = re.fullmatch(r"\s*([0-9.]+(?:e[+-]?\d+)?)\s*([kMBT]?)\s*", text, re.IGNORECASE)
    with contextlib.suppress(ValueError):
        if found and 0 < (value := float(found[1]) * _COUNTS[found[2].lower()]) < math.inf:
            return value
    raise ValueError(f"{name} is {text[:40]!r}, which is not a number above 0; write 7.5e9 or 7.5B.")


def seconds(value: float, error: float | None = None) -> str:
    """Return a time in s as text with three significant digits. For example, 0.0000204 is "20.4 µs" and 75 is "1.25
    min".
    """
    return _scaled(value, _TIMES, "s", error)


def in_one_unit(values: Sequence[float], kind: Literal["s", "bytes/s"]) -> list[str]:
    """Return times or rates as text, all in one unit: the largest unit in which the smallest positive value is at least
    0.01.

    >>> in_one_unit([0, 1e-5, 1e-3, 0.1], "s")
    ['0 ms', '0.01 ms', '1 ms', '100 ms']
    """
    scale, per = (_TIMES[1:], "") if kind == "s" else (_SIZES, "/s")
    least = min((value for value in values if value > 0), default=1.0)
    length, name = next((unit for unit in scale if least >= 0.00999 * unit[0]), scale[-1])
    return [f"{number(value / length)} {name}{per}" for value in values]


def size(value: float, error: float | None = None) -> str:
    """Return a number of bytes as text with three significant digits, such as "104 kB" for 104384."""
    return _scaled(value, _SIZES, "B", error)


def flops(value: float, error: float | None = None) -> str:
    """Return a number of floating-point operations as text with three significant digits, such as "2.51 GFLOP" for
    2.51e9.
    """
    return _scaled(value, _WORK, "FLOP", error)


def rate(value: float) -> str:
    """Return a rate in bytes per second as text, such as "1.17 GB/s"."""
    return f"{size(value)}/s"


def count(value: float, error: float | None = None) -> str:
    """Return a whole number as text with its digits in groups of three, such as "12,800"."""
    return plus_minus(value, error, "{:,.0f}".format) if math.isfinite(value) else "-"


def in_millions(value: float) -> str:
    """Return a large number in words. For example, 7.5e9 is "7.5 billion", 7.7e7 is "77 million", and 12800 is
    "12,800".
    """
    for scale, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if value >= scale:
            return f"{number(value / scale)} {name}"
    return count(value)


def count_with_noun(value: float, name: str) -> str:
    """Return a count with its noun, such as "1 step" or "25,600 updates"."""
    return f"{count(value)} {name}{'s' * (value != 1)}"


def samples_per_second(value: float, error: float | None = None) -> str:
    """Return a number of samples per second with three significant digits, such as "299,000" for 298808. More would be
    noise.
    """
    if not math.isfinite(value):
        return "-"
    rounded = float(f"{value:.3g}")
    return plus_minus(value, error, lambda _: number(rounded) if rounded < 1000 else count(rounded))


def about(value: float) -> str:
    """Return an estimate of a time in s as text with two significant digits. For example, 69.6 is "70 s" and 200 is
    "3.3 min".
    """
    scaled, unit = (value / 60, "min") if value >= 120 else (value, "s")
    return f"{float(f'{scaled:.2g}'):g} {unit}"


def percent(value: float, error: float | None = None, decimals: int | None = None) -> str:
    """Return a fraction as a percentage, such as "93.1 %" for 0.9306. With `decimals`, the value and its error have
    that many.
    """
    if not math.isfinite(value):
        return "-"
    return f"{plus_minus(100 * value, 100 * (error or 0), '{:.1f}'.format, decimals)} %"


def share(value: float) -> str:
    """Return a fraction as a whole percentage, such as "76 %" for 0.7561."""
    return f"{100 * value:.0f} %"


def percents(parts: Sequence[float]) -> list[str]:
    """Return shares of a total as whole percentages that add up to 100. For example, 1, 1 and 1 are "34 %", "33 %" and
    "33 %".

    All are rounded down; then those that lost most are rounded up instead (largest remainder).
    """
    whole = math.fsum(parts) or 1.0
    exact = [100 * part / whole for part in parts]
    shown = [math.floor(part) for part in exact]
    left = min(100, round(math.fsum(exact))) - sum(shown)
    for n in sorted(range(len(exact)), key=lambda n: shown[n] - exact[n])[:left]:
        shown[n] += 1
    return [f"{part} %" for part in shown]


def number(value: float, digits: int = 3) -> str:
    """Return a number without a unit as text with `digits` significant digits, avoiding an exponent where it stays
    readable.
    """
    if not math.isfinite(value):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, "not a number")
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}".replace("e-0", "e-").replace("e+0", "e").replace("e+", "e")
    rounded = float(f"{value:.{digits}g}")  # 268 with two digits is 270, and not 2.7e+02
    return f"{rounded:.{max(digits, 3)}g}" if abs(rounded) < 1000 else f"{value:,.0f}"


def updates(value: float, error: float | None = None) -> str:
    """Return a staleness with its unit, such as "3.1 updates"."""
    written = plus_minus(value, error, number)
    return f"{written} update{'s' * (written != '1')}"


def loss(value: float, error: float | None = None) -> str:
    """Return a loss as text with three significant digits, including trailing zeros, such as "0.170". Return "diverged"
    if the loss is not finite.
    """
    return plus_minus(value, error, _three_digits) if math.isfinite(value) else DIVERGED


def _three_digits(value: float) -> str:
    return f"{value:#.3g}".rstrip(".") if 1e-4 <= abs(value) < 1000 else number(value)


SAY = {
    "": loss,
    "s": seconds,
    "bytes": size,
    "share": percent,
    "samples/s": samples_per_second,
    "count": count,
    "updates": updates,
    "FLOP": flops,
}
"""The function that formats a figure, by the figure's unit."""


def _scaled(value: float, scale: tuple, least: str, error: float | None = None) -> str:
    if not math.isfinite(value):
        return "∞" if value == math.inf else "-"
    if value == 0:
        return f"0 {least}"
    for unit, name in scale:
        if abs(value) >= unit * 0.9995 or (unit, name) == scale[-1]:
            digits = abs(value) / unit
            alone = "{:.3g}" if digits < 999.5 else "{:,.0f}"
            return f"{plus_minus(value / unit, (error or 0) / unit, alone.format)} {name}"
    raise AssertionError("the last unit takes everything")
