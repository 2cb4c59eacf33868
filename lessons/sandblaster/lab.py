"""Assignments of the lab on Sandblaster."""

from lessons.figure import column, is_rising, ratio, value
from lessons.instructor.assignment import Assignment

SANDBLASTER = {"algorithm": "sandblaster", "learning_rate": 1.0, "evaluations": 1}
FIVE_PASSES = 5 * 1437  # over the training set
SIZES = (180, 90, 45, 23, 12)
PORTIONS = Assignment(
    {
        **SANDBLASTER,
        "workers": 8,
        "every": 1,
        "memory": 0,
        "steps": 4,
        "hidden": "128,128",
        "network": "ideal",
        "slow": "9:30",
    },
    turn={"backups": (False, True), "portion": SIZES},
    note=("seconds", "samples"),
    claims={
        "without copies, portions of 23 images take less than a quarter of the time of equal shares": lambda rows: (
            ratio(rows, "seconds", backups=False, portion=(180, 23)) > 4
        ),
        "portions of any size take less time with copies than without": lambda rows: all(
            value(rows, "seconds", backups=True, portion=size) < value(rows, "seconds", backups=False, portion=size)
            for size in SIZES
        ),
        "copies of equal shares add over half to the samples computed, copies of 23 images less than a sixth": (
            lambda rows: _again(rows, 180) > 0.5 and 0 < _again(rows, 23) < 1 / 6
        ),
    },
)
HANDED_IN = Assignment(
    {
        **SANDBLASTER,
        "workers": 4,
        "portion": 16,
        "backups": False,
        "memory": 0,
        "steps": 4,
        "hidden": "32",
        "network": "EDR",
        "crash": "5:0.0003",
    },
    turn={"every": (1, 4, 16)},
    note=("samples", "bytes"),
    claims={
        "what has been handed in is not computed again": lambda rows: value(rows, "samples", every=1) == FIVE_PASSES,
        "the less often a worker hands in its sum, the more is computed again": (
            lambda rows: is_rising(column(rows, "samples"))
        ),
        "the less often a worker hands in its sum, the less is sent": (
            lambda rows: ratio(rows, "bytes", every=(1, 16)) > 4
        ),
    },
)
STEPS = (4, 8, 16, 32)
CAREFUL = Assignment(
    {**SANDBLASTER, "workers": 4, "backups": False, "hidden": "32"},
    turn={"memory": (0, 10), "steps": STEPS},
    note=("samples", "held_out_loss", "seconds"),
    claims={
        "after 16 steps L-BFGS has less than three quarters of the loss of steepest descent": lambda rows: (
            ratio(rows, "held_out_loss", memory=(10, 0), steps=16) < 0.75
        ),
        "after 8 steps the loss of L-BFGS is still over 0.4": lambda rows: (
            value(rows, "held_out_loss", memory=10, steps=8) > 0.4
        ),
    },
)
CARELESS = Assignment(
    {"algorithm": "sgd", "workers": 1, "batch": 16, "hidden": "32", "learning_rate": 0.3, "evaluations": 1},
    turn={"epochs": (6, 10, 18, 35)},
    note=("samples", "held_out_loss", "seconds"),
    claims={
        "after 10 passes the loss of SGD is below 0.25": lambda rows: value(rows, "held_out_loss", epochs=10) < 0.25
    },
)


def _again(rows, size):
    """Return how many samples backup copies add, as a fraction of those computed without copies."""
    alone, copied = (value(rows, "samples", backups=backups, portion=size) for backups in (False, True))
    return copied / alone - 1
