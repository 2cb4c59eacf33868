"""Assignments of the lab on large batches."""

from lessons.figure import column, value
from lessons.instructor.assignment import Assignment

SIZES = (1, 4, 16)  # workers, with 16 images each
KEEP = Assignment(
    {"algorithm": "sync_sgd", "update": "nesterov", "batch": 16, "epochs": 20, "learning_rate": 0.01},
    turn={"workers": SIZES},
    note=("updates", "seconds", "held_out_loss"),
    claims={
        "16 workers take less than half the time of one": lambda rows: rows[-1]["seconds"] < 0.5 * rows[0]["seconds"],
        "16 workers end at more than 1.7 times the loss of one": lambda rows: (
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
        "up to 16 workers the loss stays below twice that of one": lambda rows: (
            max(column(rows, "held_out_loss")) < 2 * rows[0]["held_out_loss"]
        ),
    },
)
RATES = {16: (0.005, 0.01, 0.02), 256: (0.01, 0.04, 0.16)}
BATCHES = tuple(batch for batch, rates in RATES.items() for _ in rates)
FIND = Assignment(
    {"algorithm": "large_batch", "workers": 1, "epochs": 10, "milestones": "8"},
    turn={"batch": BATCHES, "base_batch": BATCHES, "learning_rate": sum(RATES.values(), ())},
    paired=True,
    note=("held_out_loss",),
    claims={
        "batches of 16 end at a lower loss at a rate of 0.02 than at 0.01": lambda rows: (
            _ends(rows, 16, 0.02) < 0.95 * _ends(rows, 16, 0.01)
        ),
        "batches of 256 end at their lowest loss at a rate of 0.16": lambda rows: (
            1.2 * _ends(rows, 256, 0.16) < min(_ends(rows, 256, rate) for rate in (0.01, 0.04))
        ),
    },
)
GROW = Assignment(
    {
        "algorithm": "batch_growth",
        "workers": 4,
        "batch": 4,
        "factor": 2,
        "milestones": "6,10,14",
        "largest": 8,
        "epochs": 18,
        "learning_rate": 0.03,
    },
    turn={"schedule": ("decay", "grow", "larger_rate")},
    note=("updates", "bytes", "seconds", "held_out_loss"),
    claims={
        "growth takes about half the updates and bytes of decay, and a larger first rate about a quarter": (
            lambda rows: all(
                0.85 < share * rows[0][name] / row[name] < 1.15
                for row, share in ((rows[1], 0.53), (rows[2], 0.28))
                for name in ("updates", "bytes")
            )
        ),
        "all three schedules end at the same loss, within a third": lambda rows: (
            max(column(rows, "held_out_loss")) < 1.34 * min(column(rows, "held_out_loss"))
        ),
    },
)


def _ends(rows, batch, rate):
    return value(rows, "held_out_loss", batch=batch, learning_rate=rate)
