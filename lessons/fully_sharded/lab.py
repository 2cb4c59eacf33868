"""The assignments of the lab on full sharding."""

from lessons.figure import ratio
from lessons.instructor.assignment import Assignment

MODEL = {
    "workload": "text", "context": 32, "width": 64, "heads": 4, "depth": 6, "update": "adam", "learning_rate": 0.01,
    "device": "2e11:1e15:0", "latency": 1e-6, "steps": 4, "evaluations": 2,
}  # fmt: skip
LINKS = {"workers": 4, "bandwidth": 1e9, "algorithm": "hsdp", "groups": 1}
THINK_EARLY = Assignment(
    {**MODEL, **LINKS, "batch": 8},
    turn={"prefetch": (0, 1, 2, 7)},
    note=("seconds", "bytes", "held_out_loss"),
    claims={
        "with one layer ahead, a step takes less than nine tenths as long as with none": lambda rows: (
            ratio(rows, "seconds", prefetch=(1, 0)) < 0.9
        ),
        "with seven layers ahead, a step takes longer than with one": (
            lambda rows: ratio(rows, "seconds", prefetch=(7, 1)) > 1.05
        ),
        "prefetching does not change the number of bytes sent": lambda rows: len({row["bytes"] for row in rows}) == 1,
    },
)
ENOUGH_TOKENS = Assignment(
    {**MODEL, **LINKS, "prefetch": 1},
    turn={"batch": (2, 8, 32)},
    note=("seconds", "share_wait", "samples_per_second"),
    claims={
        "sixteen times the tokens take less than six times as long": lambda rows: (
            ratio(rows, "seconds", batch=(32, 2)) < 6
        ),
        "with more tokens, ranks wait for a smaller share of the time": lambda rows: (
            ratio(rows, "share_wait", batch=(32, 2)) < 0.5
        ),
    },
)
COPIES = Assignment(
    {**MODEL, "algorithm": "hsdp", "workers": 8, "per_node": 4, "nics": 1, "bandwidth": 1.25e8, "batch": 8},
    turn={"groups": (1, 2, 8)},
    note=("seconds", "memory", "bytes"),
    claims={
        "a copy per node takes less than a third of the time of one copy": lambda rows: (
            ratio(rows, "seconds", groups=(2, 1)) < 1 / 3
        ),
        "a copy per node takes more memory than one copy": lambda rows: ratio(rows, "memory", groups=(2, 1)) > 1,
    },
)
