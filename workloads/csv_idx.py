"""CSV and IDX files: parse them as tables, or explain what is wrong with them.

Nothing is guessed if the guess could be wrong: a missing number stays missing, and its line and column are recorded.
Sizes are checked before anything large is allocated.
"""

import csv
import io
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import PureWindowsPath

import numpy as np

from workloads import columns, file_formats
from workloads.columns import LARGEST, LONGEST
from workloads.stored_table import LEAST, MOST_CELLS, Table

MOST_BYTES = 10_000_000  # of a file as uploaded
MOST_UNPACKED = 50_000_000  # of a gzipped file after unpacking
MOST_ROWS, MOST_COLUMNS = 200_000, 2000
SEPARATOR = re.compile(r"sep=([,;\t])\r?\n", re.IGNORECASE)  # the first line of files written for Excel
COMMA, POINT = re.compile(r"[+-]?\d+,\d+"), re.compile(r"[+-]?\d*\.\d+")
POINTS = re.compile(r"[+-]?\d{1,3}(\.\d{3})+,\d+")  # points between thousands, and a decimal comma
BETWEEN_BLANKS = re.compile(r'"[^"]*"|[^\s"]+')
NUMBERS = re.compile(r"[-+.\d]\S* +[-+.\d]")  # separated by blanks, in a line that also has tabs
TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}  # of IDX


