"""File formats that cannot be read as tables: recognise them by their first bytes, and say how to convert them."""

import io
import json
import zipfile
from collections.abc import Sequence
from pathlib import PureWindowsPath

SPREADSHEET = "open it and save the sheet as CSV UTF-8"
PANDAS = 'with pandas: pandas.{}("{{file}}").to_csv("{{new}}", index=False)'
UNPACK = "unpack it first"
PICTURE = "a table has a row of numbers for each sample"
NUMPY = 'with NumPy: x = numpy.load("{file}"); numpy.savetxt("{new}", x.reshape(len(x), -1), delimiter=",")'
STARTS: tuple[tuple[bytes, str, str], ...] = (
    (b"\x93NUMPY", "a NumPy array", f"save it as CSV {NUMPY}"),
    (b"PAR1", "a Parquet file", f"save it as CSV {PANDAS.format('read_parquet')}"),
    (b"ARROW1", "a Feather file", f"save it as CSV {PANDAS.format('read_feather')}"),
    (b"\x89HDF", "an HDF5 file", f"save it as CSV {PANDAS.format('read_hdf')}"),
    (b"MATLAB 5.0", "a MATLAB file", 'save it as CSV in MATLAB: writematrix(x, "{new}")'),
    (
        b"SQLite format 3",
        "an SQLite database",
        'save it as CSV: sqlite3 -csv "{file}" "select * from NAME" > "{new}"',
    ),
    (b"\xd0\xcf\x11\xe0", "a spreadsheet", SPREADSHEET),
    *((bytes([0x80, n]), "a pickle", f"save it as CSV {PANDAS.format('read_pickle')}") for n in range(2, 6)),
    (b"BZh", "compressed", UNPACK),
    (b"\xfd7zXZ", "compressed", UNPACK),
    (b"\x28\xb5\x2f\xfd", "compressed", UNPACK),
    (b"7z\xbc\xaf", "compressed", UNPACK),
    (b"Rar!", "compressed", UNPACK),
    (b"%PDF", "a PDF", "copy its table into a spreadsheet and save that as CSV UTF-8"),
    (b"\x89PNG", "an image", PICTURE),
    (b"\xff\xd8\xff", "an image", PICTURE),
    (b"GIF8", "an image", PICTURE),
)
TEXTS = (".csv", ".tsv", ".txt", ".data", ".dat")


def refuse(content: bytes, file: str) -> None:
    """Raise ValueError if a file's format is not supported. The message names the format and says what to do."""
    if said := zip_of(content, file) if content[:2] == b"PK" else _by_its_start(content) or _text(content):
        what, remedy = said
        new = f"{PureWindowsPath(file).stem[-60:]}.csv"
        raise ValueError(f"{file[-100:]} is {what}; {remedy.format(file=file[-100:], new=new)}.")


def is_called_like_a_table(file: str) -> bool:
    """Return whether this is the usual name of a text file with a table."""
    return file.lower().endswith(TEXTS) and not file.lower().endswith("readme.txt")


def zip_of(content: bytes, file: str) -> tuple[str, str] | None:
    """Return what a zip file is, in words, and what the user can do with it. Return None if it contains a run or its
    content is unclear.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [PureWindowsPath(name).name for name in archive.namelist()]
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError):
        return None
    if "run.json" in names:
        return None
    arrays = [name.removesuffix(".npy") for name in names]
    if names and all(name.endswith(".npy") for name in names):
        return f"a NumPy archive ({_join(arrays)})", f"save it as one CSV with NumPy: {_stack_code(arrays)}"
    if {"[Content_Types].xml", "mimetype"} & {*names} or file.lower().endswith(".numbers"):
        return "a spreadsheet", SPREADSHEET
    if "data.pkl" in names:
        return "a file of torch.save", 'save its samples as CSV with NumPy: numpy.savetxt("{new}", x, delimiter=",")'
    if tables := [*filter(is_called_like_a_table, names)]:
        return f"a zip with {_join(tables)} in it", f"unpack it, and add {_escape_braces(tables[0])}"
    return None


def _by_its_start(content: bytes) -> tuple[str, str] | None:
    return next(((what, remedy) for start, what, remedy in STARTS if content.startswith(start)), None)


def _text(content: bytes) -> tuple[str, str] | None:
    """Return what a file is, in words, and what the user can do with it, for a known text format other than CSV.

    Return None for other content.
    """
    start = content[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")
    if start[:9].lower() == b"@relation":
        return (
            "an ARFF file",
            "save it as CSV: remove the lines with @ and %, and put the column names in the first line",
        )
    if start[:5].lower() in (b"<!doc", b"<html", b"<?xml"):
        return "an HTML or XML page", "save the table itself as CSV UTF-8"
    if start[:1] in (b"{", b"["):
        for text, lines in ((content, ""), (start.partition(b"\n")[0], ", lines=True")):
            try:
                json.loads(text)
            except (ValueError, RecursionError):
                continue
            read = 'with pandas: pandas.read_json("{file}"' + lines + ').to_csv("{new}", index=False)'
            return "JSON", f"save it as CSV {read}"
    return None


def _stack_code(arrays: Sequence[str]) -> str:
    """Return the code that stacks arrays as columns."""
    parts = ", ".join(f'f["{_escape_braces(name)}"]' for name in arrays[:3])
    return f'f = numpy.load("{{file}}"); numpy.savetxt("{{new}}", numpy.column_stack([{parts}]), delimiter=",")'


def _join(names: Sequence[str]) -> str:
    return ", ".join(name[:40] for name in names[:3]) + ", ..." * (len(names) > 3)


def _escape_braces(name: str) -> str:
    return name[:40].replace("{", "{{").replace("}", "}}")
