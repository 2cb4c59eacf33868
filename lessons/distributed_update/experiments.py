"""Distributed update: what else can be done around the all-reduce of a synchronous step."""

from __future__ import annotations

import numpy as np

from lessons.figure import column, figure, value
from tracing import HELD

MS = 1e3
ADAM = HELD.index("optimizer state")


@figure(
    "What remains on a rank of Adam's memory when the update is dealt out?",
    source="Rajbhandari et al., SC 2020; Sridharan et al., arXiv:1801.08030",
    claims={
        "a rank of P remembers the P-th part": lambda rows: all(
            abs(row["kB of Adam, zero1"] * row["ranks"] / row["kB of Adam, sync_sgd"] - 1) < 0.01 for row in rows
        ),
        "for the same bytes on the wire": lambda rows: column(rows, "MB, zero1") == column(rows, "MB, sync_sgd"),
        "and the same model, to the bit": lambda rows: all(row["same model"] for row in rows),
    },
)
def distributed_update(run):
    """Synchronous training of the digits with Adam, 20 steps, updated by everybody (sync_sgd) or by pieces (zero1)."""
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
    "When is it worth while to accumulate gradients?",
    source="Goyal et al., arXiv:1706.02677; no_sync() of PyTorch's DistributedDataParallel",
    claims={
        "on a slow network eight mini-batches per exchange halve the time and more": lambda rows: (
            value(rows, "ms per mini-batch", network="1GbE", accumulate=8)
            < value(rows, "ms per mini-batch", network="1GbE", accumulate=1) / 2
        ),
        "on a fast one they gain much less": lambda rows: gain(rows, "HDR") < gain(rows, "1GbE") / 2,
        "and the loss after as many mini-batches is higher, since there were fewer updates": lambda rows: (
            value(rows, "loss", network="1GbE", accumulate=8) > value(rows, "loss", network="1GbE", accumulate=1)
        ),
    },
)
def accumulated(run):
    """Training of the digits by 8 workers, 120 mini-batches each, with the same learning rate."""
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
