"""Assignments of the lab on pipelines."""

import numpy as np

from lessons.figure import column, is_falling
from lessons.instructor.assignment import Assignment

CHUNKS = Assignment(
    {
        "algorithm": "gpipe",
        "workers": 4,
        "depth": 30,
        "width": 64,
        "batch": 256,
        "steps": 10,
        "learning_rate": 0.05,
        "network": "10GbE",
    },
    turn={"chunks": (1, 2, 4, 8, 16, 32, 64, 128, 256)},
    note=("samples_per_second", "share_wait", "held_out_loss"),
    claims={
        "the more micro-batches, the less of the time is spent waiting": (
            lambda rows: is_falling(column(rows, "share_wait"))
        ),
        "with 256 micro-batches, training is less than half as fast as with one": lambda rows: (
            rows[-1]["samples_per_second"] < rows[0]["samples_per_second"] / 2
        ),
        "the loss is the same, up to rounding": lambda rows: np.ptp(column(rows, "held_out_loss")) < 1e-4,
    },
)
