"""Guesses: what the evaluated models of a run answer for the same few held-out samples, as a file of the run.

The file may be an upload: it is read without pickles, only up to MOST bytes, and every array is checked.
"""

import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

FILE = "guesses.npz"
MOST = 4_000_000  # bytes of all arrays
LONGEST = 200  # characters of a text
KINDS = ("images", "rows", "numbers", "points", "text")


class Guesses(NamedTuple):
    """What k models answer for n samples.

    kind     "images", "rows" (of a table, with a class each), "numbers" (rows, with a number to estimate each),
             "points" (in a plane, with a class each) or "text" (n = 1)
    model    (k,) the row of the run's evaluations that each model has, ascending
    x        images (n, height, width) uint8, rows (n, c) text, points (n, 2) float32; empty for text
    columns  (c,) the names of the columns of rows; empty otherwise
    answer   (n,) the right answers as text; for text, what the model continues
    guess    (k, n) the models' answers, "" if their outputs are not finite; for text, what they write
    cells    (k, m, m) uint8, the class at each point of a grid over `box`, lowest row first; empty without points
    box      (left, right, bottom, top) of that grid; empty without points
    """

    kind: str
    model: np.ndarray
    x: np.ndarray
    columns: np.ndarray
    answer: np.ndarray
    guess: np.ndarray
    cells: np.ndarray
    box: np.ndarray

    @property
    def is_marked(self) -> bool:
        """True if each guess is a class, which is right or wrong; numbers and text are neither."""
        return self.kind in ("images", "rows", "points")


def save(guesses: Guesses, folder: Path) -> None:
    """Write the guesses into `folder`. Raise OSError if that fails."""
    np.savez_compressed(folder / FILE, allow_pickle=False, **guesses._asdict())


def load(folder: Path, evaluations: int) -> Guesses | None:
    """Return the guesses of a run with that many evaluations, or None if it has none. Raise ValueError if the file is
    damaged.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
        if size > MOST:
            raise ValueError(f"it unpacks to {size:,} bytes; at most {MOST:,} are read")
        with np.load(path, allow_pickle=False) as file:
            found = Guesses(**{name: file[name] for name in file.files})
        found = found._replace(kind=str(found.kind))
        _check(found, evaluations)
    except (OSError, TypeError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise ValueError(f"{FILE} is damaged: {error}.") from None
    return found


def _check(found: Guesses, evaluations: int) -> None:
    """Raise ValueError if a kind, shape, type or number is not one that a run writes."""
    if found.kind not in KINDS:
        raise ValueError(f"its kind is {found.kind[:20]!r}; expected one of {', '.join(KINDS)}")
    k, n, points = len(found.model), len(found.answer), found.kind == "points"
    shapes = {
        "model": ("i", (k,)),
        "columns": ("U", (found.x.shape[1] if found.kind in ("rows", "numbers") else 0,)),
        "answer": ("U", (n,)),
        "guess": ("U", (k, n)),
        "cells": ("u", (k, *found.cells.shape[-1:] * 2) if points else (0, 0, 0)),
        "box": ("f", (4 if points else 0,)),
    }
    kind, axes = {"images": ("u", 3), "points": ("f", 2), "text": ("U", 1)}.get(found.kind, ("U", 2))
    shapes["x"] = kind, (0 if found.kind == "text" else n, *(*found.x.shape, 0, 0)[1:axes])
    for name, (letter, shape) in shapes.items():
        array = getattr(found, name)
        if array.dtype.kind != letter or array.shape != shape:
            raise ValueError(f"{name} has shape {array.shape} and type {array.dtype}; expected shape {shape}")
        if letter == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} has numbers that are not finite")
        if letter == "U" and array.dtype.itemsize > 4 * LONGEST:
            raise ValueError(f"{name} has texts of more than {LONGEST} characters")
    if k and not (found.model[0] >= 0 and (np.diff(found.model) > 0).all() and found.model[-1] < evaluations):
        raise ValueError(f"the indices in model must ascend, and be at least 0 and below {evaluations}")
