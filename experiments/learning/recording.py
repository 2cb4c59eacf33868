"""Record the models of a run while it trains, so that no replay is needed to see how it learned.

Copying a model and looking for an equal one takes as long as a few floating-point operations per byte. That is little
for a model applied at many positions of a sample, such as a Transformer or a convolution: 3 to 4 % of a run on text.
Other runs are replayed instead, which takes no longer than computing the picture.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from experiments.execution.run import run_with_models, workload_of
from experiments.learning.trajectory import Trajectory, watch_worker
from experiments.runs.evaluations import Model
from experiments.runs.progress import Progress
from experiments.runs.record import Run
from experiments.specification.experiment import Experiment
from workloads.supervised import Supervised
from workloads.workload import Workload

DENSE = 250  # a run is recorded if a gradient takes at least this many floating-point operations per byte of the model
LIMIT = 128_000_000  # bytes of models above which a recording is dropped


class Recording(NamedTuple):
    """A run, its evaluated models, and the models that passed through its ranks."""

    run: Run
    models: list[Model]
    trajectory: Trajectory


def record(
    experiment: Experiment, on_progress: Callable[[Progress], None] | None = None, stop: Any = None
) -> tuple[Run, Recording | None]:
    """Run the experiment, and return (run, recording), where the recording is None if it would cost too much. The run
    is the same, bit for bit, as without recording.
    """
    trajectory = _trajectory(experiment)
    worker = watch_worker(experiment.method.worker, trajectory) if trajectory else None
    run, models = run_with_models(experiment, on_progress, stop, worker)
    return run, Recording(run, models, trajectory) if trajectory and trajectory.every == 1 else None


def forward_flops(workload: Workload) -> float:
    """Return the floating-point operations of one sample's forward pass."""
    layers = workload.model.layers if isinstance(workload, Supervised) else ()
    return sum(layer.flops for layer in layers) or 2.0 * workload.parameters


def _trajectory(e: Experiment) -> Trajectory | None:
    """Return an empty trajectory if a gradient of this run takes far longer than a copy of its model, else None."""
    if e.cluster != "simulated":
        return None
    workload = workload_of(e)
    size = workload.parameters * workload.dtype.itemsize
    if 3 * e.batch * forward_flops(workload) < DENSE * size or 4 * e.ranks * size > LIMIT:
        return None
    return Trajectory(workload.parameters, workload.dtype.itemsize, e.ranks, LIMIT)
