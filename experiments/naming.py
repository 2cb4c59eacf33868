"""Naming: what an experiment is called, by the titles of the catalogue."""

from __future__ import annotations

from experiments.catalogue import ALGORITHMS, COMPRESSIONS, WORKLOADS
from experiments.experiment import Experiment
from workloads import own_module, table


def method(e: Experiment) -> str:
    """Return what trains: "Synchronous SGD", "Synchronous SGD with Top-k"."""
    title = ALGORITHMS[e.algorithm].title
    return title if e.compression == "none" else f"{title} with {COMPRESSIONS[e.compression].title}"


def title(e: Experiment) -> str:
    """Return what a run is called: "Synchronous SGD on handwritten digits"."""
    return f"{method(e)} on {data(e)}"


def data(e: Experiment) -> str:
    """Return what it is trained on: "handwritten digits"; what is one's own, by the name of its file: "iris"."""
    own = {"table": table, "own_module": own_module}.get(e.workload)
    name = e.data["table" if e.workload == "table" else "net"] if own else ""
    return own.title(name) if name else WORKLOADS[e.workload].title


def files(e: Experiment) -> str:
    """Return the names by which links and command lines choose the same: "sync_sgd, digits"."""
    coded = [] if e.compression == "none" else [e.compression]
    return ", ".join([e.algorithm, *coded, e.workload])
