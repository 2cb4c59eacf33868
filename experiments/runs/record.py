"""Run: everything recorded of one experiment, in plain columns."""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cluster.waiting.causes import Causes, causes
from cluster.waits import Wait
from experiments.runs.guesses import Guesses
from experiments.runs.holdings import Holdings
from experiments.specification.experiment import Experiment
from tracing import MEASURES, MEMORY, Trace, join_tables


class RunOutcome(NamedTuple):
    """The part of a Run that a table of many runs needs: fields of the same names, without the trace and most tables.

    `losses` is empty unless the run was to end at a target loss.
    """

    experiment: Experiment
    status: str
    summary: dict[str, Any]
    gpus: int | None
    losses: dict[str, np.ndarray]


def no_measures() -> dict[str, np.ndarray]:
    return join_tables((), "measures", MEASURES, "i4 i4 f8 i4 f8")


def no_memory() -> dict[str, np.ndarray]:
    return join_tables((), "memory", MEMORY, "i4 i4 f8 i1 i8")


@dataclass(repr=False)
class Run(Holdings):
    """The record of one run.

    losses       columns of tracing.LOSSES: rank, step, samples, seconds, loss; one row per mini-batch
    evaluations  columns seconds, step, samples, bytes, loss, accuracy, spread: the reported model on held-out data;
                 spread is how far apart the replicas are of which it is the mean
    applied      columns of tracing.APPLIED: rank, seconds, staleness
    measures     columns of tracing.MEASURES, quantity indexing `quantities`: what the method itself measured
    memory       columns of tracing.MEMORY, kind indexing tracing.HELD: what ranks hold, and since when
    flops        FLOPs of each rank's kernels; empty if not counted
    updates      updates of the model that would be shipped; None if not counted
    summary      plain values for people: what the command line prints and run.json keeps
    status       "finished", "diverged", "failed" or "cancelled"; `error` says why in one sentence
    fatal_loss   (rank, seconds) of the rank whose loss ended the run, None if none did
    waits        what ranks waited for when the run ended in a deadlock; is not stored
    gpus         how many GPUs the ranks had, or 0 if they computed on the CPU because there were too few; None if the
                 run did not ask for GPUs
    parameters   the final model, (d,), None if the run ended before there was one
    held_out_samples   the number of samples behind accuracy, 0 without accuracy
    target_variance    variance of a regression's held-out numbers, None otherwise
    guesses      what the evaluated models answer for a few held-out samples; None without such samples
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
    memory: dict[str, np.ndarray] = field(default_factory=no_memory)
    held_out_samples: int = 0
    target_variance: float | None = None
    flops: tuple[float, ...] = ()
    updates: int | None = None
    fatal_loss: tuple[int, float] | None = None
    waits: tuple[Wait, ...] = ()
    gpus: int | None = None
    guesses: Guesses | None = None

    def __repr__(self) -> str:
        return f"<Run of {self.experiment.algorithm}: {self.status}>"

    @property
    def tables(self) -> dict[str, dict[str, np.ndarray]]:
        """The columns of every table, by its name in a run folder (experiments.runs.run_files.TABLES)."""
        return {
            "losses": self.losses,
            "evaluations": self.evaluations,
            "applied": self.applied,
            "measures": self.measures,
            "memory": self.memory,
            "spans": self.trace.spans,
            "messages": self.trace.messages,
        }

    @property
    def outcome(self) -> RunOutcome:
        """The part of this run that a table of many runs needs."""
        losses = self.losses if self.experiment.target_loss is not None else {}
        return RunOutcome(self.experiment, self.status, self.summary, self.gpus, losses)

    @property
    def digest(self) -> str | None:
        return self.summary.get("digest")

    @cached_property
    def causes(self) -> Causes:
        """Who and what caused each wait of the run."""
        return causes(self.trace)

    def standard_error(self, accuracy: Any) -> Any:
        """Return the standard error of an accuracy, or of an array of them: sqrt(p (1 - p) / n) for n held-out samples.

        NaN where n or p is not known.
        """
        return np.sqrt(accuracy * (1 - accuracy) / (self.held_out_samples or np.nan))

    def r2(self, loss: float) -> float:
        """Return the share of the held-out variance that a regression explains, or NaN if the run is not a regression.

        `loss` is half the mean squared error, so this is 1 - 2 loss / variance: 1 at best, 0 for predicting their mean.
        """
        return 1 - 2 * loss / (self.target_variance or math.nan)

    def measurements(self, quantity: str) -> dict[str, np.ndarray]:
        """Return the rows of one quantity: rank, step, seconds, value. There are no rows if it was not measured."""
        number = self.quantities.index(quantity) if quantity in self.quantities else -1
        some = self.measures["quantity"] == number
        return {name: column[some] for name, column in self.measures.items() if name != "quantity"}

    def course(self, quantity: str) -> tuple[np.ndarray, np.ndarray]:
        """Return (steps, values) of one quantity. Each value is the mean over the ranks that measured the quantity in
        that step.
        """
        rows = self.measurements(quantity)
        steps, place = np.unique(rows["step"], return_inverse=True)
        return steps, np.bincount(place, rows["value"]) / np.bincount(place)
