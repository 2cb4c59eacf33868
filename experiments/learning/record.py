"""The record of how a run learned, and the job that makes it, for processes that compute nothing themselves."""

from __future__ import annotations

import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.jobs.spec import JobSpec
from experiments.runs.record import Run

FORMAT = 2  # of the stored file
FILE = "learning.npz"
BLOWN = 4.0  # times the first loss, above which a run that does not come back is no longer in the picture
GRID = 50  # cells to each side of a boundary
STEPS = 12  # of how sure a model is: with at most 20 classes a cell is a byte


class Boundary(NamedTuple):
    """What `box` (left, right, bottom, top) looks like to each of k models.

    cells (k, GRID, GRID), the lowest row first, each STEPS * class + certainty; x (n, 2) and target (n,) are held-out
    points, right (k, n) says which of them a model classifies rightly; seconds, step, loss and accuracy are the rows of
    the run's evaluations, over all held-out points.
    """

    box: tuple[float, float, float, float]
    classes: int
    cells: np.ndarray
    x: np.ndarray
    target: np.ndarray
    right: np.ndarray
    seconds: np.ndarray
    step: np.ndarray
    loss: np.ndarray
    accuracy: np.ndarray


@dataclass(frozen=True)
class Learning:
    """The path of a run on a plane, and the boundaries of its models where there are classes to tell apart.

    points      (n, 2) places on the plane
    who         (r,) the rank of each row, or `ranks` for the model that would be shipped; sorted by seconds
    seconds     (r,) from when on it is there
    place       (r,) which of the points that is; equal places are equal models, bit for bit
    arrows      (k, 2) points that stale updates lead from and to, `applied` (k,) when
    shares      of the squared distances from the final model, what each direction of the plane holds
    ground      the loss on the plane; all NaN if that would take too long
    every       one gradient of so many of a rank is in the path
    assembled   whether ranks report parts of the model, so that its path is that of the evaluated models
    blown       s after which the loss stays above BLOWN times the first, and the next move of each may leave the
                picture; infinite if there is no such time
    """

    ranks: int
    points: np.ndarray
    who: np.ndarray
    seconds: np.ndarray
    place: np.ndarray
    arrows: np.ndarray
    applied: np.ndarray
    shares: tuple[float, float]
    box: tuple[float, float, float, float]
    ground: np.ndarray
    stretch: float
    every: int
    assembled: bool
    blown: float
    boundary: Boundary | None


def spec(run: Run) -> JobSpec:
    """Return the job for this run. ValueError, in a sentence, if it cannot be replayed."""
    e = run.experiment
    if e.cluster != "simulated":
        raise ValueError(
            f"what {e.cluster} did cannot be replayed, since no run of theirs happens twice; run the same on the "
            "simulated cluster to see it learn."
        )
    if run.status in ("cancelled", "failed"):
        raise ValueError(
            "this run ended early, and a replay would train on past that point; let a run finish to see it learn."
        )
    if e.files:
        raise ValueError(f"the experiment gives a {e.files[0]}, which pages do not run.")
    return JobSpec("learning", {"experiment": e.json(), "digest": run.summary["digest"], "format": FORMAT})


def save(learning: Learning, file: Path) -> None:
    """Write it as arrays."""
    own = {one.name: getattr(learning, one.name) for one in fields(learning) if one.name != "boundary"}
    if learning.boundary:
        own |= {f"boundary_{name}": value for name, value in learning.boundary._asdict().items()}
    np.savez_compressed(file, **own)


def load(folder: str | Path) -> Learning:
    """Read it back; ValueError if the file is damaged."""
    try:
        with np.load(io.BytesIO((Path(folder) / FILE).read_bytes())) as file:  # pickles are refused
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder} has nothing to see it learn by: {error}") from None
    plain = {
        name: value.tolist() for name, value in found.items() if value.ndim == 0 or name.endswith(("box", "shares"))
    }
    found |= {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    own = {name: found.pop(f"boundary_{name}") for name in Boundary._fields if f"boundary_{name}" in found}
    return Learning(**found, boundary=Boundary(**own) if own else None)
