"""Curves as SVG without a browser: the pictures of the canvas, static and on white.

The file has lines, marks and words, for papers and slides. For animation and interaction, see
experiments/viewer/canvases.
"""

import math
from collections.abc import Callable, Mapping
from html import escape

import numpy as np

from experiments.viewer.canvases.curve import DASHES
from experiments.viewer.pictures import Axis, Picture, Series
from experiments.wording import units

WIDE, HIGH = 500, 300  # px of one picture
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 62, 44  # px of margin around its plot
TEXT, SOFT, RULE = "#1B2733", "#66717C", "#DDE3E9"
TICKS = 5  # approximate number of ticks on an axis


def svg(named: Mapping[str, Picture], heading: str = "") -> str:
    """Return an SVG file's text with the pictures side by side, each with its name above it."""
    width, height = WIDE * len(named), HIGH + (28 if heading else 0)
    body = [words(12, 20, heading, size=15, weight=600)] if heading else []
    for number, (name, picture) in enumerate(named.items()):
        inside = "".join(_plot(picture, name, f"plot-{number}"))
        body.append(f'<g transform="translate({WIDE * number} {height - HIGH})">{inside}</g>')
    return document(width, height, heading or ", ".join(named), "".join(body))


def document(width: int, height: int, title: str, body: str, before: str = "") -> str:
    """Return an SVG file's text: `body` on white, preceded by the definitions `before`."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="\'Source Sans Pro\', system-ui, sans-serif" role="img"><title>{escape(title)}</title>{before}'
        f'<rect width="100%" height="100%" fill="#FFFFFF"/>{body}</svg>\n'
    )


def _plot(picture: Picture, name: str, clip: str):
    right, low = WIDE - RIGHT, HIGH - BOTTOM
    x, y = _scale(picture.x, LEFT, right), _scale(picture.y, low, TOP)
    yield words(LEFT, 18, name, size=14, weight=600)
    at = LEFT
    for one in picture.series:
        if one.key:
            yield f'<line x1="{at}" x2="{at + 24}" y1="40" y2="40" {_stroke(one)}/>{_mark(one, at + 12, 40)}'
            yield words(at + 30, 44, one.key)
            at += 46 + 7 * len(one.key)
    for value, text in _ticks(picture.y):
        place = float(y(np.array(value)))
        yield f'<line x1="{LEFT}" x2="{right}" y1="{place:.1f}" y2="{place:.1f}" stroke="{RULE}"/>'
        yield words(LEFT - 8, place + 4, text, SOFT, "end")
    for value, text in _ticks(picture.x):
        yield words(float(x(np.array(value))), low + 18, text, SOFT, "middle")
    title = picture.x.title or ", ".join(filter(None, (picture.x.name, picture.x.unit)))
    yield words((LEFT + right) / 2, HIGH - 8, title, SOFT, "middle")
    inside = f'x="{LEFT - 3}" y="{TOP - 3}" width="{right - LEFT + 6}" height="{low - TOP + 6}"'
    yield f'<clipPath id="{clip}"><rect {inside}/></clipPath><g clip-path="url(#{clip})">'
    for one in picture.series:
        with np.errstate(all="ignore"):
            px, py = x(np.asarray(one.x, float)), y(np.asarray(one.y, float))
        if one.band and one.error is not None:
            yield f'<path d="{_band(one, x, y)}" fill="{one.colour}" opacity="0.16"/>'
        if not one.bare:
            opacity = ' opacity="0.4"' if one.faint else ""
            yield f'<path d="{_path(px, py)}" fill="none" {_stroke(one)} stroke-linejoin="round"{opacity}/>'
        if one.symbol:
            stride = max(1, one.every)
            yield "".join(_mark(one, *point) for point in _known(px, py)[::-1][::stride])
    yield "</g>"
    for ended in {one.ended for one in picture.series if one.ended}:
        yield words(right, TOP + 10, f"{ended} ×", anchor="end")


def _scale(axis: Axis, start: float, end: float):
    """Return a function that converts values of an axis to px. On a logarithmic axis, negative values become NaN."""
    place = np.log10 if axis.log else np.asarray
    low, high = (float(place(value)) for value in (axis.least, axis.most))
    return lambda values: start + (place(values) - low) / ((high - low) or 1.0) * (end - start)


def _ticks(axis: Axis) -> list[tuple[float, str]]:
    """Return an axis's ticks with labels: at 1, 2 or 5 times powers of ten or, if logarithmic, at these powers."""
    if axis.log:
        powers = range(math.ceil(math.log10(axis.least) - 1e-9), math.floor(math.log10(axis.most) + 1e-9) + 1)
        return [(10.0**n, f"{10.0**n:g}") for n in powers[:: max(1, len(powers) // TICKS)]]
    return [(value, units.number(value) if value else "0") for value in ticks(axis.least, axis.most)]


def ticks(least: float, most: float, count: int = TICKS) -> list[float]:
    """Return about `count` tick positions on an axis, at 1, 2 or 5 times a power of ten."""
    rough = (most - least) / count or 1.0
    power = 10 ** math.floor(math.log10(rough))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough * 0.999)
    first = math.ceil(least / step - 1e-9)
    return [n * step for n in range(first, math.floor(most / step + 1e-9) + 1)]


def _known(px: np.ndarray, py: np.ndarray) -> list[tuple[float, float]]:
    """Return the finite points. Those far outside the plot are moved closer: viewers cannot draw very large numbers."""
    there = np.isfinite(px) & np.isfinite(py)
    return list(zip(px[there].tolist(), py[there].clip(-HIGH, 2 * HIGH).tolist(), strict=True))


def _path(px: np.ndarray, py: np.ndarray) -> str:
    """Return an SVG path through the points, with gaps at those that are not finite."""
    parts, pen = [], False
    for a, b in zip(px.tolist(), np.clip(py, -HIGH, 2 * HIGH).tolist(), strict=True):
        known = math.isfinite(a) and math.isfinite(b)
        if known:
            parts.append(f"{'L' if pen else 'M'}{a:.1f} {b:.1f}")
        pen = known
    return "".join(parts)


def _band(one: Series, x: Callable, y: Callable) -> str:
    """Return an SVG path around the line's values plus and minus their error, without those that are not finite."""
    with np.errstate(all="ignore"):
        px, error = x(np.asarray(one.x, float)), np.asarray(one.error, float)
        edges = [y(np.asarray(one.y, float) + sign * error) for sign in (1, -1)]
    above, below = (_known(px, edge) for edge in edges)
    return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in [*above, *below[::-1]]) + "Z" if above and below else ""


def _stroke(one: Series) -> str:
    dash = f' stroke-dasharray="{" ".join(map(str, DASHES[one.dash]))}"' if DASHES[one.dash] else ""
    return f'stroke="{one.colour}" stroke-width="{one.width:g}"{dash}'


def _mark(one: Series, x: float, y: float) -> str:
    """Return the mark of a line at a point: a square, a circle, or "" if it has none."""
    if not one.symbol:
        return ""
    look = f'fill="#FFFFFF" stroke="{one.colour}" stroke-width="1.6"'
    if one.symbol.startswith("square"):
        return f'<rect x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7" {look}/>'
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.8" {look}/>'


def words(x: float, y: float, text: str, colour: str = TEXT, anchor: str = "start", size: int = 12, weight: int = 400):
    """Return an SVG text element at (x, y) in px."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" font-weight="{weight}" text-anchor="{anchor}" '
        f'fill="{colour}">{escape(text)}</text>'
    )
