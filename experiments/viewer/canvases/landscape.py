"""How a run learned: the path of its models over the loss surface, and the regions that the models assign to each
class.
"""

import numpy as np

from experiments.learning import plane
from experiments.learning.record import BLOWN, STEPS, Learning
from experiments.runs.record import Run
from experiments.specification import catalogue
from experiments.viewer import palette
from experiments.viewer.column_codec import pack
from experiments.viewer.lanes import lane_names
from experiments.viewer.saved import labels_of_one
from experiments.wording import units

MAP = (
    "A map of models: each point is a model, its shade is the held-out loss, and the numbers on the contours are "
    "losses. The line is the path of the model during training."
)


def frame(run: Run, learning: Learning, name: str) -> bytes:
    """Return how a run learned, packed as a frame for the canvas of landscapes; `name` identifies the run."""
    tried = run.evaluations
    columns = {
        "points": np.ascontiguousarray(learning.points, "f4").ravel(),
        "who": learning.who.astype("u2"),
        "at": learning.seconds.astype("f4"),
        "place": learning.place.astype("u4"),
        "arrows": learning.arrows.astype("u4").ravel(),
        "applied": learning.applied.astype("f4"),
        "ground": learning.ground.astype("f4").ravel(),
        "tried": tried["seconds"].astype("f4"),
        "loss": tried["loss"].astype("f4"),
        "accuracy": tried["accuracy"].astype("f4"),
    }
    rows, cells = learning.ground.shape
    header = {
        "run": name,
        "seconds": max(run.trace.seconds(), float(learning.seconds.max(initial=0.0))),
        "left": float(learning.blown) if np.isfinite(learning.blown) else None,
        "ranks": learning.ranks,
        "servers": run.experiment.servers,
        "averages": averages(run),
        "lanes": lane_names(run),
        "model": model_word(run),
        "tie": tie(run, learning),
        "box": learning.box,
        "rows": rows,
        "cells": cells,
        "levels": plane.levels(learning.ground),
        "axes": axes(run, learning),
        "colours": {"workers": palette.WORKERS, "classes": palette.CLASSES},
        "description": describe(run, learning),
        "saved": labels_of_one(run.experiment, "learning"),
    }
    if found := learning.boundary:
        header["boundary"] = {"box": found.box, "classes": found.classes, "steps": STEPS, "dots": len(found.x)}
        columns |= {
            "snapshots": found.cells.ravel(),
            "dots": np.ascontiguousarray(found.x, "f4").ravel(),
            "target": found.target,
            "right": found.right.astype("u1").ravel(),
            "seen": found.seconds.astype("f4"),
            "seenAccuracy": found.accuracy.astype("f4"),
        }
    return pack(header, columns)


def pending(name: str, said: str, asks: bool, boundary: bool) -> bytes:
    """Return a frame that says why there are no pictures of the run `name` yet. If `asks`, it requests them once it is
    visible.

    If `boundary`, it leaves room for the classes' boundary next to the path.
    """
    return pack({"run": name, "pending": said, "asks": asks, "boundary": boundary}, {})


def model_word(run: Run) -> str:
    """Return the word for the model that would be shipped: "centre", "server's model" or "model"."""
    if has_springs(run):
        return "centre"
    return "server's model" if run.experiment.servers else "model"


def has_springs(run: Run) -> bool:
    """Return True if springs tie replicas to a centre; their strength is the setting `pull`."""
    return "pull" in run.experiment.method.Settings.model_fields


def tie(run: Run, learning: Learning) -> str:
    """Return what joins a worker to the model in the picture: a "spring", a "line", or a "cloud" around all
    replicas.
    """
    if has_springs(run):
        return "spring"
    family = catalogue.ALGORITHMS[run.experiment.algorithm].family
    return "cloud" if family == "decentralized" else "line"


def averages(run: Run) -> bool:
    """Return True if workers average their models from time to time."""
    return catalogue.ALGORITHMS[run.experiment.algorithm].family == "averaging" and not has_springs(run)


def axes(run: Run, learning: Learning) -> tuple[str, str]:
    if learning.points.shape[1] == 2 and run.parameters is not None and len(run.parameters) == 2:
        return "first parameter", "second parameter"
    across, up = (units.percent(share) for share in learning.shares)
    stretched = "" if abs(learning.stretch - 1) < 0.01 else f", stretched {units.number(learning.stretch)} times"
    if learning.stretch < 0.99:
        stretched = f", squeezed {units.number(1 / learning.stretch)} times"
    return f"main direction: {across} of the variance", f"second direction: {up}{stretched}"


def describe(run: Run, learning: Learning) -> str:
    shown = sum(learning.shares)
    said = [
        f"{MAP} Its axes are the two directions in which the model moved most: they hold {units.percent(shown)} of the "
        "variance of the path. The rest cannot be drawn, so a model's loss may differ from the one shown at its point."
        if shown < 0.9999
        else f"{MAP} The whole path lies on it."
    ]
    if np.isnan(learning.ground).all():
        said = [
            "The line is the path of the model during training, in the two directions in which it moved most. For a "
            "model this large, computing the loss all over this plane would take too long."
        ]
    workers = len(set(learning.who.tolist()) - {learning.ranks})
    if workers:
        fanned = (
            " Dots at the same point are spread around it, and an inset magnifies dots that are close together."
            if workers > 1
            else ""
        )
        said.append(f"A numbered dot marks the model at which that worker computes its gradient.{fanned}")
    if learning.assembled:
        said.append("Ranks hold parts of the model: the diamond is the whole model, each time it was evaluated.")
    elif not workers:
        said.append("The diamond is the model that would be shipped; gradients are computed from parts of it.")
    if has_springs(run):
        said.append("Springs tie each replica to the centre, the diamond.")
    elif tie(run, learning) == "cloud":
        said.append("The shaded cloud spans all replicas, and averaging contracts it; the diamond is their mean.")
    elif len(learning.arrows):
        said.append("An arrow leads from the model at which a gradient was computed to the one it was applied to.")
    elif averages(run) and workers > 1:
        said.append("A dashed step ends in the same model as another worker's: they have averaged.")
    if np.isfinite(learning.blown):
        said.append(
            f"The run diverges, and is drawn until it leaves the picture: after {units.seconds(learning.blown)} its "
            f"loss never returns below {BLOWN:g} times its first value. A triangle at the edge points to where a "
            "worker went."
        )
    if learning.every > 1:
        said.append(f"One in {learning.every} gradients of each worker is drawn.")
    if learning.boundary:
        said.append(
            "The other picture shows the data: its colours are the class that the model gives to each point, paler "
            "where it is unsure, and its marks are held-out samples, outlined where the model is wrong."
        )
    return " ".join(said)
