"""WRITE: the assignments of the lab."""

from lessons.figure import column
from lessons.instructor.assignment import Assignment

FIRST = Assignment(
    {"algorithm": "sync_sgd", "workload": "quadratic", "workers": 2, "steps": 20, "batch": 1},
    turn={"learning_rate": (0.05, 0.1)},
    note=("held_out_loss",),
    claims={
        "the larger rate ends at a lower loss": lambda rows: (
            column(rows, "held_out_loss")[0] > column(rows, "held_out_loss")[1]
        )
    },
)
