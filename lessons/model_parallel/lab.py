"""Assignments of the lab on model parallelism."""

from lessons.figure import column, ratio
from lessons.instructor.assignment import Assignment

GROUPS = 1, 2, 4, 8
STEP = {"steps": 1, "evaluations": 1}
LAYERS = Assignment(
    {
        "algorithm": "layer_wise", "model": "residual", "depth": 30, "width": 64, "batch": 128, "network": "10GbE",
        "steps": 4, "evaluations": 1, "learning_rate": 0.01,
    },
    turn={"workers": (1, 2, 4, 8)},
    note=("memory", "seconds", "share_wait"),
    claims={
        "each of eight ranks holds less than a seventh of what one rank holds, and a step takes longer": lambda rows: (
            7 * rows[-1]["memory"] < rows[0]["memory"] and rows[-1]["seconds"] > rows[0]["seconds"]
        ),
        "eight ranks wait over four fifths of the time": lambda rows: rows[-1]["share_wait"] > 0.8,
    },
)  # fmt: skip
ADAM = {
    "model": "residual", "depth": 30, "width": 32, "batch": 4, "steps": 4, "evaluations": 1, "learning_rate": 0.01
}  # fmt: skip
WHOLE = Assignment(
    {"algorithm": "sync_sgd", "update": "adam", **ADAM},
    turn={"workers": (2, 4, 8)},
    note=("memory", "bytes", "held_out_loss"),
    claims={
        "each rank holds the same amount, however many ranks there are": lambda rows: (
            len(set(column(rows, "memory"))) == 1
        ),
    },
)
PIECES = Assignment(
    {"algorithm": "zero3", "update": "adam", **ADAM},
    turn={"workers": (2, 4, 8)},
    note=("memory", "bytes", "held_out_loss"),
    claims={
        "each of eight ranks holds less than half of what each of two holds": lambda rows: (
            2 * rows[-1]["memory"] < rows[0]["memory"]
        ),
    },
)
WEIGH = Assignment(
    {**STEP, "algorithm": "hybrid", "workers": 8, "hidden": "256,256", "learning_rate": 0.2},
    turn={"groups": GROUPS * 2, "batch": (8, 4, 2, 1, 1024, 512, 256, 128)},
    paired=True,
    note=("bytes",),
    claims={
        "a batch of eight sends least with one group, a batch of 1,024 with eight groups": lambda rows: (
            min(rows[:4], key=lambda row: row["bytes"])["groups"] == 1
            and min(rows[4:], key=lambda row: row["bytes"])["groups"] == 8
        ),
    },
)
NODES = Assignment(
    {
        **STEP, "algorithm": "three_d", "workload": "text", "width": 64, "heads": 8, "depth": 2, "stages": 1,
        "chunks": 1, "workers": 8, "network": "1GbE", "per_node": 4, "learning_rate": 0.3,
    },
    turn={"tensor": GROUPS, "batch": (4, 8, 16, 32)},
    paired=True,
    note=("seconds", "bytes"),
    claims={
        "splitting over four ranks is fastest, and splitting over eight takes more than twice as long": lambda rows: (
            min(rows, key=lambda row: row["seconds"])["tensor"] == 4
            and ratio(rows, "seconds", tensor=(8, 4)) > 2
        ),
    },
)  # fmt: skip
