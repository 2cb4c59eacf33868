"""Assignments of the lab on layouts."""

from lessons.figure import ratio
from lessons.instructor.assignment import Assignment

CLUSTER = {
    "algorithm": "three_d", "workload": "text", "context": 32, "width": 64, "heads": 8, "depth": 8, "update": "adam",
    "learning_rate": 0.01, "device": "2e11:1e15:0", "latency": 2e-6, "bandwidth": 1e9, "per_node": 4, "nics": 1,
    "workers": 8, "steps": 2, "evaluations": 1,
}  # fmt: skip
INSIDE = Assignment(
    {**CLUSTER, "stages": 1, "chunks": 1, "batch": 16},
    turn={"tensor": (2, 4, 8)},
    note=("seconds", "samples", "held_out_loss"),
    claims={
        "splitting over eight ranks of two nodes takes over 1.5 times as long as over four of one node": lambda rows: (
            ratio(rows, "seconds", tensor=(8, 4)) > 1.5
        ),
    },
)
BUBBLE = Assignment(
    {**CLUSTER, "tensor": 1, "stages": 8, "batch": 32},
    turn={"chunks": (1, 4, 16)},
    note=("seconds", "share_wait", "memory"),
    claims={
        "with more micro-batches a step is shorter, and ranks wait for a smaller share of it": lambda rows: (
            ratio(rows, "seconds", chunks=(16, 1)) < 0.5 and ratio(rows, "share_wait", chunks=(16, 1)) < 0.8
        ),
    },
)
SAVING = Assignment(
    {**CLUSTER, "tensor": 2, "batch": 32, "chunks": 8},
    turn={"stages": (1, 2, 4)},
    note=("memory", "samples"),
    claims={
        "each of four stages holds more than a third of what a single stage holds": lambda rows: (
            1 / 3 < ratio(rows, "memory", stages=(4, 1)) < 1 / 2
        ),
    },
)
