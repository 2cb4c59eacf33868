"""Trial: compute one gradient of two samples, to find out whether an experiment can train."""

import math

import numpy as np

from experiments.execution.run import check as check_that_it_can_run
from experiments.specification.experiment import Experiment
from kernels import meter_kernels

SAMPLES = 2  # a batch norm needs two to have a variance


def check(experiment: Experiment) -> None:
    """Build the experiment's workload and compute one gradient. Raise ValueError if that is not possible, or if the
    gradient is not finite.
    """
    workload = check_that_it_can_run(experiment)
    with meter_kernels(None), np.errstate(all="ignore"):
        w = workload.start(experiment.seed)
        loss, g = workload.gradient(w, workload.batch(np.arange(min(SAMPLES, workload.samples))))
    if not (math.isfinite(loss) and np.isfinite(g).all()):
        raise ValueError(
            f"{experiment.workload}: the first gradient is not finite (its loss is {loss:g}); look for numbers that "
            "are too large, a logarithm of 0 or a division by 0."
        )
