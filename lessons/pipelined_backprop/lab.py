"""Assignments of the lab on pipelined back-propagation."""

from lessons.figure import column, ratio
from lessons.instructor.assignment import Assignment

EIGHT = {
    "model": "residual", "depth": 6, "width": 32, "activation": "tanh", "batch": 32, "network": "ideal",
    "device": "1e9:1e15:0", "steps": 120,
}  # fmt: skip
WAIT = Assignment(
    {**EIGHT, "algorithm": "layer_wise", "learning_rate": 0.04},
    turn={"workers": (1, 2, 4, 8)},
    note=("seconds", "share_wait", "held_out_loss"),
    claims={
        "eight stages are no faster than one": lambda rows: rows[-1]["seconds"] > 0.95 * rows[0]["seconds"],
    },
)
NEVER = Assignment(
    {**EIGHT, "algorithm": "chen", "momentum": 0.0, "learning_rate": 0.04},
    turn={"workers": (1, 2, 4, 8)},
    note=("seconds", "staleness_max", "held_out_loss"),
    claims={
        "eight stages are over four times as fast as one": lambda rows: 4 * rows[-1]["seconds"] < rows[0]["seconds"],
        "the gradients of eight stages are up to fourteen updates late": lambda rows: (
            column(rows, "staleness_max") == [0, 2, 6, 14]
        ),
    },
)
RATES = Assignment(
    {**EIGHT, "algorithm": "chen", "momentum": 0.9},
    turn={"workers": (1, 2, 4, 8), "learning_rate": (0.0016, 0.0032, 0.0064, 0.0128, 0.0256, 0.0512)},
    note=("held_out_loss",),
    claims={
        "at the smallest rate all depths end at the same loss, within a tenth": lambda rows: (
            max(column(rows, "held_out_loss", learning_rate=0.0016))
            < 1.1 * min(column(rows, "held_out_loss", learning_rate=0.0016))
        ),
        "at a rate of 0.0256, eight stages end at over four times the loss of one": lambda rows: (
            ratio(rows, "held_out_loss", workers=(8, 1), learning_rate=0.0256) > 4
        ),
    },
)
DIVIDED = Assignment(
    {**EIGHT, "algorithm": "pipemare", "workers": 8, "momentum": 0.0, "correct": False},
    turn={"rescale": (0, 10_000_000), "learning_rate": (0.0125, 0.025, 0.05, 0.1, 0.2, 0.4)},
    note=("held_out_loss",),
    claims={
        "a rate for each stage reaches a lower loss than one rate does, and its best rate is at least twice as large": (
            lambda rows: (
                _least(rows, 10_000_000)["held_out_loss"] < 0.9 * _least(rows, 0)["held_out_loss"]
                and _least(rows, 10_000_000)["learning_rate"] >= 2 * _least(rows, 0)["learning_rate"]
            )
        ),
    },
)


def _least(rows, rescale):
    """Return the row with the lowest loss among those with this `rescale`."""
    return min((row for row in rows if row["rescale"] == rescale), key=lambda row: row["held_out_loss"])
