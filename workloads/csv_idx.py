"""CSV and IDX files, parsed as tables, or one sentence about what is wrong with them.

Nothing is guessed where a guess could be wrong: an empty cell, a question mark, or a word among numbers, is reported
with its line and column, and repaired only in the way that is asked for. Sizes are bounded before anything large is
allocated.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import PureWindowsPath
from typing import Literal, NamedTuple

import numpy as np

from workloads.table import CLASSES, LEAST, Table

MOST_BYTES = 10_000_000  # of a file as it comes
MOST_UNPACKED = 50_000_000  # of one that was gzipped
MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 200_000, 2000, 10_000_000
LONGEST = 60  # characters of a name
LARGEST = 1e100  # a number; the squares of those beyond have no sum, and programs write them where a cell is missing
OFFERED = "or take the mean of the column."  # at the end of what can be repaired
MISSING = {"", "?"}  # cells of any column; among numbers, every word is missing too
SEPARATOR = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)  # the first line of files that are written for Excel
COMMA, POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d*\.\d+")
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}  # of IDX

Repair = Literal["", "rows", "mean"]


class Damaged(ValueError):
    """Cells are missing, or are no numbers where numbers should be; `rows` would be left out by a repair of "rows"."""

    def __init__(self, message: str, rows: int):
        super().__init__(message)
        self.rows = rows


class Column(NamedTuple):
    """A column as it was read: numbers, NaN where `bad`, and the words that they stand for if there are."""

    name: str
    numbers: np.ndarray  # (rows,)
    bad: np.ndarray  # (rows,) of bool
    words: tuple[str, ...] = ()


def from_csv(content: bytes, file: str, repair: Repair = "") -> Table:
    """Return the table in a CSV file called `file`: rows of equal length, with or without a header.

    Missing cells, and words among numbers, are Damaged; or with a `repair` their "rows" are left out, or they become
    the "mean" of their column, the commonest of its words. A row without a label, the last column, is left out anyway.
    """
    text = _text(content, file)
    read = list(_rows(text, file))
    if not read:
        raise ValueError(f"{file} has no cell with anything in it; a table needs at least {LEAST} rows.")
    lines, rows = zip(*read, strict=True)
    notes = []
    if _delimiter(text) != "," and _has_decimal_commas(rows):
        rows = [[_with_point(cell) for cell in row] for row in rows]
        notes.append("table: decimal commas were read as decimal points.")
    named = _has_header(rows[0], rows[min(1, len(rows) - 1)])
    if (count := len(rows) - named) < LEAST:
        raise ValueError(f"{file} has {count} row{'s' * (count != 1)}; a table needs at least {LEAST}.")
    names = [(named and name[:LONGEST]) or f"column {n}" for n, name in enumerate(rows[0], 1)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{file} has two columns that are called {twice!r}; names must differ.")
    columns = []
    for name, cells in zip(names, zip(*rows[named:], strict=True), strict=True):
        if set(cells) <= MISSING:
            notes.append(f"table: {name} was left out, it is empty.")
            continue
        column = _column(name, cells)
        if column is None:
            notes.append(f"table: {name} was left out, it has more than {CLASSES} different words.")
        else:
            columns.append(column)
    if len(columns) < 2:
        raise ValueError(f"{file} has {len(columns)} usable columns; features and a label are needed.")
    if any(column.bad.any() for column in columns):
        if not repair:
            raise _damage(columns, rows[named:], lines[named:], names, file)
        columns, told = _repaired(columns, repair)
        notes.append(told)
        if len(columns[0].numbers) < LEAST:
            raise ValueError(f"{file} has {len(columns[0].numbers)} whole rows; a table needs at least {LEAST}.")
    words = {column.name: column.words for column in columns if column.words}
    cells = np.array([column.numbers for column in columns]).T
    return Table(tuple(column.name for column in columns), cells, words, notes=tuple(notes), file=_stem(file))


def from_idx(contents: list[bytes], file: str) -> Table:
    """Return the table of two IDX files, gzipped or not, in any order: images or rows (n, ...), and labels (n,)."""
    if len(contents) != 2:
        raise ValueError(f"IDX comes in two files, images and labels, and {len(contents)} came; add both together.")
    one, two = (_idx(content, file) for content in contents)
    rows, labels = (one, two) if one.ndim > two.ndim else (two, one)
    if labels.ndim != 1 or rows.ndim < 2:
        raise ValueError(
            f"of two IDX files one has labels, in 1 dimension, and one rows or images, in 2 or more; these have "
            f"{one.ndim} and {two.ndim}."
        )
    if len(rows) != len(labels):
        raise ValueError(
            f"there are {len(labels):,} labels for {len(rows):,} images; these files do not belong together."
        )
    if len(rows) < LEAST:
        raise ValueError(f"there are {len(rows)} images; a table needs at least {LEAST}.")
    flat = rows.reshape(len(rows), -1)
    cells = np.concatenate([flat, labels[:, None]], axis=1).astype(np.float64)
    if not (abs(cells) <= LARGEST).all():
        raise ValueError(
            f"{file} has numbers that are not finite, or beyond {LARGEST:g}; replace them or leave their rows out."
        )
    names = [f"pixel {n}" for n in range(flat.shape[1])]
    shape = (1, *rows.shape[1:]) if rows.ndim == 3 else rows.shape[1:] if rows.ndim == 4 else ()
    return Table((*names, "label"), cells, {}, tuple(map(int, shape)), file=_stem(file.partition(" and ")[0]))


def _text(content: bytes, file: str) -> str:
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file} has {len(content):,} bytes; at most {MOST_BYTES:,} are read.")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} is no text in UTF-8, byte {error.start:,} is none; save it as CSV UTF-8.") from None
    if "\0" in text:
        raise ValueError(f"{file} has zero bytes in it and is no CSV; save the table as CSV UTF-8.")
    if not text.strip():
        raise ValueError(f"{file} is empty; a table needs at least {LEAST} rows.")
    return text


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells without spaces around them) of every row that is not blank, all of one length."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True, skipinitialspace=True)
    width = count = 0
    if SEPARATOR.match(text):
        next(reader)
    try:
        for row in (list(map(str.strip, row)) for row in reader):
            if not any(row):
                continue
            if not width:
                width = len(row)
                if not 2 <= width <= MOST_COLUMNS:
                    raise ValueError(
                        f"{file} has {width:,} column{'s' * (width != 1)}; 2 to {MOST_COLUMNS:,} are read, between "
                        "commas, semicolons or tabs."
                    )
            if len(row) != width:
                raise ValueError(f"{file}, line {reader.line_num}: {len(row)} cells where the first row has {width}.")
            count += 1
            if count > MOST_ROWS or count * width > MOST_CELLS:
                raise ValueError(
                    f"{file} is too large; at most {MOST_ROWS:,} rows and {MOST_CELLS:,} cells are read, so take some "
                    "of its rows."
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{file}, line {reader.line_num}: this is no CSV ({error}).") from None


def _has_header(first: list[str], second: list[str]) -> bool:
    """Return whether the first row has names: words where the second has numbers, or only words."""
    pairs = [(_number(a), _number(b)) for a, b in zip(first, second, strict=True)]
    return all(a is None for a, _ in pairs) or any(a is None and b is not None for a, b in pairs)


def _delimiter(text: str) -> str:
    """Return what stands between the cells of the first row; what is quoted does not count, nor do decimal commas."""
    if said := SEPARATOR.match(text):
        return said[1]
    first = re.sub('"[^"]*"', "", text.lstrip().partition("\n")[0])
    if (others := max(";\t", key=first.count)) in first:
        return others if first.count(others) >= len(re.findall(r"(?<!\d),|,(?!\d)", first)) else ","
    return ","


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether some cells are numbers with a comma, and none is one with a point."""
    cells = [cell for row in rows for cell in row]
    return any(map(COMMA.fullmatch, cells)) and not any(map(POINT.fullmatch, cells))


