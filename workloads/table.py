"""Table: your own data, rows of numbers and a label column.

A table is stored under the name of its file and a hash of its content, so an experiment that names it is reproducible,
and a link to it reveals no folder of the machine. `python -m experiments add FILE.csv` stores one and prints its name;
so does the workbench. Every feature is standardised to mean 0 and variance 1 over the training rows. Labels may be
words or numbers, each distinct value a class. Images keep their shape, so that a cnn can be trained on them.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from installation import kept, typed
from knobs import knob
from workloads import models
from workloads.supervised import Supervised

CLASSES = 100  # of a label
LEAST = 10  # rows of a table
NAMED = 5  # columns that a sentence names


class Settings(models.ModelKnobs):
    """The table, its label, the rows held out, and the model."""

    table: str = knob("", "the table, by the name that it got when it was added", max_length=60)
    label: str = knob("", "column to be predicted; empty: the last", max_length=100)
    held_out: float = knob(0.2, "share of the rows that the model is evaluated on", ge=0.01, le=0.9)
    split: int = knob(0, "seed of the choice of these rows", ge=0, le=2**31 - 1)


@dataclass(frozen=True)
class Table:
    """Rows of numbers, (rows, columns), no NaN among them.

    `words` maps columns of words to the words that their numbers stand for; `shape` is that of an image whose pixels
    are all columns but the last, () if there is none; `notes` are sentences to show beside the results;
    `file` is what the file was called, as a word.
    """

    names: tuple[str, ...]
    cells: np.ndarray
    words: dict[str, tuple[str, ...]]
    shape: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    file: str = ""

    def classes(self, column: str) -> tuple[np.ndarray, list[str]]:
        """Return (class of each row, names of the classes) for this label; ValueError if it cannot be one."""
        cells = self.cells[:, self.names.index(column)]
        values, target = np.unique(cells, return_inverse=True)
        if not 2 <= len(values) <= CLASSES:
            if len(values) < 2:
                raise ValueError(f"table: {column} is the same in every row, so there is nothing to predict.")
            raise ValueError(
                f"table: {column} has {len(values):,} different values; a label has 2 to {CLASSES}, so a number to be "
                "estimated is no class: choose another."
            )
        words = self.words.get(column)
        return target.astype(np.int64), [words[int(v)] if words else f"{v:.15g}" for v in values]

    def features(self, label: str) -> list[str]:
        """Return the columns of numbers that are not the label."""
        return [name for name in self.names if name != label and name not in self.words]

    def left_out(self, label: str) -> str:
        """Return, in a sentence, which columns a model of this label does not learn from; "" if it does from all."""
        names = [name for name in self.names if name != label and name in self.words]
        if not names:
            return ""
        more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
        return f"left out, as only columns of numbers are learned from: {', '.join(names[:NAMED])}{more}."


def folder() -> Path:
    """Return the folder of tables: $LOCKSTEP_TABLES, or data/tables beside the source, or of the user."""
    return kept("LOCKSTEP_TABLES", "data/tables")


def save(table: Table) -> str:
    """Store `table` and return its name, of its file and its content; OSError if it cannot be written."""
    facts = {"names": table.names, "words": table.words, "shape": table.shape, "notes": table.notes}
    about = json.dumps(facts, sort_keys=True).encode()
    cells = np.ascontiguousarray(table.cells, _smallest_type(table.cells))
    digest = hashlib.sha256(about + str(cells.dtype).encode() + cells.tobytes()).hexdigest()
    name = f"{table.file}_{digest[:8]}" if table.file else digest[:16]
    folder().mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=folder(), prefix=".part-", delete=False) as part:
        np.savez_compressed(part, cells=cells, about=np.frombuffer(about, np.uint8))
        part.flush()
        os.fsync(part.fileno())
    os.replace(part.name, folder() / f"{name}.npz")
    return name


def title(name: str) -> str:
    """Return what the table of this name is called: "iris_0f9a2c11" is iris."""
    return name.rpartition("_")[0] or name


def load(name: str) -> Table:
    """Return the table of this name; ValueError if there is none."""
    if not name:
        add = typed("python -m experiments add FILE.csv")
        raise ValueError(f"table: none was named; add one with {add}, or in the workbench.")
    path = folder() / f"{name}.npz"
    if not re.fullmatch(r"\w{1,40}_[0-9a-f]{8}|[0-9a-f]{16}", name, flags=re.ASCII) or not path.is_file():
        raise ValueError(f"table: there is no table {name[:40]!r} here; add its file once more.")
    try:
        with np.load(io.BytesIO(path.read_bytes())) as file:  # pickles are refused
            about, cells = json.loads(file["about"].tobytes()), file["cells"]
        words = {column: tuple(words) for column, words in about["words"].items()}
        file = name.rpartition("_")[0]
        return Table(tuple(about["names"]), cells, words, tuple(about["shape"]), tuple(about["notes"]), file)
    except Exception as error:  # a damaged file may be wrong in any way
        raise ValueError(f"table: {name} cannot be read: {' '.join(str(error).split())[:200]}") from None


def build(settings: Settings, dtype=np.float32) -> Supervised:
    """Return the workload; ValueError if there is no such table or label."""
    s, table = settings, load(settings.table)
    label = s.label or table.names[-1]
    if label not in table.names:
        raise ValueError(f"table: there is no column {label[:60]!r}; there are {', '.join(table.names[:20])}.")
    target, classes = table.classes(label)
    features = table.features(label)
    if not features:
        raise ValueError(f"table: beside {label} there is no column of numbers to predict it from.")
    x = table.cells[:, [table.names.index(name) for name in features]].astype(np.float64)
    order = np.random.default_rng(s.split).permutation(len(x))
    cut = len(x) - min(max(1, round(s.held_out * len(x))), len(x) - 1)
    train, test = order[:cut], order[cut:]
    spread = x[train].std(0)
    x = (x - x[train].mean(0)) / np.where(spread > 0, spread, 1)
    images = table.shape and label == table.names[-1]
    model = models.build(s, table.shape if images else (len(features),), len(classes), dtype)
    return Supervised("table", model, (x[train], target[train]), (x[test], target[test]), notes=table.notes)


def _smallest_type(cells: np.ndarray) -> type:
    """Return the smallest type that represents all of these numbers exactly."""
    with np.errstate(over="ignore", invalid="ignore"):
        return next(kind for kind in (np.uint8, np.float32, np.float64) if np.array_equal(cells.astype(kind), cells))
