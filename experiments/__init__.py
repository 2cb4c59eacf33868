"""One run: an Experiment specifies it, `run` makes it, a Run holds all that was recorded.

Experiment (frozen, validated, one JSON, one URL, one command line) -> run() -> Run -> store, compare, export.

    specification/  what to run: the experiment, its faults, the catalogue of what there is to choose from
    wording/        how numbers, experiments, ranks and places are written
    runs/           records of runs: figures, evaluations, causes of waits, files, folders
    execution/      how a run is made, and what is checked before
    jobs/           runs and other work in processes of their own
    measure/        this machine: kernels, messages, the layers of a model
    study/          schedules, partitions and rates
    learning/       a run replayed, to see what it learned
    viewer/         pictures for a browser: canvases and what they draw
    exports/        files that need no Lockstep: tables, charts, pages, traces
    cli/            the command line, a file per command; notebook.py, the same in a notebook

Each room imports only rooms above it in this list.

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
        return import_module("experiments.execution.run")
    if name == "sweep":
        return import_module("experiments.cli.notebook").sweep
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "run", "sweep"]
