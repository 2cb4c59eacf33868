"""The assignments of the lab on choosing a strategy."""

from lessons.figure import ratio, value
from lessons.instructor.assignment import Assignment

DIGITS = {"hidden": "64", "batch": 16, "workers": 8, "device": "1e9:1e15:0", "network": "10GbE"}
SUMS = Assignment(
    {**DIGITS, "algorithm": "sync_sgd", "collective": "recursive_doubling", "steps": 96, "learning_rate": 1.0},
    turn={"latency": (2e-5, 1.6e-4, 5.12e-3)},
    note=("seconds", "samples_per_second", "held_out_loss"),
    claims={
        "latency changes when things happen, not what is computed": lambda rows: (
            max(row["held_out_loss"] for row in rows) - min(row["held_out_loss"] for row in rows) < 1e-6
        ),
        "at 5,120 us a step takes more than twenty times as long as at 20 us": lambda rows: (
            ratio(rows, "seconds", latency=(5.12e-3, 2e-5)) > 20
        ),
    },
)
SELDOM = Assignment(
    {
        **DIGITS,
        "algorithm": "local_sgd",
        "collective": "recursive_doubling",
        "period": 16,
        "steps": 96,
        "learning_rate": 0.8,
    },
    turn={"latency": (2e-5, 1.6e-4, 5.12e-3)},
    note=("seconds", "samples_per_second", "held_out_loss"),
    claims={
        "local SGD processes over 300,000 samples per second at the lowest latency, and over 80,000 at the highest": (
            lambda rows: (
                value(rows, "samples_per_second", latency=2e-5) > 3e5
                and value(rows, "samples_per_second", latency=5.12e-3) > 8e4
            )
        ),
    },
)
ALONE = Assignment(
    {**DIGITS, "algorithm": "sgd", "workers": 1, "learning_rate": 0.4},
    turn={"steps": (48, 192)},
    note=("seconds", "samples_per_second", "held_out_loss"),
    claims={
        "one machine processes less than 50,000 samples per second": lambda rows: all(
            row["samples_per_second"] < 5e4 for row in rows
        ),
        "one machine's loss keeps falling from 48 steps to 192": lambda rows: (
            value(rows, "held_out_loss", steps=192) < value(rows, "held_out_loss", steps=48)
        ),
    },
)
RATES = Assignment(
    {**DIGITS, "algorithm": "asgd", "steps": 48, "latency": 2e-5},
    turn={"learning_rate": (0.03, 0.06, 0.125, 0.25)},
    note=("held_out_loss",),
    claims={
        "the best of the four rates is 0.125": lambda rows: (
            min(rows, key=lambda row: row["held_out_loss"])["learning_rate"] == 0.125
        ),
    },
)