def _with_point(cell: str) -> str:
    return cell.replace(",", ".") if COMMA.fullmatch(cell) else cell


def _column(name: str, cells: Sequence[str]) -> Column | None:
    """Return a column, None if it has too many different words."""
    bad = np.zeros(len(cells), bool)
    with contextlib.suppress(ValueError):  # almost always all are numbers: then they are converted at once
        numbers = np.fromiter(map(float, cells), float, len(cells))
        if (abs(numbers) <= LARGEST).all() and "_" not in "".join(cells):
            return Column(name, numbers, bad)
    known = {cell: None if cell in MISSING else _number(cell) for cell in set(cells)}
    there = [cell for cell in cells if cell not in MISSING]
    if 2 * sum(known[cell] is None for cell in there) < len(there):  # mostly numbers
        numbers = np.array([np.nan if known[cell] is None else known[cell] for cell in cells])
        return Column(name, numbers, np.isnan(numbers))
    words = sorted({*there})
    if len(words) > CLASSES:
        return None
    code = {word: float(n) for n, word in enumerate(words)}
    numbers = np.array([code.get(cell, np.nan) for cell in cells])
    return Column(name, numbers, np.isnan(numbers), tuple(word[:LONGEST] for word in words))


def _damage(columns, rows, lines, names, file: str) -> Damaged:
    """Return what is wrong with the cells: the first one by its line, how many there are, and what may be done."""
    bad = np.array([column.bad for column in columns])  # (columns, rows)
    left, cells = int(bad.any(axis=0).sum()), int(bad.sum())
    row = int(bad.any(axis=0).argmax())
    column = columns[int(bad[:, row].argmax())]
    cell = rows[row][names.index(column.name)]
    what = "is empty" if not cell else f"is {cell[:40]!r} there"
    elsewhere = "" if cell in MISSING else ", and mostly numbers elsewhere"
    such = "it is the only such cell" if cells == 1 else f"{cells:,} such cells are in {left:,} of {len(lines):,} rows"
    return Damaged(
        f"{file}, line {lines[row]}: {column.name} {what}{elsewhere}; {such}: fill in what is missing, leave out "
        f"{left:,} row{'s' * (left != 1)}, {OFFERED}",
        left,
    )


