"""Room: how much memory a run takes at least, and how much this machine has for it."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from experiments.specification.experiment import Experiment
from experiments.wording import units
from workloads.workload import Workload

FIXED = 4  # models


def check(experiment: Experiment, workload: Workload) -> None:
    """Raise ValueError, in a sentence, if the models of a run of `experiment` cannot fit this process's memory."""
    least, free = needed(experiment, workload), available()
    if least > free:
        raise ValueError(
            f"a model of {workload.parameters:,} parameters with {experiment.workers} "
            f"worker{'s' * (experiment.workers != 1)} needs at least {units.size(least)} of memory here, and "
            f"{units.size(max(free, 0))} are free; use a smaller model or fewer workers. "
            "`lockstep memory` says what a model takes without training it."
        )


def needed(experiment: Experiment, workload: Workload) -> int:
    """Return the bytes that a run takes at least: the models that its workers have together, and FIXED more.

    Those are the first and the last model, a gradient, and what is evaluated; one worker takes ten models in all, and
    four workers of synchronous SGD thirteen. Batches, activations and optimizers are not counted.
    """
    whole = experiment.workers / experiment.method.split(experiment.workers, experiment.knobs).parameters
    return int((FIXED + whole) * workload.parameters * np.dtype(experiment.precision).itemsize)


def available() -> float:
    """Return how many bytes this process can still take, by its limit and what is free; inf where neither is known."""
    free = float("inf")
    with contextlib.suppress(OSError, ValueError, IndexError):
        facts = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text("ascii").splitlines())
        free = 1024 * sum(int(facts[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        most, _ = resource.getrlimit(resource.RLIMIT_AS)
        if most != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
            free = min(free, most - pages * resource.getpagesize())
    return free
