"""The assignments of the lab on decoupled learning."""

from lessons.figure import ratio
from lessons.instructor.assignment import Assignment

DEEP = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh", "batch": 128, "network": "ideal"}
WAIT = Assignment(
    {**DEEP, "algorithm": "layer_wise", "steps": 20, "learning_rate": 0.2},
    turn={"workers": (1, 2, 4, 8)},
    note=("seconds", "share_wait"),
    claims={
        "more modules make a step no faster, and eight of them wait over four fifths of the time": lambda rows: (
            rows[-1]["seconds"] > 0.95 * rows[0]["seconds"] and rows[-1]["share_wait"] > 0.8
        ),
    },
)
OLD = Assignment(
    {**DEEP, "algorithm": "ddg", "steps": 100},
    turn={"workers": (1, 4, 8), "learning_rate": (0.05, 0.1, 0.2, 0.4)},
    note=("held_out_loss", "accuracy", "staleness_max"),
    claims={
        "at a rate of 0.2 eight modules end at over three times the loss of one": lambda rows: (
            ratio(rows, "held_out_loss", workers=(8, 1), learning_rate=0.2) > 3
        ),
        "at the smallest rate four modules are as good as one, within a tenth": lambda rows: (
            ratio(rows, "held_out_loss", workers=(4, 1), learning_rate=0.05) < 1.1
        ),
    },
)
OWN = Assignment(
    {**DEEP, "algorithm": "greedy", "steps": 100, "learning_rate": 0.4},
    turn={"workers": (1, 2, 4, 8)},
    note=("seconds", "held_out_loss", "accuracy"),
    claims={
        "eight modules are over three times as fast as one": lambda rows: 3 * rows[-1]["seconds"] < rows[0]["seconds"],
    },
)
RANDOM = Assignment(
    {**DEEP, "algorithm": "feedback_alignment", "workers": 4, "steps": 100},
    turn={"learning_rate": (0.2, 0.4, 0.8)},
    note=("held_out_loss", "accuracy"),
    claims={
        "the largest of these rates is the best": lambda rows: (
            rows[-1]["held_out_loss"] < rows[1]["held_out_loss"] < rows[0]["held_out_loss"]
        ),
    },
)
FROZEN = Assignment(
    {**DEEP, "algorithm": "greedy", "workers": 4, "frozen": 3, "steps": 100},
    turn={"learning_rate": (0.4, 0.8, 1.6, 3.2)},
    note=("seconds", "held_out_loss", "accuracy"),
    claims={
        "at the largest rate, one trained module of four classifies over 85 % of the images correctly": lambda rows: (
            rows[-1]["accuracy"] > 0.85
        ),
        "the largest of these rates is the best": lambda rows: (
            rows[-1]["held_out_loss"] == min(row["held_out_loss"] for row in rows)
        ),
    },
)
