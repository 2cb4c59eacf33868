"""A run that never happened: plausible numbers in every column, for pages and pictures that need no training."""

import numpy as np

from experiments.runs.record import Run
from experiments.runs.summary import source_version, summarise
from experiments.specification.experiment import Experiment
from tracing import (
    APPLIED,
    COMMUNICATE,
    COMPUTE,
    IDLE,
    LOSSES,
    MEASURES,
    MEMORY,
    MESSAGES,
    SPANS,
    UPDATE,
    WAIT,
    Trace,
)

STEPS = 40
DIMENSIONS = 13_000


def run(
    experiment: Experiment,
    *,
    stale: bool = True,
    accuracy: bool = True,
    quantities: tuple[str, ...] = (),
    status: str = "finished",
    error: str = "",
):
    """Servers that answer, workers that compute, send, wait and update, and measure: a record of `experiment`."""
    servers, ranks = experiment.servers, experiment.ranks
    draw = np.random.default_rng(experiment.seed)
    spans, messages, losses, applied = [], [], [], []
    labels = ("gradient", "push", "parameters", "sgd", "done")
    for rank in range(servers, ranks):
        now, to = 0.0, 0 if servers else (rank + 1) % ranks
        for step in range(STEPS):
            took = 1e-3 * draw.lognormal(0, 0.2) * (2 if rank == servers + 1 else 1)
            waited = 2e-4 * draw.exponential()
            for label, (kind, length) in enumerate(
                ((COMPUTE, took), (COMMUNICATE, 3e-4), (WAIT, waited), (UPDATE, 1e-4)),
            ):
                spans.append((rank, kind, now, now + length, step, label))
                if kind == COMMUNICATE and to != rank:
                    messages.append((rank, to, 0, 4 * DIMENSIONS, now, now + length, False))
                now += length
            losses.append(
                (rank, step, (step + 1) * experiment.batch, now, 2.3 * np.exp(-step / 15) + 0.1 * draw.random())
            )
            if stale:
                applied.append((0, now, draw.poisson(max(experiment.workers - 1, 0))))
        spans.append((rank, IDLE, now, now + 2e-3, STEPS, 4))
    end, tries = max(row[3] for row in spans), 20
    share = np.linspace(0, 1, tries)
    done = Run(
        experiment=experiment,
        trace=Trace(
            ranks,
            _columns(spans, SPANS, "i4 i1 f8 f8 i4 i4", "start"),
            _columns(messages, MESSAGES, "i4 i4 i4 i8 f8 f8 ?", "sent"),
            labels,
        ),
        losses=_columns(losses, LOSSES, "i4 i4 i8 f8 f8", "seconds"),
        applied=_columns(applied, APPLIED, "i4 f8 i4", "seconds"),
        evaluations={
            "seconds": share * end,
            "step": share * STEPS,
            "samples": (share * STEPS * experiment.batch * experiment.workers).astype("i8"),
            "bytes": (share * sum(row[3] for row in messages)).astype("i8"),
            "loss": 2.3 * np.exp(-3 * share) + 0.15,
            "accuracy": 1 - 0.9 * np.exp(-3 * share) if accuracy else np.full(tries, np.nan),
            "spread": np.zeros(tries),
        },
        measures=_columns(
            [(0, step, 1e-3 * step, n, 10.0**n + step) for step in range(STEPS) for n in range(len(quantities))],
            MEASURES,
            "i4 i4 f8 i4 f8",
            "seconds",
        ),
        quantities=quantities,
        memory=_columns(
            [(rank, 0, 1e-3, kind, 4 * DIMENSIONS * (kind + 1)) for rank in range(ranks) for kind in (0, 1, 3)],
            MEMORY,
            "i4 i4 f8 i1 i8",
            "seconds",
        ),
        flops=(2.5e9,) * ranks,
        updates=STEPS,
        status=status,
        error=error,
        notes=("rank 1 read *fast* and $slow$",),
        parameters=np.zeros(DIMENSIONS, np.float32),
        held_out_samples=360 if accuracy else 0,
        environment={"code": source_version()},
    )
    done.summary = summarise(done, 0.5)
    return done


def _columns(rows, names, types, key):
    rows = sorted(rows, key=lambda row: row[names.index(key)])
    cells = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: np.array(cell, kind) for name, cell, kind in zip(names, cells, types.split(), strict=True)}
