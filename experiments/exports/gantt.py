"""A schedule drawn as text: one row per rank, one cell per unit of time, one colour per kind of op.

    time    0        3        6
    rank 0  F0 F1 .. B0    B1          F takes 1, B 2; dots are idle time

The unit is the greatest common divisor of all costs. If its cells would be too wide, columns are fractions of the
makespan; if names do not fit, the chart continues below; and if that would be too long, each column has the letter of
the op that takes most of its time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from algorithms.parts.pipeline.ops import KINDS
from experiments.study.schedules import Study
from experiments.viewer import palette

if TYPE_CHECKING:
    from rich.text import Text

LIGHTER = {"R": "#A9D8F4"}  # a recomputed forward is hatched in the workbench, which characters cannot show
LOOKS = {
    kind: (name, f"{style.ink or palette.DARK} on {LIGHTER.get(kind, style.colour)}")
    for kind, (name, style) in palette.OPS.items()
}
"""The name of each kind of op, and its colours in the workbench."""
BLOCKS = 4  # blocks of lines in which a chart continues, at most


class Piece(NamedTuple):
    """What a rank does at one time: an op, or several done together."""

    rank: int
    start: float
    end: float
    kinds: str
    name: str


class Grid(NamedTuple):
    """The mapping from time to columns: `cells` cells, each `wide` columns, cover the `makespan`.

    An op's last `gap` columns are blank. Ops are written with their names if `named`, else as one letter per column.
    """

    makespan: float
    cells: int
    wide: int = 1
    gap: int = 0
    named: bool = True

    def column(self, time: float) -> int:
        return round(time / self.makespan * self.cells) * self.wide


def chart(study: Study, width: int) -> Text:
    """Return the chart, each block below its ruler, and a legend; at most `width` columns wide."""
    from rich.text import Text

    drawn, ranks = list(pieces(study)), study.summary["ranks"]
    margin = len(f"rank {ranks - 1}  ")
    room = max(width - margin, 1)
    grid = _grid(drawn, study.plan.latency, study.summary["makespan"], room)
    lanes = _named(drawn, ranks, grid) if grid.named else _squeezed(drawn, ranks, grid)
    text, block = Text(), max(1, room // grid.wide) * grid.wide
    for first in range(0, grid.cells * grid.wide, block):
        text.append(f"{'time':<{margin}}{_ruler(grid, first, first + block)}\n")
        for rank, lane in enumerate(lanes):
            text.append(f"{f'rank {rank}':<{margin}}")
            for kind, some in groupby(lane[first : first + block], lambda cell: cell[1]):
                text.append("".join(letter for letter, _ in some), LOOKS[kind][1] if kind else "")
            text.append("\n")
        text.append("\n")
    return text.append_text(_legend(study, grid, Text()))


def pieces(study: Study) -> Iterator[Piece]:
    """Yield the pieces that take time, rank by rank, and in order of time on each rank.

    If ranks have two stages, names of the second are in lower case; if they have more, names begin with the stage.
    """
    ops = study.ops
    stages = [sorted({*ops["stage"][ops["rank"] == rank].tolist()}) for rank in range(study.summary["ranks"])]
    most, kinds, names = max(map(len, stages)), "", []
    columns = ("rank", "kind", "stage", "chunk", "joined", "start", "end")
    for rank, kind, stage, chunk, joined, start, end in zip(*(ops[n].tolist() for n in columns), strict=True):
        letter = KINDS[kind].lower() if most == 2 and stage != stages[rank][0] else KINDS[kind]
        kinds += letter
        names.append(f"{stage if most > 2 else ''}{letter}{chunk}")
        if not joined:
            if end > start:
                yield Piece(rank, start, end, kinds, "+".join(names))
            kinds, names = "", []


def _grid(drawn: list[Piece], latency: float, makespan: float, width: int) -> Grid:
    """Return the most readable grid that fits.

    Tried in turn: cells of one unit of time with gaps between ops, without gaps, columns that are fractions of the
    makespan, the last two continued below, and letters instead of names.
    """
    unit = _unit([piece.end - piece.start for piece in drawn] + [latency] * (latency > 0))
    cells = round(makespan / unit)
    loose, close = (
        Grid(makespan, cells, max(math.ceil((len(p.name) + gap) / round((p.end - p.start) / unit)) for p in drawn), gap)
        for gap in (1, 0)
    )
    least = math.ceil(makespan * max(len(piece.name) / (piece.end - piece.start) for piece in drawn))
    rough = Grid(makespan, max(least, width))
    below = BLOCKS * width
    for grid, room in ((loose, width), (close, width), (rough, width), (close, below), (rough, below)):
        if grid.cells * grid.wide <= room:
            return grid
    return Grid(makespan, width, named=False)


def _unit(times: list[float]) -> float:
    """Return the greatest common divisor of `times`, up to rounding."""
    least = min(times)
    parts = {Fraction(time / least).limit_denominator(1000) for time in set(times)}
    whole = math.lcm(*(part.denominator for part in parts))
    return least * math.gcd(*(int(part * whole) for part in parts)) / whole


def _named(drawn: list[Piece], ranks: int, grid: Grid) -> list[list[tuple[str, str]]]:
    """Return (letter, kind) for each rank and column. A rank's letters form the names of its ops; the kind determines
    the colour.
    """
    idle = ("." * max(1, grid.wide - grid.gap)).ljust(grid.wide) * grid.cells
    lanes = [[(letter, "") for letter in idle] for _ in range(ranks)]
    for piece in drawn:
        first, last = grid.column(piece.start), grid.column(piece.end)
        inside = last - grid.gap - first
        for n, letter in enumerate(piece.name.ljust(inside)):
            lanes[piece.rank][first + n] = letter, piece.kinds[piece.name[:n].count("+")].upper()
        for column in range(first + inside, last):
            lanes[piece.rank][column] = " ", ""
    return lanes


def _squeezed(drawn: list[Piece], ranks: int, grid: Grid) -> list[list[tuple[str, str]]]:
    """Return (letter, kind) for each rank and column: those of the kind of op that takes most of the column's time."""
    letters = "".join(dict.fromkeys("".join(piece.kinds for piece in drawn)))
    shares = np.zeros((ranks, grid.cells, len(letters)))
    for piece in drawn:
        start, end = (time / grid.makespan * grid.cells for time in (piece.start, piece.end))
        for column in range(int(start), min(math.ceil(end), grid.cells)):
            for letter in piece.kinds:
                part = min(end, column + 1) - max(start, column)
                shares[piece.rank, column, letters.index(letter)] += part / len(piece.kinds)
    busy, most = shares.sum(2) >= 0.5, shares.argmax(2)
    return [
        [(letters[n], letters[n].upper()) if works else (".", "") for works, n in zip(*lane, strict=True)]
        for lane in zip(busy, most, strict=True)
    ]


