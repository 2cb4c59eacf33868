"""What a run has learned at each moment: its held-out loss and accuracy, and its models' guesses for a few samples.

Drawn below the lanes of its timeline, on the same clock (learned.js, sparkline.js).
"""

import math
from typing import NamedTuple

import numpy as np

from experiments.runs.record import Run
from experiments.viewer import palette


class Learned(NamedTuple):
    """What a run has learned, as a header and columns for the browser."""

    header: dict
    columns: dict[str, np.ndarray]


def learning(run: Run) -> Learned | None:
    """Return what the run's evaluations say about its models, or None if it has fewer than two.

    Header: at (s), loss and accuracy of each evaluation, None where they are not finite (accuracy is empty without
    classes); samples, the number of held-out ones, and the noun for them; and guesses: kind, answer, model (the
    evaluation of each guess), guess (by model), and what `Guesses` has of columns, rows, box and the sizes of pictures;
    None without samples.
    Columns: pictures (0 to 255) and cells (classes), both uint8 and flat.
    """
    tried = run.evaluations
    if len(tried["seconds"]) < 2:
        return None
    header = {
        "at": tried["seconds"].tolist(),
        "loss": [_finite(value) for value in tried["loss"].tolist()],
        "accuracy": [_finite(value) for value in tried["accuracy"].tolist()] if run.held_out_samples else [],
        "samples": run.held_out_samples,
        "noun": _noun(run),
        "guesses": None,
    }
    found, columns = run.guesses, {}
    if found is not None:
        header["guesses"] = {
            "kind": found.kind,
            "marked": found.is_marked,
            "model": found.model.tolist(),
            "answer": found.answer.tolist(),
            "guess": found.guess.tolist(),
            "columns": found.columns.tolist(),
        }
        if found.kind == "images":
            header["guesses"]["size"] = found.x.shape[1:]
            columns["pictures"] = found.x.ravel()
        elif found.kind == "points":
            header["guesses"] |= {
                "x": found.x.round(4).tolist(),
                "box": found.box.tolist(),
                "cells": found.cells.shape[1],
                "colours": palette.CLASSES,
            }
            columns["cells"] = found.cells.ravel()
        elif found.kind != "text":
            header["guesses"]["rows"] = found.x.tolist()
    return Learned(header, columns)


def _noun(run: Run) -> str:
    """Return the plural noun for a run's held-out samples."""
    if run.experiment.workload in ("digits", "mnist"):
        return "digits"
    return {"images": "images", "text": "characters", "points": "points"}.get(
        run.guesses.kind if run.guesses else "", "samples"
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
