"""The assignments of the lab on averaging models."""

from lessons.figure import column, ratio, value
from lessons.instructor.assignment import Assignment

DIGITS = {"hidden": "64", "batch": 16}

MEET_SELDOM = Assignment(
    {**DIGITS, "algorithm": "model_averaging", "workers": 8, "steps": 256, "learning_rate": 0.2, "network": "1GbE"},
    turn={"period": (1, 4, 16, 64, 256)},
    note=("seconds", "bytes", "held_out_loss"),
    claims={
        "a run that averages once takes under a twentieth of the time of one that averages 256 times": lambda rows: (
            ratio(rows, "seconds", period=(256, 1)) < 1 / 20
        ),
        "the losses of any two periods differ by less than a fifth": lambda rows: (
            max(column(rows, "held_out_loss")) < 1.2 * min(column(rows, "held_out_loss"))
        ),
    },
)
SHARED = {**DIGITS, "epochs": 16, "learning_rate": 0.06, "period": 2, "network": "10GbE"}
SIZES = (1, 2, 4, 8, 16)
SHARE_AVERAGES = Assignment(
    {**SHARED, "algorithm": "model_averaging"},
    turn={"workers": SIZES},
    note=("steps", "held_out_loss"),
    claims={
        "the more workers share the work, the higher the loss": lambda rows: (
            column(rows, "held_out_loss") == sorted(column(rows, "held_out_loss"))
        )
    },
)  # fmt: skip
SHARE_BMUF = Assignment(
    {**SHARED, "algorithm": "bmuf"},
    turn={"workers": SIZES},
    note=("steps", "held_out_loss"),
    claims={
        "up to 8 workers the loss stays less than two fifths above one worker's": lambda rows: (
            max(column(rows, "held_out_loss")[:4]) < 1.4 * value(rows, "held_out_loss", workers=1)
        )
    },
)
ONE_SLOW = {**DIGITS, "workers": 8, "steps": 256, "learning_rate": 0.2, "period": 16, "network": "ideal"}
SLOW_AVERAGES = Assignment(
    {**ONE_SLOW, "algorithm": "model_averaging"},
    turn={"slow": ("", "7:3")},
    note=("seconds", "share_wait", "held_out_loss"),
    claims={"with averages, a run with one slow worker takes three times as long as a run without": lambda rows: (
        2.9 < rows[1]["seconds"] / rows[0]["seconds"] < 3.1
    )},
)  # fmt: skip
SLOW_SPRINGS = Assignment(
    {**ONE_SLOW, "algorithm": "easgd"},
    turn={"slow": ("", "8:3")},
    note=("seconds", "share_wait", "held_out_loss"),
    claims={
        "with springs workers wait for less than a tenth of the time": (
            lambda rows: max(column(rows, "share_wait")) < 0.1
        )
    },
)
UNLIKE = Assignment(
    {
        "algorithm": "model_averaging",
        "workload": "quadratic",
        "dimension": 1,
        "start": 0,
        "kinds": 2,
        "apart": 2,
        "unequal": 5,
        "points": 64,
        "workers": 2,
        "steps": 600,
        "learning_rate": 0.1,
    },
    turn={"period": (1, 50)},
    note=("loss", "held_out_loss"),
    claims={
        "if workers average rarely instead of often, their own loss is lower, but the loss of their mean is higher": (
            lambda rows: rows[1]["loss"] < rows[0]["loss"] and rows[1]["held_out_loss"] > 100 * rows[0]["held_out_loss"]
        )
    },
)