def _ruler(grid: Grid, first: int, last: int) -> str:
    """Return the ruler above columns `first` to `last`: round times, each at its column."""
    scale = grid.cells * grid.wide / grid.makespan
    power = 10.0 ** (math.floor(math.log10(grid.makespan)) - 2)
    for step in (factor * power * 10**more for more in range(4) for factor in (1, 2, 5)):
        labels = [(round(n * step * scale), f"{n * step:.6g}") for n in range(int(grid.makespan / step) + 1)]
        if step * scale >= 2 + max(len(label) for _, label in labels):
            break
    text = ""
    for column, label in labels:
        if first <= column and column + len(label) <= last:
            text = f"{text:<{column - first}}{label}"
    return text


def _legend(study: Study, grid: Grid, text: Text) -> Text:
    took = study.ops["end"] > study.ops["start"]
    seen = {KINDS[kind] for kind in study.ops["kind"][took]}
    for kind, (meaning, style) in LOOKS.items():
        if kind in seen:
            text.append(kind, style)
            text.append(f" {meaning}  ")
    text.append(f". idle\n{'a cell' if grid.wide > 1 else 'a column'} spans a time of {grid.makespan / grid.cells:.4g}")
    held = max(np.unique(study.ops["stage"][study.ops["rank"] == rank]).size for rank in range(study.summary["ranks"]))
    if not grid.named:
        text.append(" and has the letter of the op that takes most of it")
    elif held > 2:
        text.append("; names are stage, kind and micro-batch")
    if held == 2:
        text.append("; small letters: the second stage of a rank")
    return text
