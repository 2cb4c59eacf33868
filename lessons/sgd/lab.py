"""Assignments of the lab on stochastic gradient descent."""

from lessons.figure import column, ratio, value
from lessons.instructor.assignment import Assignment

VALLEY = {"workload": "quadratic", "workers": 1, "batch": 1, "condition": 10, "dimension": 20, "points": 64}
NOISY = {"workload": "quadratic", "workers": 1, "condition": 10, "dimension": 400, "noise": 1, "points": 20_000}
EDGE = Assignment(
    {**VALLEY, "algorithm": "sgd", "steps": 100},
    turn={"learning_rate": (0.5, 1, 1.9, 2.1)},
    note=("held_out_loss",),
    claims={
        "at a rate of 2.1 the loss ends far above where it began, at 1.9 far below": lambda rows: (
            value(rows, "held_out_loss", learning_rate=2.1) > 1000
            and value(rows, "held_out_loss", learning_rate=1.9) < 1e-2
        ),
        "below the edge, a larger rate ends at a lower loss": lambda rows: (
            ratio(rows, "held_out_loss", learning_rate=(1, 0.5)) < 1 / 100
        ),
    },
)
FLOOR = Assignment(
    {**NOISY, "algorithm": "sgd", "steps": 600},
    turn={"learning_rate": (0.1, 0.2, 0.4), "batch": (1, 4)},
    note=("held_out_loss",),
    claims={
        "twice the rate lifts the floor about twofold": lambda rows: all(
            1.4 < _floor(rows, 2 * rate, batch) / _floor(rows, rate, batch) < 3
            for rate in (0.1, 0.2)
            for batch in (1, 4)
        ),
        "four times the batch divides the floor by about four": lambda rows: all(
            2.5 < _floor(rows, rate, 1) / _floor(rows, rate, 4) < 6.5 for rate in (0.1, 0.2, 0.4)
        ),
    },
)
MEAN = Assignment(
    {**NOISY, "algorithm": "polyak", "steps": 1500, "batch": 1, "start": 10},
    turn={"learning_rate": (0.2, 0.4), "after": (0, 500)},
    note=("held_out_loss",),
    claims={
        "the loss of the mean from step 500 on is the same at either rate, within a fifth": lambda rows: (
            max(column(rows, "held_out_loss", after=500)) < 1.2 * min(column(rows, "held_out_loss", after=500))
        ),
        "at the smaller rate, the mean from the start includes the descent and is worse than that from step 500 on": (
            lambda rows: all(ratio(rows, "held_out_loss", after=(0, 500), learning_rate=rate) > 1 for rate in (0.2,))
        ),
    },
)
PASSES = Assignment(
    {"algorithm": "sgd", "workers": 1, "hidden": "32", "epochs": 8},
    turn={"batch": (16, 1437), "learning_rate": (0.2, 0.4, 0.8)},
    note=("held_out_loss", "updates"),
    claims={
        "at every rate, batches of 16 end at under a quarter of the loss of the full batch": lambda rows: all(
            ratio(rows, "held_out_loss", batch=(1437, 16), learning_rate=rate) > 4 for rate in (0.2, 0.4, 0.8)
        ),
    },
)


def _floor(rows, rate, batch):
    return value(rows, "held_out_loss", learning_rate=rate, batch=batch)
