"""A reader's own tables: store a table in a file, and choose the settings of a first run that can train on it."""

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from experiments.specification.experiment import Experiment
from workloads import csv_idx, file_formats, stored_table, table_samples
from workloads.stored_table import Table
from workloads.table_samples import Gaps, Missing

__all__ = ["EXAMPLE", "FirstRun", "Gaps", "Missing", "Table", "example", "first_run", "is_estimated", "load", "take"]

SMALLEST = 8  # smallest batch of a first run before it gets fewer workers
PACKED_TEXT = re.compile(r"\.(csv|tsv|txt|data)\.gz$", re.IGNORECASE)
EXAMPLE = """size,colour,age,kind
5.1,red,3,cat
7.9,blue,7,dog
4.2,red,2,cat
"""
"""The first rows of an example of a table, which show what a file looks like."""

ANIMALS = {"cat": (5, 0.6), "dog": (8, 2), "horse": (24, 3)}
"""The mean and the standard deviation of the size of each kind of animal in the example."""
COLOURS = ("red", "blue", "grey")


def example(rows: int = 240) -> str:
    """Return a table to try, as CSV: its first rows are EXAMPLE, the rest are random numbers from a fixed seed."""
    draw = random.Random(0)
    lines = EXAMPLE.split()
    for _ in range(rows - len(lines) + 1):
        kind = draw.choice([*ANIMALS])
        lines.append(f"{draw.gauss(*ANIMALS[kind]):.1f},{draw.choice(COLOURS)},{draw.randint(1, 15)},{kind}")
    return "\n".join([*lines, ""])


load = stored_table.load
is_estimated = table_samples.is_estimated


class FirstRun(NamedTuple):
    """A first run on a table, with sentences on what it `predicts` and on its `features`, and `notes` on rows.

    `target` lists each class with its number of rows, or describes the spread of the numbers to estimate. `why` says
    how the run differs from the defaults, "" if it does not.
    """

    experiment: Experiment
    rows: int
    target: tuple[tuple[str, float], ...]
    predicts: str
    features: str
    notes: tuple[str, ...]
    why: str


def take(files: Sequence[tuple[str, bytes]]) -> Path:
    """Store the table that `files`, pairs of (name, content), hold, and return the path of the stored file. Raise
    ValueError if they hold no table.
    """
    name, content = files[0]
    packed = content[:2] == b"\x1f\x8b"
    if packed and PACKED_TEXT.search(name):
        raise ValueError(f"{name[-100:]} is compressed; unpack it first: only IDX files may be compressed.")
    if not packed and content[:2] != b"\0\0":
        for name, content in files:
            if content[:2] == b"PK" and not file_formats.zip_of(content, name):
                raise ValueError(f"{name[-100:]} is not a table; open a run in the field “Open a run”.")
            file_formats.refuse(content, name)
        if len(files) > 1:
            raise ValueError(f"{len(files)} files were given; a table is one CSV file or two IDX files. Add one table.")
        made = csv_idx.from_csv(*files[0][::-1])
    else:
        made = csv_idx.from_idx([content for _, content in files], " and ".join(name for name, _ in files))
    return stored_table.folder() / f"{stored_table.save(made)}.npz"


def first_run(name: str, label: str = "", regression: bool | None = None, missing: Missing = "refuse") -> FirstRun:
    """Return a first run on the table of this name.

    Its batch and, if necessary, its number of workers are small enough for every worker to have a full batch. Without a
    `label`, one is chosen; without `regression`, the label is estimated as a number unless it looks like a class. Raise
    ValueError if nothing can be predicted, and Gaps if numbers are missing and `missing` does not say what to do.
    """
    table = load(name)
    label, because = (label, "") if label else table_samples.choose(table)
    if label in table.names and regression is None:
        regression = table_samples.is_estimated(table, label)
    samples = table_samples.samples(table, label, bool(regression), missing)
    values: dict[str, Any] = {"workload": "table", "table": name}
    values |= {"label": label} if label != table.names[-1] else {}
    values |= ({"regression": True} if regression else {}) | ({"missing": missing} if missing != "refuse" else {})
    begun, rows = Experiment.of(values), len(samples.target)
    training = rows - min(max(1, round(begun.data["held_out"] * rows)), rows - 1)
    sizes = ((workers, batch) for workers in (begun.workers, 2, 1) for batch in (begun.batch, 16, 8, 4, 2, 1))
    workers, batch = next(
        (n, size) for n, size in sizes if size * n <= training and (size >= SMALLEST or n == 1 or training < SMALLEST)
    )
    parts = [f"a batch of {batch}"] * (batch != begun.batch)
    parts += [f"{workers} worker{'s' * (workers != 1)}"] * (workers != begun.workers)
    why = f"{' and '.join(parts)}, since there are {training:,} rows to train on" if parts else ""
    experiment = begun.change(workers=workers, batch=batch)
    predicts = _predicts(table, label, because, samples)
    return FirstRun(experiment, rows, _spread(samples), predicts, samples.features, samples.notes, why)


def _spread(samples: table_samples.LearnedRows) -> tuple[tuple[str, float], ...]:
    if samples.classes:
        return tuple(zip(samples.classes, np.bincount(samples.target).tolist(), strict=True))
    return tuple(
        (f"{share} % lie below", float(np.percentile(samples.target, share))) for share in (0, 25, 50, 75, 100)
    )


def _predicts(table: Table, label: str, because: str, samples: table_samples.LearnedRows) -> str:
    """Return a phrase that says which column is predicted, why, and whether as a class or as a number."""
    chosen = f", {because}" if because else ""
    if samples.classes:
        what = f"one of {len(samples.classes)} classes"
    else:
        different = len(set(samples.target.tolist()))
        what = f"by regression: it has {different:,} different values, and is estimated as a number"
    return f"{label}{chosen}, {what}"
