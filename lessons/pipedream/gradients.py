"""Measure how far a PipeDream update is from its mini-batch's gradient at three versions of the weights."""

import numpy as np

from experiments.execution.run import check
from experiments.specification.experiment import Experiment
from lessons.seeds import Seeded
from workloads.batches import Batches

PLACES = "the weights of its forward pass", "one older version", "the newest version"


def distance(run: Seeded, batches=range(24, 28), **values) -> dict[str, float]:
    """Return how far updates are from their mini-batch's gradient at each of PLACES, as a fraction of that gradient's
    length.

    `values` are the settings of an experiment with pipedream, without momentum. The forward pass of mini-batch b reads
    version b-(S-1-s) on stage s. Version b-(S-1) is the newest that all stages had when it started, and version b is
    the newest before its update. A stage's weights after v updates are the final weights of a run of v steps.
    """
    workload = check(Experiment.of(values | {"seed": run.seed}))
    stages, rate = values["workers"], values["learning_rate"]
    versions = {v: run(**values, steps=v).parameters for v in range(batches[0] - stages + 1, batches[-1] + 2)}  # (d,)
    stream = Batches(workload.samples, values["batch"], seed=run.seed, shuffle=workload.shuffle)
    samples = [workload.batch(next(stream)) for _ in range(batches[-1] + 1)]
    found = []
    for b in batches:
        met = np.empty_like(versions[b])
        for s, part in enumerate(workload.split(stages)):
            here = slice(part.offset, part.offset + part.parameters)
            met[here] = versions[b - (stages - 1 - s)][here]
        update = (versions[b] - versions[b + 1]) / rate
        gradients = [workload.gradient(w, samples[b])[1] for w in (met, versions[b - stages + 1], versions[b])]
        found.append([np.linalg.norm(update - g) / np.linalg.norm(g) for g in gradients])
    return dict(zip(PLACES, np.mean(found, axis=0).tolist(), strict=True))
