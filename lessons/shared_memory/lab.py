"""Assignments of the lab on shared memory."""

from lessons.figure import ratio
from lessons.instructor.assignment import Assignment

WORDS = {"workload": "sparse", "nonzeros": 8, "batch": 32, "network": "ideal", "learning_rate": 0.5, "evaluations": 2}
LOCK = Assignment(
    {**WORDS, "algorithm": "hogwild", "rows": 2048, "features": 2000, "epochs": 1},
    turn={"locked": (True, False), "workers": (1, 4, 16)},
    note=("samples_per_second",),
    claims={
        "with a lock sixteen threads are hardly faster than one": lambda rows: (
            ratio(rows, "samples_per_second", locked=True, workers=(16, 1)) < 1.3
        ),
        "without a lock sixteen threads are over eight times as fast as one": lambda rows: (
            ratio(rows, "samples_per_second", locked=False, workers=(16, 1)) > 8
        ),
    },
)
NOTICE = Assignment(
    {**WORDS, "algorithm": "hogwild", "rows": 2048, "features": 2000, "epochs": 4, "learning_rate": 2.0},
    turn={"workers": (1, 4, 16)},
    note=("staleness_mean", "held_out_loss"),
    claims={
        "sixteen threads end at most 5 % above one thread's loss": lambda rows: (
            rows[-1]["held_out_loss"] < 1.05 * rows[0]["held_out_loss"]
        ),
    },
)
BOWL = Assignment(
    {"algorithm": "hogwild", "workload": "quadratic", "dimension": 1000, "condition": 1, "points": 2048, "batch": 16,
     "epochs": 1, "learning_rate": 5e-4, "network": "ideal", "evaluations": 2},
    turn={"atomic": (False, True), "workers": (1, 4, 8)},
    note=("held_out_loss",),
    claims={
        "without atomic additions eight threads end over a quarter above one thread's loss": lambda rows: (
            ratio(rows, "held_out_loss", atomic=False, workers=(8, 1)) > 1.25
        ),
        "with atomic additions eight threads end within 5 % of one thread's loss": lambda rows: (
            abs(ratio(rows, "held_out_loss", atomic=True, workers=(8, 1)) - 1) < 0.05
        ),
    },
)  # fmt: skip
