"""The decision boundary: the class that each reported model assigns to every point of the box around the data.

Only for models that classify by two features. A cell holds its class and the model's certainty, which is the class's
softmax probability, rescaled so that a uniform guess is 0 and certainty is 1.
"""

from collections.abc import Sequence

import numpy as np

from experiments.learning.record import GRID, STEPS, Boundary
from experiments.runs.evaluations import Model
from experiments.runs.record import Run
from kernels import meter_kernels
from workloads.supervised import Supervised
from workloads.workload import Workload

SNAPSHOTS = 41  # models, at most
DOTS = 400  # held-out points shown, at most
AROUND = 0.06  # margin around the data, as a share of its extent


def applies(workload: Workload) -> bool:
    """Return True if a boundary can be drawn: the workload classifies by two features, into few enough classes for one
    byte per cell.
    """
    if not isinstance(workload, Supervised) or workload.model.inputs != (2,):
        return False
    return workload.model.criterion.name == "softmax_cross_entropy" and STEPS * workload.model.outputs[-1] <= 256


def scores(workload: Supervised, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the class scores (n, classes) of the model w for points x (n, 2). This takes no time on any rank's
    clock.
    """
    with meter_kernels(None), np.errstate(all="ignore"):
        x = np.ascontiguousarray(x, workload.dtype)
        return workload.model.infer(w, x, workload.model.statistics(w, workload.x))


def snapshots(workload: Supervised, run: Run, models: Sequence[Model]) -> Boundary:
    """Return the boundaries of at most SNAPSHOTS of these models, evenly spaced; `run.evaluations` has a row for each
    model.
    """
    chosen = np.unique(np.linspace(0, len(models) - 1, min(SNAPSHOTS, len(models))).astype(int))
    x, target = workload.held_out
    some = slice(None, None, -(-len(x) // DOTS))
    low, high = workload.x.min(0), workload.x.max(0)
    left, bottom = low - AROUND * (high - low)
    right, top = high + AROUND * (high - low)
    u, v = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    grid = np.stack([u.ravel(), v.ravel()], 1)
    cells, hits = [], []
    for index in chosen:
        cells.append(_cells(scores(workload, models[index].w, grid)).reshape(GRID, GRID))
        hits.append(scores(workload, models[index].w, x[some]).argmax(1) == target[some])
    tried = {name: run.evaluations[name][chosen] for name in ("seconds", "step", "loss", "accuracy")}
    box = (float(left), float(right), float(bottom), float(top))
    return Boundary(
        box, workload.model.outputs[-1], np.array(cells), x[some], target[some].astype("u1"), np.array(hits), **tried
    )


def _cells(y: np.ndarray) -> np.ndarray:
    """Return the class and certainty of each row of scores y, (n, classes), packed into one byte."""
    classes = y.shape[1]
    with np.errstate(all="ignore"):
        best = 1 / np.exp(y - y.max(1, keepdims=True)).sum(1)
    sure = np.nan_to_num((best - 1 / classes) / (1 - 1 / classes))
    return (STEPS * y.argmax(1) + np.clip((sure * STEPS).astype(int), 0, STEPS - 1)).astype("u1")
