"""The held-out loss of a sweep as SVG: lines against one setting, points against a range, or a heat map of two
settings.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.exports.svg import SOFT, document, svg, words
from experiments.runs.figures import final_figure
from experiments.runs.record import RunOutcome
from experiments.runs.seeds import SeedFigure, differ_in_seed, seed_figure
from experiments.viewer import palette
from experiments.viewer.pictures import Axis, Picture, Series
from experiments.wording import units

FIGURE, NAME = "held_out_loss", "held-out loss"
MOST_LINES = 6  # lines that can be told apart; with more, each run is a point
WIDE = 30.0  # ratio of the largest to the smallest value from which an axis is logarithmic
CELL = 72, 30  # px of a map's cell, wide and high
LEFT, TOP, BOTTOM = 130, 58, 64  # px of margin around a map


class Place(NamedTuple):
    """The runs of a sweep that differ only in their seed, with their values on the axes and their losses."""

    values: tuple[Any, ...]
    loss: SeedFigure


def sweep_svg(outcomes: Sequence[RunOutcome], axes: Sequence[str], lines: bool = True) -> str:
    """Return the text of an SVG file that plots the held-out losses of runs against the settings `axes`. Without
    `lines`, points are not connected.

    Runs that diverged are left out. Raise ValueError if no axis has numbers.
    """
    axes = [name for name in axes if name != "seed"]
    places = _places(outcomes, axes)
    numbers = [n for n, _ in enumerate(axes) if len({p.values[n] for p in places if _is_number(p.values[n])}) > 1]
    if len(numbers) == len(axes) == 2 and len(places) == math.prod(len({p.values[n] for p in places}) for n in (0, 1)):
        return _heat_map(places, axes)
    if not numbers:
        raise ValueError(
            "plot: no setting that was varied has numbers to draw over; vary one, as in --workers 1,2,4, or remove "
            "--plot."
        )
    across = numbers[0]
    others = list(dict.fromkeys(_without(place.values, across) for place in places))
    if len(others) > MOST_LINES or not lines:
        others = [()]
    connected = lines and len(others[0]) == len(axes) - 1
    series = [_series(places, across, other, n, axes, connected) for n, other in enumerate(others)]
    x = np.concatenate([one.x for one in series])
    y = np.concatenate([one.y + sign * np.asarray(one.error) for one in series for sign in (1, -1)])
    head = axes[across].replace("_", " ")
    return svg({NAME: Picture(series, _axis(head, x), _axis(NAME, y[np.isfinite(y)]))})


def _places(outcomes: Sequence[RunOutcome], axes: Sequence[str]) -> list[Place]:
    groups = [[outcomes[n] for n in some] for some in differ_in_seed([one.experiment for one in outcomes])]
    return [
        Place(
            tuple(some[0].experiment.in_force().get(name) for name in axes),
            seed_figure(final_figure(one.status, one.summary, FIGURE) for one in some),
        )
        for some in groups
    ]


def _series(places: Sequence[Place], across: int, other: tuple, number: int, axes: Sequence[str], line: bool) -> Series:
    """Return the losses along axis `across` as a series.

    It contains the places whose values on the other axes are `other`, or all places if `other` is ().
    """
    some = sorted(
        (p for p in places if not other or _without(p.values, across) == other), key=lambda place: place.values[across]
    )
    style = palette.RUNS[number % len(palette.RUNS)]
    names = [name for n, name in enumerate(axes) if n != across]
    return Series(
        x=np.array([place.values[across] for place in some], float),
        y=np.array([math.nan if place.loss.mean is None else place.loss.mean for place in some]),
        colour=style.colour,
        dash=style.dash,
        symbol=style.symbol,
        key=", ".join(f"{name.replace('_', ' ')} {value}" for name, value in zip(names, other, strict=False)),
        bare=not line,
        error=np.array([place.loss.std or 0.0 for place in some]),
        band=any(place.loss.std for place in some),
    )


def _heat_map(places: Sequence[Place], axes: Sequence[str]) -> str:
    """Return a map with a cell for every pair of values: the mean loss, darker where it is lower."""
    loss: Mapping[tuple, float | None] = {place.values: place.loss.mean for place in places}
    columns, rows = (sorted({place.values[n] for place in places}) for n in (0, 1))
    known = [math.log(value) for value in loss.values() if value]
    low, high = (min(known), max(known)) if known else (0.0, 0.0)
    least, most = (colour for _, colour in palette.HEAT)
    body = [words(12, 22, NAME, size=14, weight=600)]
    for r, row in enumerate(rows):
        y = TOP + r * CELL[1]
        body.append(words(LEFT - 8, y + 20, units.number(row), SOFT, "end"))
        for c, column in enumerate(columns):
            x, value = LEFT + c * CELL[0], loss.get((column, row))
            deep = (high - math.log(value)) / ((high - low) or 1.0) if value else 0.0
            box = f'x="{x}" y="{y}" width="{CELL[0] - 2}" height="{CELL[1] - 2}"'
            body.append(f'<rect {box} fill="{least}"/><rect {box} fill="{most}" opacity="{deep:.2f}"/>')
            body.append(words(x + CELL[0] / 2, y + 19, units.loss(value) if value else "–", anchor="middle"))
    end = TOP + len(rows) * CELL[1]
    body += [
        words(LEFT + c * CELL[0] + CELL[0] / 2, end + 18, units.number(column), SOFT, "middle")
        for c, column in enumerate(columns)
    ]
    wide = LEFT + len(columns) * CELL[0] + 12
    across, down = (name.replace("_", " ") for name in axes)
    body += [words((LEFT + wide) / 2, end + 42, across, SOFT, "middle"), words(12, TOP - 10, down, SOFT)]
    return document(wide, end + BOTTOM, f"{NAME} over {across} and {down}", "".join(body))


def _axis(name: str, values: np.ndarray) -> Axis:
    """Return an axis that shows all values, logarithmic if they span a factor of WIDE or more."""
    least, most = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    if least > 0 and most >= WIDE * least:
        return Axis(name, least / 1.2, most * 1.2, log=True)
    room = 0.05 * (most - least) or 0.5
    return Axis(name, max(0.0, least - room) if least >= 0 else least - room, most + room)


def _without(values: tuple, place: int) -> tuple:
    return (*values[:place], *values[place + 1 :])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
