"""Memory: the least that a run needs, and how much this machine has free."""

import contextlib
from pathlib import Path

from experiments.specification.experiment import Experiment
from experiments.wording import units
from workloads.workload import Workload

FIXED = 4  # models


def check(experiment: Experiment, workload: Workload) -> None:
    """Raise ValueError if the models of `experiment` cannot fit into this process's memory."""
    least, free = bytes_needed(experiment, workload), available()
    if least > free:
        raise ValueError(
            f"a model of {workload.parameters:,} parameters with {experiment.workers} "
            f"worker{'s' * (experiment.workers != 1)} needs at least {units.size(least)} of memory here, but only "
            f"{units.size(max(free, 0))} are free; use a smaller model or fewer workers. "
            "`lockstep memory` shows what a model takes without training it."
        )


def bytes_needed(experiment: Experiment, workload: Workload) -> int:
    """Return the least number of bytes a run needs: its workers' models plus FIXED more.

    Those are the first and the last model, a gradient, and the model being evaluated. In practice, one worker takes ten
    models, and four workers of synchronous SGD take thirteen. Batches, activations and optimizers are not counted.
    """
    whole = experiment.workers / experiment.method.split(experiment.workers, experiment.knobs).parameters
    return int((FIXED + whole) * workload.parameters * experiment.dtype.itemsize)


def available() -> float:
    """Return how many more bytes this process can use, given its limit and the free memory, or infinity if neither is
    known.
    """
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