def _repaired(columns: Sequence[Column], repair: Repair) -> tuple[list[Column], str]:
    """Return the columns without bad cells, and what was done."""
    bad = np.array([column.bad for column in columns])  # (columns, rows)
    out = bad.any(axis=0) if repair == "rows" else bad[-1]
    filled = int(bad[:, ~out].sum())
    rows = int(out.sum())
    left = f"{rows:,} row{'s' * (rows != 1)} with missing cells left out" if rows else ""
    mean = f"{filled:,} missing cell{'s' * (filled != 1)} filled with the mean of the column" if filled else ""
    whole = []
    for column in columns:
        numbers = column.numbers.copy()
        good = numbers[~column.bad]
        numbers[column.bad] = np.bincount(good.astype(int)).argmax() if column.words else good.mean()
        whole.append(column._replace(numbers=numbers[~out], bad=column.bad[~out] & False))
    return whole, f"table: {', '.join(filter(None, (left, mean)))}."


def _stem(file: str) -> str:
    """Return a file's name as a word: "Messy data.csv" is messy_data."""
    return re.sub(r"\W+", "_", PureWindowsPath(file).stem.lower(), flags=re.ASCII).strip("_")[:40]


def _number(cell: str) -> float | None:
    """Return the cell as a number up to LARGEST, None if it is none; Python's own 1_000 is none."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if abs(number) <= LARGEST and "_" not in cell else None


def _idx(content: bytes, file: str) -> np.ndarray:
    """Return the array of an IDX file."""
    if len(content) > MOST_BYTES:
        raise ValueError(f"{file} has {len(content):,} bytes; at most {MOST_BYTES:,} are read.")
    if content[:2] == b"\x1f\x8b":
        try:
            unpack = zlib.decompressobj(wbits=31)
            content = unpack.decompress(content, MOST_UNPACKED)
        except zlib.error as error:
            raise ValueError(f"{file} cannot be unpacked: {error}.") from None
        if not unpack.eof:
            raise ValueError(f"{file} is cut short, or unpacks to more than {MOST_UNPACKED:,} bytes.")
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in TYPES or not 1 <= content[3] <= 4:
        raise ValueError(
            f"{file} begins with {content[:4].hex(' ') or 'nothing'}; IDX begins with two zeros, a type and 1 to 4 "
            "dimensions."
        )
    kind, dimensions = np.dtype(TYPES[content[2]]), content[3]
    header = 4 + 4 * dimensions
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, header, 4)]
    announced = math.prod(shape)
    if len(content) != header + announced * kind.itemsize or not announced:
        raise ValueError(
            f"{file} has {max(0, len(content) - header):,} bytes of data where it announces "
            f"{' x '.join(map(str, shape))} numbers of {kind.itemsize}."
        )
    if announced > MOST_CELLS or announced // shape[0] > MOST_COLUMNS:
        raise ValueError(
            f"{file} has {announced:,} numbers in {shape[0]:,} rows; at most {MOST_CELLS:,} are read, "
            f"{MOST_COLUMNS:,} in a row."
        )
    return np.frombuffer(content, kind, offset=header).reshape(shape)
