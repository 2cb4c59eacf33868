"""Distributed update: sharding and accumulation around the all-reduce of a synchronous step."""

from __future__ import annotations

import numpy as np

from lessons.figure import Look, column, figure, value
from tracing import HELD

MS = 1e3
ADAM = HELD.index("optimizer state")


@figure(
    "How much of Adam's state does a rank keep when the update is sharded?",
    source="Rajbhandari et al., SC 2020; Sridharan et al., arXiv:1801.08030",
    claims={
        "each of P ranks keeps 1/P of it": lambda rows: all(
            abs(row["kB of Adam, zero1"] * row["ranks"] / row["kB of Adam, sync_sgd"] - 1) < 0.01 for row in rows
        ),
        "the bytes on the wire stay the same": lambda rows: column(rows, "MB, zero1") == column(rows, "MB, sync_sgd"),
        "and the model is bit-identical": lambda rows: all(row["same model"] for row in rows),
    },
    look=Look("ranks", ("kB of Adam, sync_sgd", "kB of Adam, zero1"), log="xy", title="kB of Adam's moments on a rank"),
)
def distributed_update(run):
    """Synchronous training on digits with Adam, 20 steps; each rank updates the whole model (sync_sgd) or its shard
    (zero1)."""
    rows = []
    for ranks in (1, 2, 4, 8):
        done = {
            name: run(algorithm=name, update="adam", learning_rate=0.01, workers=ranks, steps=20, evaluations=1)
            for name in ("sync_sgd", "zero1")
        }
        w = done["zero1"].parameters
        rows.append(
            {
                "ranks": ranks,
                "same model": bool(np.array_equal(w, done["sync_sgd"].parameters)),
            }
            | {f"kB of Adam, {name}": float(run.peaks()[:, ADAM].max()) / 1e3 for name, run in done.items()}
            | {f"MB, {name}": float(run.trace.traffic().sum()) / 1e6 for name, run in done.items()}
        )
    return rows


@figure(
    "When does gradient accumulation pay?",
    source="Goyal et al., arXiv:1706.02677; no_sync() of PyTorch's DistributedDataParallel",
    claims={
        "on a slow network, eight mini-batches per exchange more than halve the time": lambda rows: (
            value(rows, "ms per mini-batch", network="1GbE", accumulate=8)
            < value(rows, "ms per mini-batch", network="1GbE", accumulate=1) / 2
        ),
        "on a fast one they gain less than half as much": lambda rows: gain(rows, "HDR") < gain(rows, "1GbE") / 2,
        "after the same number of mini-batches the loss is higher, since there were fewer updates": lambda rows: (
            value(rows, "loss", network="1GbE", accumulate=8) > value(rows, "loss", network="1GbE", accumulate=1)
        ),
    },
    look=Look("accumulate", ("ms per mini-batch",), "network", log="xy", title="milliseconds of a mini-batch"),
)
def accumulated(run):
    """Training on digits with 8 workers, 120 mini-batches each, at the same learning rate."""
    rows = []
    for network in ("1GbE", "HDR"):
        for accumulate in (1, 2, 4, 8):
            done = run(
                algorithm="accumulation",
                accumulate=accumulate,
                learning_rate=0.2,
                workers=8,
                batch=8,
                steps=120,
                network=network,
                evaluations=1,
            )
            rows.append(
                {
                    "network": network,
                    "accumulate": accumulate,
                    "ms per mini-batch": MS * done.trace.seconds() / 120,
                    "MB": float(done.trace.traffic().sum()) / 1e6,
                    "loss": done.summary["held_out_loss"],
                }
            )
    return rows


def gain(rows, network):
    per_mini_batch = column(rows, "ms per mini-batch", network=network)
    return per_mini_batch[0] / per_mini_batch[-1]
