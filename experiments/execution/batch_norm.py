"""Check whether batch norms can take their statistics over all workers, as `sync_batch_norm` asks."""

import algorithms
from experiments.specification.experiment import Experiment
from workloads.workload import Workload


def check(experiment: Experiment, workload: Workload) -> None:
    """Raise ValueError if batch norms should be synchronised but cannot be."""
    if not experiment.sync_batch_norm:
        return
    if not experiment.method.computes_together:
        able = [name for name in algorithms.names() if algorithms.find(name).computes_together]
        raise ValueError(
            f"sync_batch_norm: the workers of {experiment.algorithm} do not compute the gradients of a step together; "
            f"use {', '.join(able[:-1])} or {able[-1]}, or remove it."
        )
    if not workload.synchronises:
        why = "PyTorch computes its batch norms" if workload.over_batch else "it has no batch norm"
        raise ValueError(
            f"sync_batch_norm: the model of {experiment.workload} cannot be synchronised, because {why}; use the model "
            "cnn_bn of digits or mnist, or remove it."
        )