def from_csv(content: bytes, file: str) -> Table:
    """Return the table in a text file called `file`: rows of equal length, with or without a header.

    Cells are separated by commas, semicolons, tabs or spaces. Columns from which nothing can be learned are left out,
    with a note. Raise ValueError if the file is not a table. If it has another known format, the message names the
    format and says how to convert it.
    """
    file_formats.refuse(content, file)
    text = _text(content, file)
    text = _with_tabs(text) or text
    delimiter = _delimiter(text)
    lines, rows = _parse(text, delimiter, file)
    notes = []
    if delimiter != "," and _has_decimal_commas(rows):
        rows = [[_with_point(cell) for cell in row] for row in rows]
        notes.append("decimal commas were read as decimal points.")
    named = _has_header(rows)
    if (count := len(rows) - named) < LEAST:
        raise ValueError(f"{file} has {count} row{'s' * (count != 1)}; a table needs at least {LEAST}.")
    given = [name[:LONGEST] if named else "" for name in rows[0]]
    names = [name or f"column {n}" for n, name in enumerate(given, 1)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{file} has two columns called {twice!r}; give them different names.")
    usable = []
    for name, cells in zip(names, zip(*rows[named:], strict=True), strict=True):
        try:
            usable.append(columns.read(name, cells, lines[named:], delimiter == ","))
        except columns.Unusable as error:
            notes.append(str(error))
    if len(usable) > 2 and usable[0].name == names[0] and columns.counts_rows(usable[0], given[0]):
        notes.append(f"{names[0]} was left out, since it only counts the rows.")
        del usable[0]
    if len(usable) < 2:
        why = f": {' '.join(notes)}"[:300] if notes else "."
        many = f"{len(usable)} usable column{'s' * (not usable)}"
        raise ValueError(f"{file} has {many}, but features and a label are needed{why}")
    notes += [note for column in usable for note in column.notes]
    return Table(
        tuple(column.name for column in usable),
        np.array([column.numbers for column in usable]).T,
        {column.name: column.words for column in usable if column.words},
        notes=tuple(notes),
        file=_stem(file),
        gaps={column.name: column.gap for column in usable if column.gap},
    )


def from_idx(contents: list[bytes], file: str) -> Table:
    """Return the table of two IDX files, gzipped or not, in any order.

    One has images or rows, (n, ...), the other labels, (n,). Raise ValueError if they do not form a table.
    """
    if len(contents) != 2:
        raise ValueError(
            f"IDX data needs two files, images and labels, but there are {len(contents)}; add both together."
        )
    one, two = (_idx(content, file) for content in contents)
    rows, labels = (one, two) if one.ndim > two.ndim else (two, one)
    if labels.ndim != 1 or rows.ndim < 2:
        raise ValueError(
            "expected one IDX file of labels (1 dimension) and one of rows or images (2 or more), but these have "
            f"{one.ndim} and {two.ndim} dimensions."
        )
    if len(rows) != len(labels):
        raise ValueError(
            f"there are {len(labels):,} labels for {len(rows):,} images; choose two files that belong together."
        )
    if len(rows) < LEAST:
        raise ValueError(f"there are {len(rows)} images; a table needs at least {LEAST}.")
    flat = rows.reshape(len(rows), -1)
    cells = np.concatenate([flat, labels[:, None]], axis=1).astype(np.float64)
    if not (abs(cells) <= LARGEST).all():
        raise ValueError(
            f"{file} has numbers that are infinite, NaN or beyond {LARGEST:g}; replace them or remove their rows."
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
        raise ValueError(
            f"{file} is not UTF-8 text (invalid byte at position {error.start:,}); save it as CSV UTF-8."
        ) from None
    if "\0" in text:
        raise ValueError(f"{file} contains zero bytes, so it is not CSV; save the table as CSV UTF-8.")
    if not text.strip():
        raise ValueError(f"{file} is empty; a table needs at least {LEAST} rows.")
    return text


def _parse(text: str, delimiter: str, file: str) -> tuple[tuple[int, ...], Sequence[list[str]]]:
    """Return (the line of each row, the cells of each row)."""
    if not (read := list(_rows(text, delimiter, file))):
        raise ValueError(f"{file} has only empty cells; a table needs at least {LEAST} rows.")
    lines, rows = zip(*read, strict=True)
    return lines, rows


def _rows(text: str, delimiter: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Yield (line, cells without surrounding spaces) of every row that is not blank, all of the same length."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True, skipinitialspace=True)
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
                        f"{file} has {width:,} column{'s' * (width != 1)}; a table needs 2 to {MOST_COLUMNS:,}, "
                        "separated by commas, semicolons, tabs or spaces."
                    )
            if len(row) != width:
                cells = f"{len(row)} cell{'s' * (len(row) != 1)}"
                raise ValueError(f"{file}, line {reader.line_num}: {cells}, but the first row has {width}.")
            count += 1
            if count > MOST_ROWS or count * width > MOST_CELLS:
                raise ValueError(
                    f"{file} is too large; use a part of it, with at most {MOST_ROWS:,} rows and {MOST_CELLS:,} cells."
                )
            yield reader.line_num, row
    except csv.Error as error:
        raise ValueError(f"{file}, line {reader.line_num}: this is not valid CSV ({error}).") from None


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row has names: words above numbers, or words that do not recur in their columns.

    The second rule is for tables that contain only words, where a name does not recur but most other words do.
    """
    first, second = rows[0], rows[min(1, len(rows) - 1)]
    if any(columns.is_word(a) and columns.is_numeric(b) for a, b in zip(first, second, strict=True)):
        return True
    if any(map(columns.is_numeric, first)):
        return False
    return 2 * sum(any(cell == row[n] for row in rows[1:]) for n, cell in enumerate(first)) < len(first)


def _with_tabs(text: str) -> str:
    """Return the text with tabs in place of the blanks between cells, or "" if blanks do not separate its cells."""
    lines = text.splitlines()
    first, second, *_ = [*filter(str.strip, lines), "", ""]
    bare = re.sub('"[^"]*"', "", first)
    one, two = (len(BETWEEN_BLANKS.findall(line)) for line in (first, second))
    if set(",;") & {*bare} or one < 2 or one != two or ("\t" in bare and not NUMBERS.search(bare)):
        return ""
    return "\n".join("\t".join(BETWEEN_BLANKS.findall(line)) for line in lines)


def _delimiter(text: str) -> str:
    """Return the delimiter of the first row, ignoring quoted text and decimal commas."""
    if said := SEPARATOR.match(text):
        return said[1]
    first = re.sub('"[^"]*"', "", text.lstrip().partition("\n")[0])
    if (others := max(";\t", key=first.count)) in first:
        return others if first.count(others) >= len(re.findall(r"(?<!\d),|,(?!\d)", first)) else ","
    return ","


def _has_decimal_commas(rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the table's numbers have decimal commas.

    They do if some cells have a decimal comma and none has a decimal point, or if a cell has both points between
    thousands and a decimal comma.
    """
    cells = [cell for row in rows for cell in row]
    commas = any(map(COMMA.fullmatch, cells)) and not any(map(POINT.fullmatch, cells))
    return commas or any(map(POINTS.fullmatch, cells))


def _with_point(cell: str) -> str:
    cell = cell.replace(".", "") if POINTS.fullmatch(cell) else cell
    return cell.replace(",", ".") if COMMA.fullmatch(cell) else cell


def _stem(file: str) -> str:
    """Return a file's name as a word: messy_data for "Messy data.csv", for example."""
    return re.sub(r"\W+", "_", PureWindowsPath(file).stem.lower(), flags=re.ASCII).strip("_")[:40]


def _idx(content: bytes, file: str) -> np.ndarray:
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
            f"{file} is not an IDX file: it begins with {content[:4].hex(' ') or 'nothing'} instead of two zero bytes, "
            "a type and a number of dimensions from 1 to 4."
        )
    kind, dimensions = np.dtype(TYPES[content[2]]), content[3]
    header = 4 + 4 * dimensions
    shape = [int.from_bytes(content[at : at + 4], "big") for at in range(4, header, 4)]
    announced = math.prod(shape)
    if len(content) != header + announced * kind.itemsize or not announced:
        raise ValueError(
            f"{file} has {max(0, len(content) - header):,} bytes of data, but its header announces "
            f"{' x '.join(map(str, shape))} numbers of {kind.itemsize} bytes."
        )
    if announced > MOST_CELLS or announced // shape[0] > MOST_COLUMNS:
        raise ValueError(
            f"{file} has {announced:,} numbers in {shape[0]:,} rows; use at most {MOST_CELLS:,} numbers, and "
            f"{MOST_COLUMNS:,} per row."
        )
    return np.frombuffer(content, kind, offset=header).reshape(shape)
