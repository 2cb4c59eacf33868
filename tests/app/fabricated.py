"""A run that never happened: plausible numbers in every column, for pictures that need no training."""

import numpy as np

from cluster.trace import COMMUNICATE, COMPUTE, IDLE, UPDATE, WAIT, Trace
from experiments.experiment import Experiment
from experiments.result import Run
from experiments.summary import summarise


def run(experiment: Experiment, steps: int = 60, accuracy: bool = True, asynchronous: bool = True) -> Run:
    """Servers that answer, workers that compute, send, wait and update, `steps` times."""
    servers, workers, seed = experiment.servers, experiment.workers, experiment.seed
    draw = np.random.default_rng(seed)
    spans, messages, losses, applied = [], [], [], []
    for worker in range(servers, servers + workers):
        now = 0.0
        for step in range(steps):
            took = 1e-3 * draw.lognormal(0, 0.2) * (2 if worker == servers + 1 else 1)
            for kind, length, label in (
                (COMPUTE, took, "gradient"),
                (COMMUNICATE, 3e-4, "push"),
                (WAIT, 2e-4 * draw.exponential(), "parameters"),
                (UPDATE, 1e-4, "sgd"),
            ):
                spans.append((worker, kind, now, now + length, step, label))
                if kind == COMMUNICATE and servers:
                    messages.append((worker, 0, 0, 52_000, now, now + length, False))
                    spans.append((0, UPDATE, now + length, now + length + 5e-5, -1, "adagrad"))
                    messages.append((0, worker, 0, 52_000, now + length + 5e-5, now + 2 * length, False))
                now += length
            losses.append((worker, step, (step + 1) * 32, now, 2.3 * np.exp(-step / 25) + 0.1 * draw.random() + 0.1))
            if asynchronous:
                applied.append((0, now, draw.poisson(workers - 1)))
        spans.append((worker, IDLE, now, now + 2e-3, steps, "done"))
    labels = {row[5]: index for index, row in enumerate(reversed(spans))}
    spans = [(*row[:5], list(labels).index(row[5])) for row in spans]
    at = np.linspace(0, max(row[3] for row in spans), 20)
    tried = {
        "seconds": at,
        "step": np.linspace(0, steps, 20),
        "samples": np.linspace(0, steps * workers * 32, 20).astype(int),
        "bytes": np.linspace(0, sum(row[3] for row in messages), 20).astype(int),
        "loss": 2.3 * np.exp(-np.linspace(0, 3, 20)) + 0.15,
        "accuracy": 1 - 0.9 * np.exp(-np.linspace(0, 3, 20)) if accuracy else np.full(20, np.nan),
    }
    made = Run(
        experiment=experiment,
        trace=Trace(
            servers + workers,
            _columns(spans, ("rank", "kind", "start", "end", "step", "label"), "i4 i1 f8 f8 i4 i4", ("start", "rank")),
            _columns(
                messages,
                ("src", "dst", "tag", "bytes", "sent", "arrived", "collective"),
                "i4 i4 i4 i8 f8 f8 ?",
                ("sent",),
            ),
            tuple(labels),
        ),
        losses=_columns(losses, ("rank", "step", "samples", "seconds", "loss"), "i4 i4 i8 f8 f8", ("seconds",)),
        evaluations=tried,
        applied=_columns(applied, ("rank", "seconds", "staleness"), "i4 f8 i4", ("seconds",)),
    )
    made.summary = summarise(made, 0.5)
    return made


def _columns(rows, names, types, keys):
    rows = sorted(rows, key=lambda row: [row[names.index(key)] for key in keys])
    cells = list(zip(*rows, strict=True)) if rows else [[] for _ in names]
    return {name: np.array(cell, kind) for name, cell, kind in zip(names, cells, types.split(), strict=True)}
