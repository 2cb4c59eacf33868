"""Naming: what an experiment is called, by the titles of the catalogue."""

from __future__ import annotations

from experiments.catalogue import ALGORITHMS, COMPRESSIONS, WORKLOADS
from experiments.experiment import Experiment


def method(e: Experiment) -> str:
    """Return what trains: "Synchronous SGD", "Synchronous SGD with Top-k"."""
    title = ALGORITHMS[e.algorithm].title
    return title if e.compression == "none" else f"{title} with {COMPRESSIONS[e.compression].title}"


def title(e: Experiment) -> str:
    """Return what a run is called: "Synchronous SGD on handwritten digits"."""
    return f"{method(e)} on {WORKLOADS[e.workload].title}"


def files(e: Experiment) -> str:
    """Return the names by which links and command lines choose the same: "sync_sgd, digits"."""
    coded = [] if e.compression == "none" else [e.compression]
    return ", ".join([e.algorithm, *coded, e.workload])
