"""Samples of a table: its rows as numbers to learn from, once the column to predict is known.

Numbers are used unchanged. A column of up to 20 words becomes a column of 0 and 1 for each word; a column of more words
is left out. Rows without a label are left out, and missing cells matter only in columns of numbers that are used as
features.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from workloads.columns import CLASSES, UNKNOWN
from workloads.stored_table import LEAST, MOST_CELLS, Table

Missing = Literal["refuse", "rows", "mean"]
ONE_HOT = 20  # largest number of words in a column that is used as a feature
NAMED = 5  # largest number of columns that a sentence lists
CLASS_NAMES = {"label", "class"}  # usual names of a column of classes
SHOWN = 4  # columns of a row that are shown, at most
FEW = 20  # up to this many distinct integers are taken for classes, unless the user chooses otherwise


class LearnedRows(NamedTuple):
    """Training data: x (rows, features), with NaN in gaps if `missing` is "mean", and the target of each row.

    `classes` are the names that `target` indexes; a regression has no classes, and `target` is the number itself.
    `features` describes the columns of x in one sentence, and `notes` say what was done with rows. `row` is the row of
    the table that each row of x comes from.
    """

    x: np.ndarray
    target: np.ndarray
    classes: tuple[str, ...]
    features: str
    notes: tuple[str, ...]
    row: np.ndarray


class Gaps(ValueError):
    """Raised if cells are missing in `rows` rows and the user has not chosen how to handle them."""

    def __init__(self, message: str, rows: int):
        super().__init__(message)
        self.rows = rows


def samples(table: Table, label: str = "", regression: bool = False, missing: Missing = "refuse") -> LearnedRows:
    """Return the samples for predicting the column `label`, by default the last one.

    Raise ValueError if there are none, and Gaps if numbers are missing and `missing` is "refuse".
    """
    label = label or table.names[-1]
    if label not in table.names:
        raise ValueError(f"there is no column {label[:60]!r}; use one of {', '.join(table.names[:20])}.")
    notes = []
    kept = _has_label(table, label)
    if without := int((~kept).sum()):
        notes.append(f"{_count(without, 'row')} without {label} left out.")
    used = [name for name in table.names if name != label and len(table.words.get(name, ())) <= ONE_HOT]
    numbers = [name for name in used if name not in table.words]
    holes = np.isnan(table.cells[:, [table.names.index(name) for name in numbers]]) & kept[:, None]
    if holes.any():
        if missing == "refuse":
            raise _gaps(table, numbers, holes, int(kept.sum()))
        if missing == "rows":
            kept = kept & ~holes.any(axis=1)
            notes.append(f"{_count(int(holes.any(axis=1).sum()), 'row')} with missing cells left out.")
        else:
            filled = [(int(n), name) for n, name in zip(holes.sum(axis=0), numbers, strict=True) if n]
            told = _some([f"{_count(n, 'missing cell')} of {name}" for n, name in filled])
            notes.append(f"{told} filled with the mean of the column.")
    if (rows := int(kept.sum())) < LEAST:
        raise ValueError(f"{_count(rows, 'row')} can be used; a table needs at least {LEAST}.")
    target, classes = _target(table, label, kept, regression)
    if not used:
        raise ValueError(
            f"no column can be used to predict {label}: other columns need numbers, or at most {ONE_HOT} words."
        )
    width = sum(len(table.words.get(name, "1")) for name in used)
    if rows * width > MOST_CELLS:
        raise ValueError(
            f"with a column for each word, the table has {rows * width:,} cells, more than {MOST_CELLS:,}; remove some "
            "rows, or columns of words."
        )
    x = np.concatenate([_columns(table, name, kept) for name in used], axis=1)
    features = _features(table, label, used, width)
    return LearnedRows(x, target, classes, features, tuple(notes), np.flatnonzero(kept))


def columns_shown(table: Table, label: str) -> tuple[str, ...]:
    """Return the names of the first few columns other than the label, which is the last column by default."""
    return tuple(name for name in table.names if name != (label or table.names[-1]))[:SHOWN]


def in_words(table: Table, row: int, columns: Sequence[str]) -> tuple[str, ...]:
    """Return the cells of a row in these columns as text, "" where a number is missing."""
    cells = [(_cells(table, name)[row], table.words.get(name)) for name in columns]
    return tuple(words[int(cell)] if words else "" if np.isnan(cell) else f"{cell:.6g}" for cell, words in cells)


def is_estimated(table: Table, label: str) -> bool:
    """Return whether a label looks like a number to estimate rather than a class."""
    if label in table.words:
        return False
    values, counts = np.unique(_cells(table, label)[_has_label(table, label)], return_counts=True)
    if label.lower() in CLASS_NAMES and len(values) <= CLASSES:
        return False
    return len(values) > min(FEW, max(2, counts.sum() / 2)) or bool((values % 1).any())


def choose(table: Table) -> tuple[str, str]:
    """Return the column to predict if the user names none, and the reason.

    It is the column called "label" or "class", or else the last one. Some data sets without names have the label first:
    if the last column is a number to be estimated, and the first one has class numbers, it is the first.
    """
    last, first = table.names[-1], table.names[0]
    if called := next((name for name in table.names if name.lower() in CLASS_NAMES), ""):
        return called, "by its name"
    codes = np.unique(_cells(table, first))
    if (
        first == "column 1"
        and first not in table.words
        and is_estimated(table, last)
        and not is_estimated(table, first)
        and codes[0] in (0, 1)
        and np.array_equal(codes, codes[0] + np.arange(len(codes)))
    ):
        return first, f"since it numbers classes, and {last}, the last column, does not"
    return last, "the last column"


def _cells(table: Table, name: str) -> np.ndarray:
    return table.cells[:, table.names.index(name)]


def _has_label(table: Table, label: str) -> np.ndarray:
    """Return a mask, (rows,) of bool, that is true where this column is not missing."""
    cells, words = _cells(table, label), table.words.get(label, ())
    return cells != words.index(UNKNOWN) if UNKNOWN in words else ~np.isnan(cells)


def _target(table: Table, label: str, kept: np.ndarray, regression: bool) -> tuple[np.ndarray, tuple[str, ...]]:
    cells, words = _cells(table, label)[kept], table.words.get(label)
    values, target = np.unique(cells, return_inverse=True)
    if len(values) < 2:
        raise ValueError(f"{label} is the same in every row, so there is nothing to predict.")
    if regression:
        if words:
            raise ValueError(f"{label} has words, but regression estimates a number; turn regression off.")
        return cells, ()
    if len(values) > CLASSES:
        raise ValueError(
            f"{label} has {len(values):,} different values, too many for classes (2 to {CLASSES}); turn regression on "
            "to estimate it as a number, or choose another label."
        )
    return target.astype(np.int64), tuple(words[int(v)] if words else f"{v:.15g}" for v in values)


def _gaps(table: Table, numbers: Sequence[str], holes: np.ndarray, of: int) -> Gaps:
    """Return an error with the line of the first missing cell, the number of missing cells, and what to do."""
    cells, rows = int(holes.sum()), int(holes.any(axis=1).sum())
    first = numbers[int(holes.any(axis=0).argmax())]
    such = "it is the only such cell" if cells == 1 else f"{cells:,} such cells are in {rows:,} of {of:,} rows"
    return Gaps(
        f"{table.gaps.get(first, f'{first} has missing cells')}; {such}. Fill in what is missing, or set missing: rows "
        f"leaves out {_count(rows, 'row')}, mean uses the mean of the column.",
        rows,
    )


def _columns(table: Table, name: str, kept: np.ndarray) -> np.ndarray:
    """Return a column's numbers, (rows, 1), or its words as 0 and 1, (rows, words)."""
    cells, words = _cells(table, name)[kept].astype(np.float64), table.words.get(name)
    return cells[:, None] == np.arange(len(words)) if words else cells[:, None]


def _features(table: Table, label: str, used: Sequence[str], width: int) -> str:
    worded = [name for name in used if name in table.words]
    parts = [f"learned from {_count(width, 'column')} of numbers"]
    if worded:
        parts.append(_some([f"{name} became {len(table.words[name])} columns" for name in worded]))
    if out := [name for name in table.names if name != label and name not in used]:
        parts.append(f"left out, because they have more than {ONE_HOT} words: {_some(out)}")
    return f"{'; '.join(parts)}."


def _some(parts: Sequence[str]) -> str:
    """Return the first NAMED of the parts as text, and how many more there are."""
    more = f" and {len(parts) - NAMED:,} more" if len(parts) > NAMED else ""
    return ", ".join(parts[:NAMED]) + more


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'s' * (number != 1)}"
