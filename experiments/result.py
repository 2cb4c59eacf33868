"""Run: everything that was recorded of one experiment, in plain columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cluster.trace import MEASURES, Trace, joined
from experiments.experiment import Experiment


def no_measures() -> dict[str, np.ndarray]:
    """An empty table of measures."""
    return joined((), "measures", MEASURES, "i4 i4 f8 i4 f8")


@dataclass
class Run:
    """The record of one run.

    losses       columns of cluster.trace.LOSSES: rank, step, samples, seconds, loss; one row per mini-batch
    evaluations  columns seconds, step, samples, bytes, loss, accuracy, spread: the reported model on held-out data,
                 and how far the replicas that it is the mean of are apart
    applied      columns of cluster.trace.APPLIED: rank, seconds, staleness
    measures     columns of cluster.trace.MEASURES, quantity indexing `quantities`: what the method measured itself
    summary      plain values for people: what the command line prints and run.json keeps
    status       "finished", "diverged", "failed" or "cancelled"; `error` says why in one sentence
    parameters   the final model, (d,), None if the run ended before there was one
    """

    experiment: Experiment
    trace: Trace
    losses: dict[str, np.ndarray]
    evaluations: dict[str, np.ndarray]
    applied: dict[str, np.ndarray]
    status: str = "finished"
    error: str = ""
    notes: tuple[str, ...] = ()
    summary: dict[str, Any] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    parameters: np.ndarray | None = None
    measures: dict[str, np.ndarray] = field(default_factory=no_measures)
    quantities: tuple[str, ...] = ()

    def measured(self, quantity: str) -> dict[str, np.ndarray]:
        """The rows of one quantity: rank, step, seconds, value; empty if it was not measured."""
        number = self.quantities.index(quantity) if quantity in self.quantities else -1
        some = self.measures["quantity"] == number
        return {name: column[some] for name, column in self.measures.items() if name != "quantity"}

    def course(self, quantity: str) -> tuple[np.ndarray, np.ndarray]:
        """(steps, values) of one quantity: a line whose points are means over the ranks that measured in a step."""
        rows = self.measured(quantity)
        steps, place = np.unique(rows["step"], return_inverse=True)
        return steps, np.bincount(place, rows["value"]) / np.bincount(place)
