"""Replay a stored run with watched tasks, to record how it learned, as a job of the pool.

The job takes an experiment and the digest of its run, so it reads no folder that a reader may have uploaded. It takes
as long as the run, plus about WORK floating-point operations to evaluate the ground, and up to LIMIT bytes of memory
for models. If this process has recorded the run, it only evaluates the ground. It stores a few numbers per gradient.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.execution.run import run_with_models, workload_of
from experiments.jobs.spec import JobSpec
from experiments.learning import boundary, plane
from experiments.learning.record import BLOWN, FILE, Learning, save
from experiments.learning.recording import Recording, forward_flops
from experiments.learning.trajectory import END, GRADIENT, REPORT, Sighting, Trajectory, arrows, watch_worker
from experiments.runs import evaluations
from experiments.runs.evaluations import Model
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from workloads.workload import Workload

CELLS = 1728  # of the ground, at most
COARSE = 108  # of the ground, at least
WORK = 1e10  # floating-point operations for the ground's evaluations, if there are more than COARSE cells
TOO_MUCH = 1e12  # operations above which not even a coarse ground is computed
FARTHEST = 1e30  # the largest coordinate that is drawn: it fits in a float32
SHARE = 0.8  # share of the job's progress that the replay accounts for


def perform(
    values: dict[str, Any], root: Path, progress: Callable[[float], None], recording: Recording | None = None
) -> Path:
    """Store how the run learned, and return the folder. It is found from the run's recording if there is one, else by a
    replay.

    Raise ValueError if the replay does not end with the run's digest.
    """
    learning = learn(Experiment.from_json(values["experiment"]), values["digest"], progress, recording)
    return JobSpec("learning", values).keep(root, lambda folder: save(learning, folder / FILE))


def learn(
    e: Experiment,
    digest: str,
    progress: Callable[[float], None] = lambda part: None,
    recording: Recording | None = None,
) -> Learning:
    """Return how the run of `e` with this digest learned. Replay the run if there is no `recording` of its models."""
    workload = workload_of(e)
    if workload.parameters < 2:
        raise ValueError("a model of one parameter has no plane; use a dimension of 2 or more to see its path.")
    run, models, trajectory = recording or _replay(e, lambda part: progress(SHARE * part))
    if run.summary["digest"] != digest:
        raise ValueError(
            f"the replay ended with the digest {run.summary['digest']}, but the run with {digest}, because another "
            "machine or another version of the source computed it; press Run to repeat the run here."
        )
    path = _path(e, trajectory, models)
    blown = _blown(run)
    until = _until(path, blown)
    inside = [row for row in path if row[1] <= until]
    known = [model for model in models if model.seconds <= blown and np.isfinite(model.w).all()]
    final = (known or models)[-1].w
    flat = plane.through([trajectory.models[place] for _, _, place in inside], final)
    points = flat.coordinates(trajectory.models)
    means, middles = _means(e, trajectory, points)
    points, path = np.concatenate([points, middles]), path + means
    path.sort(key=lambda row: row[1])
    cells, shown = _cells(workload), points[[place for _, seconds, place in path if seconds <= until]]

    def loss(w: np.ndarray) -> float:
        return evaluations.evaluate(workload, w.astype(workload.dtype)).loss if cells else np.nan

    ground = plane.ground(flat, shown, loss, cells or COARSE, lambda part: progress(SHARE + (1 - SHARE) * part))
    stale = [*arrows(trajectory, e.servers)]
    return Learning(
        ranks=e.ranks,
        points=points.clip(-FARTHEST, FARTHEST).astype("f4"),
        who=np.array([row[0] for row in path], "i4"),
        seconds=np.array([row[1] for row in path]),
        place=np.array([row[2] for row in path], "i4"),
        arrows=np.array([(one.start, one.stop) for one in stale], "i4").reshape(-1, 2),
        applied=np.array([one.seconds for one in stale]),
        shares=flat.shares,
        box=ground.box,
        ground=ground.loss,
        stretch=ground.stretch,
        every=trajectory.every,
        assembled=all(one.what != REPORT for one in trajectory.sightings),
        blown=blown,
        boundary=boundary.snapshots(workload, run, models) if boundary.applies(workload) else None,
    )


def _replay(e: Experiment, progress: Callable[[float], None]) -> Recording:
    """Run `e` again, however long that takes, and return a recording of all its models."""
    workload = workload_of(e)
    trajectory = Trajectory(workload.parameters, workload.dtype.itemsize, e.ranks)
    worker = watch_worker(e.method.worker, trajectory)
    run, models = run_with_models(e, lambda now: progress(now.fraction), worker_override=worker)
    return Recording(run, models, trajectory)


Row = tuple[int, float, int]  # rank, or the number of ranks for the model; seconds; place


def _path(e: Experiment, trajectory: Trajectory, models: list[Model]) -> list[Row]:
    """Return the path's rows for the workers' models and, unless several ranks report replicas, for the shipped
    model.
    """
    training = {one.rank for one in trajectory.sightings if one.what == GRADIENT}
    rows = [
        (one.rank, one.seconds, one.place)
        for one in trajectory.sightings
        if one.what == GRADIENT or (one.what == END and one.rank in training)
    ]
    if len({one.rank for one in trajectory.sightings if one.what == REPORT}) < 2:
        rows += [(e.ranks, one.seconds, one.place) for one in trajectory.sightings if one.what == REPORT]
        shown = models if not any(one.what == REPORT for one in trajectory.sightings) else (models[0], models[-1])
        for model in shown:
            if np.isfinite(model.w).all():
                rows.append((e.ranks, model.seconds, trajectory.keep(model.w)))
    return rows


def _means(e: Experiment, trajectory: Trajectory, points: np.ndarray) -> tuple[list[Row], np.ndarray]:
    """Return the path's rows for the shipped model, and its points, each the mean of the replicas that ranks report.
    Both are empty unless several ranks report replicas.

    The indices of these points follow those of `points`. A rank that was lost, and so returned nothing, counts in the
    mean until its last report.
    """
    replicas = {one.rank for one in trajectory.sightings if one.what == REPORT}
    seen = [one for one in trajectory.sightings if one.rank in replicas and one.what in (REPORT, END)]
    rows: list[Row] = []
    middles = [np.zeros((0, 2))]
    if len(replicas) > 1:
        ended = {one.rank for one in seen if one.what == END}
        last = {one.rank: one.seconds for one in seen}
        latest: dict[int, Sighting] = {}
        for one in sorted(seen, key=lambda one: one.seconds):
            latest = {rank: other for rank, other in latest.items() if rank in ended or last[rank] >= one.seconds}
            latest[one.rank] = one
            rows.append((e.ranks, one.seconds, len(points) + len(rows)))
            middles.append(points[[other.place for other in latest.values()]].mean(0, keepdims=True))
    return rows, np.concatenate(middles)


def _until(path: list[Row], blown: float) -> float:
    """Return `blown`, or the time of the path's second point if that comes later: a plane needs two points."""
    first = {place for _, seconds, place in path if seconds <= blown}
    if len(first) > 1:
        return blown
    return min((seconds for _, seconds, place in path if seconds > blown and place not in first), default=blown)


def _blown(run: Run) -> float:
    """Return the time of the last loss that is not far above the first, or infinity if that is the run's last loss."""
    loss, seconds = run.losses["loss"], run.losses["seconds"]
    good = np.flatnonzero(loss <= BLOWN * loss[:1].max(initial=1e-9))
    if not len(good) or seconds[good[-1]] == seconds[-1]:
        return np.inf
    return float(seconds[good[-1]])


def _cells(workload: Workload) -> int:
    """Return the number of points of the plane at which to evaluate the loss, or 0 if even COARSE points would take too
    long.
    """
    work = forward_flops(workload) * max(1, workload.held_out_samples)
    return 0 if work * COARSE > TOO_MUCH else int(np.clip(WORK / work, COARSE, CELLS))
