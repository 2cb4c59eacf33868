"""One run: an Experiment specifies it, `run` makes it, a Run holds all that was recorded.

Experiment (frozen, validated, one JSON, one URL, one command line) -> run() -> Run -> store, compare, export.

    experiment.py  run.py     what to run, and how a run is made
    catalogue.py              what experiments are made of: algorithms, compressions, workloads, presets
    runs/       records of runs: figures, evaluations, files, folders, comparisons, uploads
    jobs/       runs and other work in processes of their own
    measure/    this machine: kernels, messages, the layers of a model
    study/      schedules and partitions without training
    plots/      palette, pictures of curves, exports, charts of rows
    cli/        the command line, a file per command
    notebook.py the same in a notebook

In a notebook two words are enough:

    import experiments
    experiments.run("easgd", workers=8, network="10GbE").show()
    experiments.sweep("sync_sgd", workers=[1, 2, 4, 8])
"""

from importlib import import_module
from typing import Any


def __getattr__(name: str) -> Any:
    """Import what a notebook asks for by name; a page of the workbench, which asks for neither, stays light."""
    if name == "run":
        return import_module("experiments.run")
    if name == "sweep":
        return import_module("experiments.notebook").sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "run", "sweep"]
