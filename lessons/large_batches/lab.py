"""What the lab on large batches has a class run."""

from math import inf, isnan

from lessons.figure import column, value
from lessons.instructor.assignment import Assignment

SIZES = (1, 4, 16, 64)  # workers, with 16 images each
KEEP = Assignment(
    {"algorithm": "sync_sgd", "update": "nesterov", "batch": 16, "epochs": 20, "learning_rate": 0.01},
    turn={"workers": SIZES[:3]},
    note=("updates", "seconds", "held_out_loss"),
    claims={
        "more workers are done sooner": lambda rows: rows[-1]["seconds"] < 0.5 * rows[0]["seconds"],
        "and 16 of them end more than 1.7 times as high as one": lambda rows: (
            rows[2]["held_out_loss"] > 1.7 * rows[0]["held_out_loss"]
        ),
    },
)
SCALE = Assignment(
    {
        "algorithm": "large_batch",
        "batch": 16,
        "base_batch": 16,
        "epochs": 20,
        "learning_rate": 0.01,
        "milestones": "",
    },
    turn={"workers": SIZES},
    note=("updates", "held_out_loss", "accuracy"),
    claims={
        "up to 16 workers the loss stays within twice that of one": lambda rows: (
            max(column(rows, "held_out_loss")[:3]) < 2 * rows[0]["held_out_loss"]
        ),
        "64 have learned next to nothing": lambda rows: rows[-1]["held_out_loss"] > 1,
    },
)
START = Assignment(
    {
        "algorithm": "large_batch",
        "workers": 1,
        "batch": 256,
        "base_batch": 16,
        "epochs": 20,
        "learning_rate": 0.02,
        "milestones": "15",
    },
    turn={"warm_up": ("none", "constant", "gradual")},
    note=("held_out_loss",),
    claims={
        "with a gradual warm-up training gets through": lambda rows: (
            value(rows, "held_out_loss", warm_up="gradual") < 0.6
        ),
    },
)
FIND = Assignment(
    {
        "algorithm": "sync_sgd",
        "update": "nesterov",
        "workers": 1,
        "epochs": 10,
    },
    turn={"batch": (16, 256), "learning_rate": (0.01, 0.04, 0.16, 0.64)},
    note=("held_out_loss",),
    claims={
        "256 images end lowest at 0.16": lambda rows: (
            _ends(rows, 256, 0.16) < min(_ends(rows, 256, rate) for rate in (0.01, 0.04, 0.64)) / 1.2
        ),
        "at which 16 images end more than 1.5 times as high as at 0.04": lambda rows: (
            _ends(rows, 16, 0.16) > 1.5 * _ends(rows, 16, 0.04)
        ),
    },
)


def _ends(rows, batch, rate):
    """Return the loss of a batch at a rate; infinite if it diverged."""
    loss = value(rows, "held_out_loss", batch=batch, learning_rate=rate)
    return inf if loss is None or isnan(loss) else loss
