"""CSV and IDX files, parsed as tables, or one sentence about what is wrong with them.

Nothing is guessed where a guess could be wrong: an empty cell, or a word among numbers, is reported with its line and
column. Sizes are bounded before anything large is allocated.
"""

from __future__ import annotations

import contextlib
import csv
import io
import math
import zlib
from collections.abc import Iterator, Sequence

import numpy as np

from workloads.table import CLASSES, LEAST, Table

MOST_BYTES = 10_000_000  # of a file as it comes
MOST_UNPACKED = 50_000_000  # of one that was gzipped
MOST_ROWS, MOST_COLUMNS, MOST_CELLS = 200_000, 2000, 10_000_000
LONGEST = 60  # characters of a name
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}  # of IDX


def from_csv(content: bytes, file: str) -> Table:
    """Return the table in a CSV file called `file`: rows of equal length, with or without a header."""
    read = list(_rows(_text(content, file), file))
    if len(read) < LEAST:
        raise ValueError(f"{file} has {len(read)} rows; a table has {LEAST} or more.")
    lines, rows = zip(*read, strict=True)
    named = _has_header(*rows[:2])
    names = [(named and name[:LONGEST]) or f"column {n}" for n, name in enumerate(rows[0], 1)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{file} has two columns that are called {twice!r}; names must differ.")
    columns, words, left = [], {}, []
    for name, cells in zip(names, zip(*rows[named:], strict=True), strict=True):
        numbers = _column(cells, lines[named:], name, file)
        if numbers is None:
            known = sorted(set(cells))
            if len(known) > CLASSES:
                left.append(name)
                continue
            words[name] = tuple(word[:LONGEST] for word in known)
            code = {word: float(n) for n, word in enumerate(known)}
            numbers = [code[cell] for cell in cells]
        columns.append((name, numbers))
    if len(columns) < 2:
        raise ValueError(f"{file} has {len(columns)} usable columns; features and a label are needed.")
    notes = tuple(f"table: {name} was left out, it has more than {CLASSES} different words." for name in left)
    cells = np.array([numbers for _, numbers in columns]).T
    return Table(tuple(name for name, _ in columns), cells, words, notes=notes)


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
        raise ValueError(f"there are {len(rows)} images; a table has {LEAST} or more.")
    flat = rows.reshape(len(rows), -1)
    cells = np.concatenate([flat, labels[:, None]], axis=1).astype(np.float64)
    if not np.isfinite(cells).all():
        raise ValueError(f"{file} has numbers that are not finite; replace them or leave their rows out.")
    names = [f"pixel {n}" for n in range(flat.shape[1])]
    shape = (1, *rows.shape[1:]) if rows.ndim == 3 else rows.shape[1:] if rows.ndim == 4 else ()
    return Table((*names, "label"), cells, {}, tuple(map(int, shape)))


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
        raise ValueError(f"{file} is empty; a table has {LEAST} rows or more.")
    return text


def _rows(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells without spaces around them) of every row that is not blank, all of one length."""
    first = text.lstrip().partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
    width = count = 0
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


def _column(cells: Sequence[str], lines: Sequence[int], name: str, file: str) -> Sequence[float] | None:
    """Return the numbers of a column, None if it has words."""
    with contextlib.suppress(ValueError):  # almost always all are numbers: then they are converted at once
        numbers = np.fromiter(map(float, cells), float, len(cells))
        if np.isfinite(numbers).all() and "_" not in "".join(cells):
            return numbers
    if "" in cells:
        raise ValueError(f"{file}, line {lines[cells.index('')]}: {name} is empty; fill it in, or leave the row out.")
    known = {cell: _number(cell) for cell in set(cells)}
    numbers = [known[cell] for cell in cells]
    wrong = numbers.count(None)
    if wrong and 2 * wrong < len(numbers):
        at = numbers.index(None)
        raise ValueError(
            f"{file}, line {lines[at]}: {name} is {cells[at][:40]!r} there, and mostly numbers elsewhere; correct it."
        )
    return None if wrong else numbers


def _number(cell: str) -> float | None:
    """Return the cell as a finite number, None if it is none; Python's own 1_000 is none."""
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in cell else None


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
