"""What the lab on shared memory has a class run."""

from lessons.figure import value
from lessons.instructor.assignment import Assignment

WORDS = {"workload": "sparse", "nonzeros": 8, "batch": 32, "network": "ideal", "learning_rate": 0.5, "evaluations": 2}
LOCK = Assignment(
    {**WORDS, "algorithm": "hogwild", "rows": 2048, "features": 2000, "epochs": 1},
    turn={"locked": (True, False), "workers": (1, 4, 16)},
    note=("samples_per_second",),
    claims={
        "with a lock sixteen threads are hardly faster than one": lambda rows: (
            value(rows, "samples_per_second", locked=True, workers=16)
            < 1.3 * value(rows, "samples_per_second", locked=True, workers=1)
        ),
        "without, over eight times as fast": lambda rows: (
            value(rows, "samples_per_second", locked=False, workers=16)
            > 8 * value(rows, "samples_per_second", locked=False, workers=1)
        ),
    },
)
NOTICE = Assignment(
    {**WORDS, "algorithm": "hogwild", "rows": 2048, "features": 2000, "epochs": 2},
    turn={"workers": (1, 4, 16)},
    note=("staleness_mean", "held_out_loss"),
    claims={
        "sixteen threads end within 2 % of one": lambda rows: (
            rows[-1]["held_out_loss"] < 1.02 * rows[0]["held_out_loss"]
        ),
    },
)
BOWL = Assignment(
    {"algorithm": "hogwild", "workload": "quadratic", "dimension": 1000, "condition": 1, "points": 2048, "batch": 16,
     "epochs": 1, "learning_rate": 5e-4, "network": "ideal", "evaluations": 2},
    turn={"atomic": (False, True), "workers": (1, 4, 8)},
    note=("held_out_loss",),
    claims={
        "without atomic additions eight threads end over a quarter above one": lambda rows: (
            value(rows, "held_out_loss", atomic=False, workers=8)
            > 1.25 * value(rows, "held_out_loss", atomic=False, workers=1)
        ),
        "with them, within 5 %": lambda rows: (
            abs(value(rows, "held_out_loss", atomic=True, workers=8)
                / value(rows, "held_out_loss", atomic=True, workers=1) - 1) < 0.05
        ),
    },
)  # fmt: skip
GATHER = Assignment(
    {"algorithm": "hogbatch", "workers": 4, "workload": "sparse", "rows": 1024, "features": 200, "nonzeros": 8,
     "skew": 1.0, "l2": 1e-3, "judged": "gap", "batch": 64, "epochs": 2, "network": "ideal", "evaluations": 2},
    turn={"per_write": (1, 8, 64), "learning_rate": (0.15, 0.6, 2.4)},
    note=("seconds", "held_out_loss"),
    claims={
        "64 at a time are over twice as fast as single samples": lambda rows: (
            2 * value(rows, "seconds", per_write=64, learning_rate=0.6)
            < value(rows, "seconds", per_write=1, learning_rate=0.6)
        ),
        "at the largest rate they end over three times as high": lambda rows: (
            value(rows, "held_out_loss", per_write=64, learning_rate=2.4)
            > 3 * value(rows, "held_out_loss", per_write=1, learning_rate=2.4)
        ),
    },
)  # fmt: skip
