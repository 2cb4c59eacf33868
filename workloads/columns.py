"""Columns of a table: the cells of one column as numbers or words, and what the user should know about it.

A column has numbers if most of its cells are numbers; every other cell counts as missing, and its number is NaN. In a
column of words, an empty cell or a question mark is a word of its own. A unit that all numbers of a column share, and
commas between thousands, are removed, with a note.
"""

import contextlib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

CLASSES = 100  # largest number of classes of a label; columns with more different words are left out
LARGEST = 1e100  # largest number; squares of larger ones overflow, and some programs write them for a missing cell
LONGEST = 60  # characters of a word or a name
UNKNOWN = "?"  # the word for an empty cell
BLANK = {"", UNKNOWN}
ABSENT = BLANK | {"na", "n/a", "#n/a", "nan", "null", "none", "nil", "-", "--", "."}
"""Cells, in lower case, that do not count in deciding whether most cells are numbers or words."""
UNIT = re.compile(r"([$€£¥]?)\s*([^$€£¥%]*?)\s*([$€£¥%]?)")
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
SURELY_GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3}(,\d{3})+(\.\d+)?|,\d{3}\.\d+)")  # not 1,234, which may be 1.234
NINES = re.compile(r"-?9{2,}(\.9+)?")
REPEATED, FAR = 2, 10  # an outlier: occurs at least this often, at a distance of this many times the others' range
COUNTER = re.compile(r"(unnamed.*|index|row|no\.?|nr\.?|.*id)?", re.IGNORECASE)


class Column(NamedTuple):
    """A column as read. `numbers` are its values, NaN where one is missing, or indices into `words`.

    `gap` describes the first cell without a number; `notes` say what was changed or looks odd.
    """

    name: str
    numbers: np.ndarray  # (rows,)
    words: tuple[str, ...] = ()
    gap: str = ""
    notes: tuple[str, ...] = ()


class Unusable(ValueError):
    """Raised if a column can be neither a feature nor a label. The message explains why."""


def read(name: str, cells: Sequence[str], lines: Sequence[int], commas_part_cells: bool) -> Column:
    """Return the column with these cells, which come from these lines of the file. Raise Unusable if it can be neither
    a feature nor a label.

    If `commas_part_cells`, commas separate cells, so a comma within a cell cannot be a decimal comma.
    """
    with contextlib.suppress(ValueError):  # in most columns all cells are numbers, which are converted together
        numbers = np.fromiter(map(float, cells), float, len(cells))
        if (abs(numbers) <= LARGEST).all() and "_" not in "".join(cells):
            return Column(name, numbers, notes=_far(name, numbers))
    distinct = dict.fromkeys(cells)  # in order of appearance, since notes quote the first
    if distinct.keys() <= BLANK:
        raise Unusable(f"{name} was left out: it is empty.")
    plain, notes = _plain(name, [cell for cell in distinct if cell.lower() not in ABSENT], commas_part_cells)
    known = {cell: as_number(plain.get(cell, cell)) for cell in distinct}
    words = sum(cell in plain and known[cell] is None and not _is_float(plain[cell]) for cell in cells)
    if 2 * words >= sum(cell in plain for cell in cells) and plain:
        return _words(name, cells, set(distinct))
    numbers = np.array([np.nan if known[cell] is None else known[cell] for cell in cells])
    if np.isnan(numbers).all():
        odd = next(cell for cell in cells if cell not in BLANK)
        raise Unusable(f"{name} was left out: no cell is a number of at most {LARGEST:g}; one is {odd[:40]!r}.")
    return Column(name, numbers, (), _gap(name, cells, numbers, lines), (*notes, *_far(name, numbers)))


def as_number(cell: str) -> float | None:
    """Return the cell as a number of at most LARGEST, or None if it is not a number. Python's 1_000 is not accepted."""
    return float(cell) if _is_float(cell) and abs(float(cell)) <= LARGEST else None


def is_numeric(cell: str) -> bool:
    """Return whether the cell is a number, with or without a unit and separators between thousands."""
    bare = UNIT.fullmatch(cell)
    return as_number(bare[2].replace(",", "") if bare else cell) is not None


