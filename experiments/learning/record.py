"""The record of how a run learned, and the job that makes it. It is cheap to import, for processes that compute nothing
themselves.
"""

import io
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.jobs.spec import JobSpec
from experiments.runs.record import Run

FORMAT = 2  # of the stored file
FILE = "learning.npz"
BLOWN = 4.0  # a run whose loss stays above this many times the first one leaves the picture
GRID = 50  # cells to each side of a boundary
STEPS = 12  # of a model's certainty: with up to 20 classes, a cell fits in a byte


class Boundary(NamedTuple):
    """How each of k models classifies the points in `box` (left, right, bottom, top).

    cells (k, GRID, GRID), lowest row first, each STEPS * class + certainty; x (n, 2) and target (n,) are held-out
    points, right (k, n) is True where a model classifies a point correctly; seconds, step, loss and accuracy are the
    rows of the run's evaluations, over all held-out points.
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
    """The path of a run on a plane and, if its models classify, their decision boundaries.

    points      (n, 2) coordinates on the plane
    who         (r,) the rank of each row, or `ranks` for the model that would be shipped; sorted by seconds
    seconds     (r,) the time from which it is there
    place       (r,) index of its point; equal places are equal models, bit for bit
    arrows      (k, 2) points that stale updates lead from and to, `applied` (k,) when
    shares      the share of the squared distances from the final model along each direction of the plane
    ground      the loss on the plane; all NaN if that would take too long
    every       how many gradients of a rank there are for each one in the path
    assembled   whether ranks report parts of the model, so that its path is that of the evaluated models
    blown       s after which the loss stays above BLOWN times the first and the next moves may leave the picture;
                infinite if it never does
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
    """Return the job that records how this run learned. Raise ValueError if the run cannot be replayed."""
    e = run.experiment
    if e.cluster != "simulated":
        raise ValueError(
            f"a run on {e.cluster} cannot be replayed, because such runs are not repeatable; run the "
            "experiment on the simulated cluster to see how it learns."
        )
    if run.status in ("cancelled", "failed"):
        raise ValueError(
            "this run ended early, but a replay would train past that point; let a run finish to see how it learns."
        )
    if e.files:
        raise ValueError(
            f"the experiment uses a {e.files[0]} of this machine, which pages may not read; use the command line."
        )
    return JobSpec("learning", {"experiment": e.json(), "digest": run.summary["digest"], "format": FORMAT})


def save(learning: Learning, file: Path) -> None:
    own = {one.name: getattr(learning, one.name) for one in fields(learning) if one.name != "boundary"}
    if learning.boundary:
        own |= {f"boundary_{name}": value for name, value in learning.boundary._asdict().items()}
    np.savez_compressed(file, **own)


def load(folder: str | Path) -> Learning:
    """Return the record in `folder`. Raise ValueError if the file is damaged."""
    try:
        with np.load(io.BytesIO((Path(folder) / FILE).read_bytes())) as file:  # pickles are refused
            found = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{folder} has no readable record of how the run learned: {error}") from None
    plain = {
        name: value.tolist() for name, value in found.items() if value.ndim == 0 or name.endswith(("box", "shares"))
    }
    found |= {name: tuple(value) if isinstance(value, list) else value for name, value in plain.items()}
    own = {name: found.pop(f"boundary_{name}") for name in Boundary._fields if f"boundary_{name}" in found}
    return Learning(**found, boundary=Boundary(**own) if own else None)
