"""Scaling: speed-up and efficiency of runs with more workers.

Weak scaling leaves each worker its batch, so that a step has more samples with more workers. Strong scaling divides one
global batch among them. Either way the speed-up is the ratio of samples per second, or of times to a target loss, to
the run with the fewest workers; the efficiency is the speed-up over the ratio of workers.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from experiments.runs.record import Run, RunOutcome
from experiments.specification.experiment import Experiment
from workloads.budget import RECENT


class Scaling(NamedTuple):
    """The scaling figures of one run, or their means over seeds; None where unknown, for example if a target loss was
    not reached.
    """

    step_seconds: float | None
    speed_up: float | None
    efficiency: float | None  # of one


def samples_or_target(run: Run | RunOutcome) -> float | None:
    """Return the speed of a run in samples per second. With a target loss, return 1 / (seconds to reach it), or None if
    it was not reached.
    """
    target = run.experiment.target_loss
    if target is None:
        return run.summary["samples_per_second"]
    return 1 / run.summary["seconds"] if _reached(run, target) and run.summary["seconds"] else None


def scaling(
    together: Sequence[Sequence[Run | RunOutcome]],
    axes: Sequence[str],
    rate: Callable[[Any], float | None] = samples_or_target,
) -> list[Scaling] | None:
    """Return the scaling figures of each group of runs that differ only in their seed, or None if the number of workers
    was not varied.

    `axes` are the settings that were varied. Runs are compared with the one with the fewest workers among those with
    the same values of the other settings. The speed-up is a ratio of `rate(run)`, the mean over seeds.
    """
    if "workers" not in axes:
        return None
    others = [name for name in axes if name not in ("workers", "seed")]
    keys = [tuple(some[0].experiment.in_force().get(name) for name in others) for some in together]
    workers = [some[0].experiment.workers for some in together]
    rates = [_mean([rate(run) for run in some]) for some in together]
    found = []
    for place, (key, count, reached) in enumerate(zip(keys, workers, rates, strict=True)):
        fewest = min((n for n in range(len(keys)) if keys[n] == key), key=lambda n: workers[n])
        slowest = rates[fewest]
        faster = reached / slowest if reached and slowest else None
        steps = _mean([run.summary["seconds"] / (run.summary["steps"] or np.nan) for run in together[place]])
        found.append(Scaling(steps, faster, faster and faster * workers[fewest] / count))
    return found


def global_batch(experiment: Experiment) -> int:
    """Return the number of samples in a step of all workers."""
    return experiment.batch * experiment.method.data_shards(experiment.workers, experiment.knobs)


def batch_per_worker(experiment: Experiment, samples: int) -> int:
    """Return a worker's batch if a step of all workers has `samples`. Raise ValueError if they do not divide evenly."""
    shares = experiment.method.data_shards(experiment.workers, experiment.knobs)
    if samples % shares == 0:
        return samples // shares
    fit = [str(n) for n in range(1, min(samples, 64) + 1) if samples % n == 0]
    near = [n for n in (samples - samples % shares, samples - samples % shares + shares) if n]
    raise ValueError(
        f"{shares} workers cannot divide a global batch of {samples} evenly; use {', '.join(fit[:-1])} or {fit[-1]} "
        f"workers, or a global batch of {' or '.join(map(str, near))}."
    )


def _reached(run: Run | RunOutcome, target: float) -> bool:
    """Return True if a rank's mean loss reached the target, which ends the run."""
    rank, loss = run.losses["rank"], run.losses["loss"]
    last = [loss[rank == one][-RECENT:] for one in np.unique(rank)]
    return any(len(some) == RECENT and some.mean() <= target for some in last)


def _mean(values: Sequence[float | None]) -> float | None:
    known = np.array(values, float)  # None becomes NaN
    return float(known.mean()) if len(known) and not np.isnan(known).any() else None
