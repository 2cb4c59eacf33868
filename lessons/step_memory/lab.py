"""Assignments of the lab on what a step remembers."""

from lessons.figure import ratio, value
from lessons.instructor.assignment import Assignment

COMPUTE_AGAIN = Assignment(
    {
        "algorithm": "adam",
        "workload": "text",
        "context": 32,
        "width": 32,
        "heads": 4,
        "batch": 16,
        "steps": 4,
        "learning_rate": 0.01,
        "device": "2e11:1e15:0",
        "evaluations": 2,
    },
    turn={"depth": (6, 30), "recompute_activations": ("none", "full")},
    note=("memory", "seconds", "held_out_loss"),
    claims={
        "with 30 blocks, recomputing takes less than a third of the memory of keeping all activations": lambda rows: (
            ratio(rows, "memory", depth=30, recompute_activations=("full", "none")) < 1 / 3
        ),
        "recomputing makes a step a tenth to a third longer than keeping all activations": lambda rows: all(
            1.1 < ratio(rows, "seconds", depth=depth, recompute_activations=("full", "none")) < 4 / 3
            for depth in (6, 30)
        ),
        "recomputing ends with the same loss as keeping all activations": lambda rows: all(
            ratio(rows, "held_out_loss", depth=depth, recompute_activations=("full", "none")) == 1 for depth in (6, 30)
        ),
    },
)
FEWER_BITS = Assignment(
    {
        "algorithm": "adam",
        "workload": "digits",
        "hidden": "2048,2048",
        "batch": 256,
        "steps": 3,
        "learning_rate": 0.001,
        "device": "H100",
        "evaluations": 1,
    },
    turn={"precision": ("float32", "bf16", "fp16")},
    note=("memory", "seconds"),
    claims={
        "in bf16 a step needs more than 5 % more memory than in float32": lambda rows: (
            ratio(rows, "memory", precision=("bf16", "float32")) > 1.05
        ),
        "in bf16 a step is more than 5 % shorter than in float32": lambda rows: (
            ratio(rows, "seconds", precision=("bf16", "float32")) < 0.95
        ),
        "in fp16 a step needs as much memory as in bf16": lambda rows: (
            ratio(rows, "memory", precision=("fp16", "bf16")) == 1
        ),
    },
)
SMALL_STEPS = Assignment(
    {
        "algorithm": "adam",
        "workload": "digits",
        "hidden": "64",
        "batch": 64,
        "steps": 300,
        "precision": "bf16",
        "evaluations": 1,
    },
    turn={"learning_rate": (0.0003, 0.01), "weight_storage": ("float32", "nearest", "stochastic")},
    note=("loss",),
    claims={
        "at a rate of 0.0003, rounding to nearest ends at over 1.3 times the loss of master weights": lambda rows: (
            ratio(rows, "loss", learning_rate=0.0003, weight_storage=("nearest", "float32")) > 1.3
        ),
        "at a rate of 0.01, all three losses lie within 0.03 of each other": lambda rows: (
            max(row["loss"] for row in rows if row["learning_rate"] == 0.01)
            - min(row["loss"] for row in rows if row["learning_rate"] == 0.01)
            < 0.03
        ),
        "at a rate of 0.0003, stochastic rounding ends less than 5 % above the loss of master weights": lambda rows: (
            ratio(rows, "loss", learning_rate=0.0003, weight_storage=("stochastic", "float32")) < 1.05
        ),
    },
)
FIND_THE_EDGE = Assignment(
    {
        "algorithm": "sgd",
        "workload": "digits",
        "hidden": "64",
        "batch": 32,
        "steps": 100,
        "precision": "fp16",
        "learning_rate": 0.1,
        "evaluations": 2,
    },
    turn={"scale_window": (1, 4, 2000)},
    note=("updates", "loss"),
    claims={
        "if the scale is doubled after each good step, more than a third of the steps is skipped": lambda rows: (
            value(rows, "updates", scale_window=1) < 67
        ),
        "if the scale is doubled after four good steps, less than a fifth of the steps is skipped": lambda rows: (
            80 < value(rows, "updates", scale_window=4) < 100
        ),
        "if the scale is doubled after 2,000 good steps, no step is skipped": lambda rows: (
            value(rows, "updates", scale_window=2000) == 100
        ),
    },
)
