"""Assignments of the lab on stragglers."""

from lessons.figure import column, ratio
from lessons.instructor.assignment import Assignment
from lessons.stragglers.experiments import BOWL, slow

LAWS = ("none", "cloud", "noisy cloud", "exponential", "pareto")
SIZES = (1, 2, 4, 8, 16, 32)
MORE_WORKERS = Assignment(
    {"algorithm": "sync_sgd", "network": "ideal", "steps": 100, "learning_rate": 0.1},
    turn={"jitter": LAWS, "workers": SIZES},
    note=("samples_per_second",),
    claims={
        "on quiet machines 32 workers do more than 20 times the work of one": lambda rows: _gain(rows, "none") > 20,
        "the more times vary, the less 32 workers do: with exponential times, under 10 times the work of one": (
            lambda rows: (
                _gain(rows, "none")
                > _gain(rows, "cloud")
                > _gain(rows, "noisy cloud")
                > 10
                > _gain(rows, "exponential")
            )
        ),
    },
)
SAME_LOSS = Assignment(
    {**MORE_WORKERS.settings, "workers": 8},
    turn={"jitter": LAWS},
    note=("held_out_loss",),
    claims={"the loss is the same to the last digit under every law": lambda rows: (
        len(set(column(rows, "held_out_loss"))) == 1
    )},
)  # fmt: skip
ALWAYS_ONE = Assignment(
    {**MORE_WORKERS.settings, "workers": 8, "jitter": "noisy cloud"},
    turn={"slow": ("", "3:3")},
    note=("seconds", "share_wait"),
    claims={
        "one slow rank keeps ranks waiting for over two fifths of the time": lambda rows: rows[1]["share_wait"] > 0.4,
    },
)
BACKUPS = (0, 1, 2, 4, 8)
DO_WITHOUT = Assignment(
    {  # the rate falls with the share that is waited for, because their mean gets noisier
        **BOWL,
        "algorithm": "backup",
        "workers": 16,
        "jitter": "noisy cloud",
        "dimension": 200,
        "condition": 4,
        "noise": 9.0,
        "points": 4096,
        "evaluations": 20,
        "seconds": 0.06,
        "slow": slow(16),
    },
    turn={"backups": BACKUPS, "learning_rate": tuple(0.02 * (16 - b) / 16 for b in BACKUPS)},
    paired=True,
    note=("updates", "held_out_loss"),
    claims={
        "after the same time one or two backups have the lowest loss": lambda rows: (
            min(column(rows, "held_out_loss")[1:3]) == min(column(rows, "held_out_loss"))
        ),
        "eight backups of 16 have a higher loss than none, though they take 1.5 times as many steps": lambda rows: (
            rows[-1]["held_out_loss"] > rows[0]["held_out_loss"] and rows[-1]["updates"] > 1.5 * rows[0]["updates"]
        ),
    },
)


def _gain(rows, law):
    """Return the samples per second of 32 workers, divided by those of one worker."""
    return ratio(rows, "samples_per_second", jitter=law, workers=(32, 1))
