"""Assignments of the lab on long sequences and experts."""

from lessons.figure import ratio
from lessons.instructor.assignment import Assignment

MODEL = {
    "workload": "text", "width": 32, "heads": 4, "depth": 2, "device": "2e11:1e15:0", "latency": 1e-6,
    "bandwidth": 4e9, "learning_rate": 0.1, "evaluations": 2,
}  # fmt: skip
SEQUENCE = {**MODEL, "algorithm": "context", "workers": 4, "batch": 1, "steps": 4}
WHO_WAITS = Assignment(
    {**SEQUENCE, "context": 256, "exchange": "ring"},
    turn={"positions": ("consecutive", "zigzag")},
    note=("seconds", "share_wait", "bytes", "held_out_loss"),
    claims={
        "a zigzag takes less than nine tenths as long as consecutive positions": lambda rows: (
            ratio(rows, "seconds", positions=("zigzag", "consecutive")) < 0.9
        ),
        "with a zigzag, the share of time that ranks wait is less than a quarter of that with consecutive positions": (
            lambda rows: ratio(rows, "share_wait", positions=("zigzag", "consecutive")) < 0.25
        ),
        "consecutive and zigzag positions send the same bytes": lambda rows: len({row["bytes"] for row in rows}) == 1,
    },
)
LONGER = Assignment(
    {**SEQUENCE, "positions": "zigzag"},
    turn={"context": (64, 512), "exchange": ("ring", "gather", "ulysses")},
    note=("seconds", "memory", "bytes"),
    claims={
        "Ulysses sends the fewest bytes": lambda rows: all(
            ratio(rows, "bytes", context=context, exchange=("ulysses", other)) < 1
            for context in (64, 512)
            for other in ("ring", "gather")
        ),
        "the ring is faster than the all-gather with 512 positions, but not with 64": lambda rows: (
            ratio(rows, "seconds", context=512, exchange=("ring", "gather")) < 1
            and ratio(rows, "seconds", context=64, exchange=("ring", "gather")) > 1
        ),
        "the all-gather takes more memory than the ring": lambda rows: all(
            ratio(rows, "memory", context=context, exchange=("gather", "ring")) > 1 for context in (64, 512)
        ),
    },
)
POPULAR = Assignment(
    {
        **MODEL, "algorithm": "expert", "workers": 8, "experts": 8, "width": 16, "heads": 2, "context": 8, "batch": 16,
        "steps": 32, "learning_rate": 1.0,
    },
    turn={"balance": (0, 0.1), "capacity": (1.25, 8)},
    note=("seconds", "share_wait", "held_out_loss"),
    claims={
        "with enough capacity for all characters, a balance loss cuts the share of time that ranks wait to less than "
        "0.6 of that without": lambda rows: ratio(rows, "share_wait", capacity=8, balance=(0.1, 0)) < 0.6,
        "without a balance loss, ranks wait less at a capacity of 1.25 than if no character is dropped": lambda rows: (
            ratio(rows, "share_wait", balance=0, capacity=(1.25, 8)) < 0.9
        ),
    },
)  # fmt: skip
