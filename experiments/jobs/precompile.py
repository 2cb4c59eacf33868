"""Compile the kernels that the first run would otherwise wait for: `python -m experiments.jobs.precompile`.

Numba keeps compiled kernels on disk, so this is worth doing once after an installation.
"""

import algorithms
from algorithms.compression import COMPRESSIONS
from experiments.execution.run import run
from experiments.specification.experiment import Experiment


def main() -> None:
    """Run two steps with every algorithm, compression and model, with a ring all-reduce, and on three workloads."""
    for name in algorithms.names():
        run(Experiment.of({"algorithm": name, "steps": 2}))
    for name in COMPRESSIONS:
        run(Experiment.of({"compression": name, "steps": 2}))
    for model in ("residual", "cnn", "cnn_bn"):
        run(Experiment.of({"algorithm": "sgd", "steps": 2, "workers": 1, "model": model}))
    run(Experiment.of({"collective": "ring", "steps": 2}))
    for workload in ("quadratic", "text"):
        run(Experiment.of({"algorithm": "sgd", "steps": 2, "workers": 1, "workload": workload}))


if __name__ == "__main__":
    main()
