"""Assignments of the lab on staleness."""

from lessons.figure import column, ratio
from lessons.instructor.assignment import Assignment

DIGITS = {"hidden": "32", "batch": 16}
SIZES = (1, 2, 4, 8, 16, 32)
RATES = (0.32, 0.16, 0.08, 0.04)
BREAK_IT = Assignment(
    {**DIGITS, "algorithm": "asgd", "jitter": "cloud", "epochs": 17, "network": "10GbE"},
    turn={"learning_rate": RATES, "workers": SIZES},
    note=("learns",),
    claims={
        "one worker learns at every rate": lambda rows: column(rows, "learns", workers=1) == [1.0] * 4,
        "32 workers learn at none of the three larger rates": lambda rows: (
            column(rows, "learns", workers=32)[:3] == [0.0] * 3
        ),
    },
)
LATE = {**DIGITS, "algorithm": "asgd", "learning_rate": 0.02, "seconds": 0.02, "network": "ideal"}
HOW_OLD = Assignment(
    LATE,
    turn={"workers": (2, 4, 8, 16)},
    note=("staleness_mean",),
    claims={"a gradient is N - 1 updates old on average, within a twentieth": lambda rows: all(
        abs(row["staleness_mean"] / (row["workers"] - 1) - 1) < 0.05 for row in rows
    )},
)  # fmt: skip
WHATEVER = Assignment(
    {**LATE, "workers": 8},
    turn={"jitter": ("none", "cloud", "exponential"), "slow": ("", "3:10")},
    note=("staleness_mean",),
    claims={
        "with 8 workers a gradient is 7 updates old on average, within a twentieth, in every case": lambda rows: all(
            abs(row["staleness_mean"] / 7 - 1) < 0.05 for row in rows
        ),
    },
)  # fmt: skip
SHORT = {**DIGITS, "steps": 48, "network": "ideal"}
BOUNDED = Assignment(
    {**SHORT, "algorithm": "ssp", "workers": 8, "learning_rate": 1.0},
    turn={"jitter": ("none", "exponential"), "bound": (0, 1, 4, 16)},
    note=("seconds", "held_out_loss"),
    claims={
        "with a bound of 0, training takes at least a third longer than with 16, under both laws": lambda rows: all(
            ratio(rows, "seconds", jitter=law, bound=(0, 16)) > 1.33 for law in ("none", "exponential")
        ),
    },
)
BY_AGE = Assignment(
    {**SHORT, "algorithm": "dynsgd", "learning_rate": 0.32},
    turn={"workers": (1, 8)},
    note=("samples", "held_out_loss"),
    claims={"eight workers end at more than half the loss of one": lambda rows: (
        rows[1]["held_out_loss"] > rows[0]["held_out_loss"] / 2
    )},
)  # fmt: skip
