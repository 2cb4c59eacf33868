"""The user's own tables, stored under the name of the file and a hash of the content.

An experiment that names a table is therefore reproducible, and a link to it does not reveal a folder of the machine.
"""

import hashlib
import io
import json
import math
import os
import re
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from installation import data_folder

LEAST = 10  # smallest number of rows of a table
MOST_CELLS = 10_000_000


@dataclass(frozen=True)
class Table:
    """A table of numbers, shape (rows, columns), with NaN for missing ones.

    `words` gives, for each column of words, the words that its numbers index. `shape` is the image shape if all
    columns but the last are pixels, else (). `notes` are shown with the results. `file` is the name of the original
    file, as one word. `gaps` describes, for each column with missing numbers, the first of them.
    """

    names: tuple[str, ...]
    cells: np.ndarray
    words: dict[str, tuple[str, ...]]
    shape: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    file: str = ""
    gaps: dict[str, str] = field(default_factory=dict)


def folder() -> Path:
    """Return the folder of tables: $LOCKSTEP_TABLES, or data/tables in the clone or in the user's data folder."""
    return data_folder("LOCKSTEP_TABLES", "data/tables")


def save(table: Table) -> str:
    """Store `table`. Return its name, made of its file's name and a hash. Raise OSError if it cannot be written."""
    content = {"names": table.names, "words": table.words, "shape": table.shape, "notes": ()}
    about = json.dumps(content | {"notes": table.notes, "gaps": table.gaps}, sort_keys=True).encode()
    cells = np.ascontiguousarray(table.cells, _smallest_type(table.cells))
    hashed = json.dumps(
        content, sort_keys=True
    ).encode()  # without notes, so that a table keeps its name if we reword them
    digest = hashlib.sha256(hashed + str(cells.dtype).encode() + cells.tobytes()).hexdigest()
    name = f"{table.file}_{digest[:8]}" if table.file else digest[:16]
    folder().mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder(), prefix=".part-", delete=False) as part:
        np.savez_compressed(part, cells=cells, about=np.frombuffer(about, np.uint8))
        part.flush()
        os.fsync(part.fileno())
    os.replace(part.name, folder() / f"{name}.npz")
    return name


def title(name: str) -> str:
    """Return the title of the table with this name, such as "the table “iris”" for "iris_0f9a2c11"."""
    return f"the table “{name.rpartition('_')[0] or name}”"


def cells(name: str) -> int:
    """Return the number of cells of the table `name` without reading them, or 0 if its file is damaged.

    Raise ValueError if there is no such table.
    """
    try:
        with zipfile.ZipFile(_path(name)) as file, file.open("cells.npy") as array:
            np.lib.format.read_magic(array)
            return math.prod(np.lib.format.read_array_header_1_0(array)[0])
    except (OSError, KeyError, zipfile.BadZipFile):
        return 0  # `load` explains what is wrong with the file


def load(name: str) -> Table:
    """Return the table called `name`. Raise ValueError if there is none, or if it cannot be read."""
    path = _path(name)
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:  # pickles are refused
            about, cells = json.loads(file["about"].tobytes()), file["cells"]
        words = {column: tuple(words) for column, words in about["words"].items()}
        file = name.rpartition("_")[0]
        notes = tuple(note.removeprefix("table: ") for note in about["notes"])  # a prefix that older files have
        gaps = about.get("gaps", {})
        return Table(tuple(about["names"]), cells, words, tuple(about["shape"]), notes, file, gaps)
    except Exception as error:  # a damaged file can raise anything
        raise ValueError(f"table: {name} cannot be read: {' '.join(str(error).split())[:200]}") from None


def _path(name: str) -> Path:
    if not name:
        add = "lockstep add FILE.csv"
        raise ValueError(f"table: no table was given; add one with {add}, or in the workbench.")
    path = folder() / f"{name}.npz"
    if not re.fullmatch(r"\w{1,40}_[0-9a-f]{8}|[0-9a-f]{16}", name, flags=re.ASCII) or not path.is_file():
        raise ValueError(f"table: there is no table {name[:40]!r} here; add its file again.")
    return path


def _smallest_type(cells: np.ndarray) -> type:
    with np.errstate(over="ignore", invalid="ignore"):
        return next(
            kind for kind in (np.uint8, np.float32, np.float64) if np.array_equal(cells.astype(kind), cells, True)
        )