def is_word(cell: str) -> bool:
    """Return whether the cell is neither a number nor missing."""
    return cell.lower() not in ABSENT and not is_numeric(cell)


def counts_rows(column: Column, name: str) -> bool:
    """Return whether the column only numbers the rows, from 0 or 1. `name` is its name in the file, or ""."""
    first = column.numbers[0]
    return (
        not column.words
        and first in (0, 1)
        and COUNTER.fullmatch(name) is not None
        and np.array_equal(column.numbers, first + np.arange(len(column.numbers)))
    )


def _is_float(cell: str) -> bool:
    with contextlib.suppress(ValueError):
        return "_" not in cell and float(cell) is not None
    return False


def _words(name: str, cells: Sequence[str], distinct: set[str]) -> Column:
    words = sorted(distinct - {""} | ({UNKNOWN} if "" in distinct else set()))
    if len(words) > CLASSES:
        raise Unusable(f"{name} was left out: it has more than {CLASSES} different words; one is {cells[0][:40]!r}.")
    code = {word: float(n) for n, word in enumerate(words)}
    return Column(name, np.array([code[cell or UNKNOWN] for cell in cells]), tuple(word[:LONGEST] for word in words))


def _plain(name: str, cells: Sequence[str], commas_part_cells: bool) -> tuple[dict[str, str], list[str]]:
    """Return the cells without a shared unit and commas between thousands, and notes on what was removed.

    The cells are unchanged unless all of them become numbers.
    """
    as_they_are = {cell: cell for cell in cells}
    if all(map(_is_float, cells)):
        return as_they_are, []
    split = {cell: UNIT.fullmatch(cell) for cell in cells}
    units = {bare and (bare[1], bare[3]) for bare in split.values()}
    shared = units.pop() if len(units) == 1 else None
    plain = {cell: split[cell][2] for cell in cells} if shared and any(shared) else as_they_are
    notes = []
    if plain is not as_they_are:
        notes.append(f"{name} was read without {''.join(shared)}: {cells[0]!r} is {plain[cells[0]]}.")
    grouped = [cell for cell, bare in plain.items() if GROUPED.fullmatch(bare)]
    if grouped and (commas_part_cells or any(SURELY_GROUPED.fullmatch(plain[cell]) for cell in grouped)):
        plain = {cell: bare.replace(",", "") if cell in grouped else bare for cell, bare in plain.items()}
        notes.append(f"{name} was read without commas between thousands: {grouped[0]!r} is {plain[grouped[0]]}.")
    return (plain, notes) if all(map(_is_float, plain.values())) else (as_they_are, [])


def _gap(name: str, cells: Sequence[str], numbers: np.ndarray, lines: Sequence[int]) -> str:
    """Return a description of where the first number is missing, or "" if none is missing."""
    if not (missing := np.flatnonzero(np.isnan(numbers))).size:
        return ""
    cell = cells[missing[0]]
    elsewhere = "" if cell.lower() in ABSENT else ", and mostly numbers elsewhere"
    return f"line {lines[missing[0]]}: {name} is {repr(cell[:40]) + ' there' if cell else 'empty'}{elsewhere}"


def _far(name: str, numbers: np.ndarray) -> tuple[str, ...]:
    """Return a warning, if any, about a value that is so far from all others that it may mark missing cells."""
    values, counts = np.unique(numbers[~np.isnan(numbers)], return_counts=True)
    for end, rest in ((0, values[1:]), (-1, values[:-1])):
        if len(rest) < 2:
            continue
        value, gap = values[end], abs(values[end] - rest[end])
        bar = 1 if NINES.fullmatch(f"{value:.15g}") else FAR if counts[end] >= REPEATED else np.inf
        if gap > bar * (rest[-1] - rest[0]):
            where = f"{counts[end]:,} row{'s' * int(counts[end] != 1)}, far from the rest ({rest[0]:g} to {rest[-1]:g})"
            return (f"{name} is {value:.15g} in {where}; if this marks missing cells, empty them.",)
    return ()
