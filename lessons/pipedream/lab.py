"""Assignments of the lab on PipeDream."""

from lessons.figure import column, value
from lessons.instructor.assignment import Assignment

DEEP = {
    "model": "residual", "depth": 14, "width": 32, "momentum": 0.9, "learning_rate": 0.003, "network": "ideal",
    "steps": 300,
}  # fmt: skip
VERSIONS = Assignment(
    {**DEEP, "algorithm": "pipedream"},
    turn={"weights": ("none", "stash", "vertical"), "workers": (1, 4, 8)},
    note=("held_out_loss",),
    claims={
        "with one worker all methods end at the same loss": lambda rows: (
            len(set(column(rows, "held_out_loss", workers=1))) == 1
        ),
        "with eight workers, vertical sync has the highest loss": lambda rows: value(
            rows, "held_out_loss", weights="vertical", workers=8
        ) == max(column(rows, "held_out_loss")),
    },
)  # fmt: skip
PREDICTED = Assignment(
    {**DEEP, "algorithm": "spectrain"}, turn={"workers": (1, 4, 8)}, note=("held_out_loss",),
    claims={"eight workers end at a loss below 1.15": lambda rows: rows[-1]["held_out_loss"] < 1.15},
)  # fmt: skip
DOUBLED = Assignment(
    {**DEEP, "algorithm": "pipedream_2bw", "chunks": 8}, turn={"workers": (1, 4, 8)}, note=("held_out_loss",),
    claims={"with 1, 4 or 8 workers, the losses differ by less than a fifth": lambda rows: (
        max(column(rows, "held_out_loss")) < 1.2 * min(column(rows, "held_out_loss"))
    )},
)  # fmt: skip
RELU = Assignment(
    {
        "algorithm": "pipedream",
        "model": "mlp",
        "hidden": "64,64,64,64,64,64,64",
        "activation": "relu",
        "momentum": 0.0,
        "learning_rate": 0.1,
        "workers": 8,
        "steps": 300,
        "network": "ideal",
    },
    turn={"weights": ("stash", "none")},
    note=("held_out_loss",),
    claims={
        "without the stash training diverges, with it the loss stays finite": lambda rows: (
            rows[0]["held_out_loss"] < float("inf") == rows[1]["held_out_loss"]
        )
    },
)
