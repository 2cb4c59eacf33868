"""Assignments of the lab on training with little communication."""

from lessons.figure import column, ratio, value
from lessons.instructor.assignment import Assignment
from lessons.little_communication.experiments import LATENCY, PARAMETERS, PER_CENTRE

CENTRES = {
    "hidden": "32,32", "batch": 16, "device": "3e5:1e15:0", "workers": 8, "per_node": PER_CENTRE, "latency": LATENCY,
    "bandwidth": float(PARAMETERS), "steps": 256,
}  # fmt: skip
MEET_SELDOM = Assignment(
    {**CENTRES, "algorithm": "local_sgd", "learning_rate": 0.5},
    turn={"period": (1, 4, 16, 64)},
    note=("seconds", "bytes", "held_out_loss"),
    claims={
        "averaging every 64 steps takes less than a fifth of the time of averaging in every step": lambda rows: (
            ratio(rows, "seconds", period=(64, 1)) < 1 / 5
        ),
        "averaging every 64 steps sends a sixty-fourth of the bytes of averaging in every step": lambda rows: (
            abs(ratio(rows, "bytes", period=(1, 64)) - 64) < 0.1
        ),
    },
)
LET_IT_TRAVEL = Assignment(
    {**CENTRES, "algorithm": "streaming_diloco", "period": 16, "outer_momentum": 0.5, "learning_rate": 0.02},
    turn={"overlap": (0, 2, 4, 7)},
    note=("seconds", "share_wait", "held_out_loss"),
    claims={
        "an overlap of more than four steps saves no more time than one of four": (
            lambda rows: ratio(rows, "seconds", overlap=(7, 4)) > 0.99
        ),
        "an overlap of two steps saves less time than one of four": lambda rows: (
            value(rows, "seconds", overlap=2) > 1.05 * value(rows, "seconds", overlap=4)
        ),
    },
)
SPEEDS = {
    "hidden": "32,32", "batch": 16, "device": "3e5:1e15:0", "workers": 4, "network": "ideal", "period": 16,
    "learning_rate": 0.02, "seconds": 300.0, "steps": 10_000, "outer_momentum": 0.3,
}  # fmt: skip
WAIT_FOR_ALL = Assignment(
    {**SPEEDS, "algorithm": "diloco"},
    turn={"slow": ("", "0:0.58,1:0.75,2:1.51,3:3.33")},
    note=("samples", "share_wait", "held_out_loss"),
    claims={
        "the slowest worker makes the others wait for two fifths of the time": (
            lambda rows: rows[1]["share_wait"] > 0.4
        )
    },
)
WAIT_FOR_NOBODY = Assignment(
    {**SPEEDS, "algorithm": "async_diloco"},
    turn={"slow": ("", "1:0.58,2:0.75,3:1.51,4:3.33")},
    note=("samples", "share_wait", "held_out_loss"),
    claims={"workers of four speeds do as much work as four equal ones, or more": lambda rows: (
        column(rows, "samples")[1] > 0.95 * column(rows, "samples")[0]
    )},
)  # fmt: skip
