"""Assignments of the lab on overlap."""

from lessons.figure import ratio, value
from lessons.instructor.assignment import Assignment
from lessons.overlap.experiments import WHOLE

RUN = {"workers": 4, "steps": 8, "learning_rate": 0.2, "collective": "stream"}
DEEP = {"model": "residual", "depth": 16, "width": 96, **RUN}
HIDE = Assignment(
    {**DEEP, "algorithm": "overlap", "latency": 0.0},
    turn={"bandwidth": (1e8, 5e8, 1.7e9, 1e10), "bucket_bytes": (WHOLE, 0)},
    note=("seconds",),
    claims={
        "on each of these networks, sending layer by layer is faster than sending the model at once": lambda rows: all(
            _seconds(rows, bandwidth, 0) < _seconds(rows, bandwidth, WHOLE) for bandwidth in (1e8, 5e8, 1.7e9, 1e10)
        ),
        "sending layer by layer gains most on a medium network, where it is over 1.3 times as fast": lambda rows: (
            _gain(rows, 1.7e9) > max(1.3, _gain(rows, 1e8), _gain(rows, 1e10))
        ),
        "on the slowest network, sending layer by layer is less than 1.1 times as fast": lambda rows: (
            _gain(rows, 1e8) < 1.1
        ),
    },
)
CUT = Assignment(
    {**DEEP, "algorithm": "overlap", "bandwidth": 1e9},
    turn={"latency": (0.0, 1e-5, 2e-4), "bucket_bytes": (0, 150_000, WHOLE)},
    note=("seconds",),
    claims={
        "one layer at a time is best without latency, buckets at 10 us, and one message at 200 us": lambda rows: (
            [_best(rows, latency) for latency in (0.0, 1e-5, 2e-4)] == [0, 150_000, WHOLE]
        ),
    },
)
URGENT = Assignment(
    {**DEEP, "algorithm": "priority", "latency": 0.0, "bandwidth": 6e8},
    turn={"order": ("fifo", "priority"), "slice": (512, 4096, 32_768)},
    note=("seconds",),
    claims={
        "with large slices, sending early layers first saves over a tenth of the time": lambda rows: (
            ratio(rows, "seconds", order=("priority", "fifo"), slice=32_768) < 0.9
        ),
    },
)
LATE = Assignment(
    {
        "algorithm": "delayed",
        "workers": 2,
        "hidden": "32",
        "batch": 128,
        "steps": 80,
        "bandwidth": 2.5e8,
        "latency": 0.0,
        "collective": "stream",
        "evaluations": 1,
    },
    turn={"delay": (0, 1, 3), "learning_rate": (0.05, 0.1, 0.2)},
    note=("seconds", "held_out_loss"),
    claims={
        "a delay of one step saves over a third of the time": lambda rows: (
            ratio(rows, "seconds", delay=(1, 0), learning_rate=0.2) < 0.67
        ),
        "a delay of three steps saves no more than a delay of one": (
            lambda rows: ratio(rows, "seconds", delay=(3, 1), learning_rate=0.2) > 0.98
        ),
        "at the smallest rate a delay of three raises the loss by under a twentieth": lambda rows: (
            _lost(rows, 3, 0.05) < 1.05
        ),
        "at the largest rate a delay of three raises the loss by over a quarter": lambda rows: (
            _lost(rows, 3, 0.2) > 1.25
        ),
    },
)


def _seconds(rows, bandwidth, bucket):
    return value(rows, "seconds", bandwidth=bandwidth, bucket_bytes=bucket)


def _gain(rows, bandwidth):
    """Return the speed-up of sending layer by layer over sending one message."""
    return _seconds(rows, bandwidth, WHOLE) / _seconds(rows, bandwidth, 0)


def _lost(rows, delay, rate):
    """Return the final loss divided by the final loss without delay, at the same learning rate."""
    late, fresh = (value(rows, "held_out_loss", delay=k, learning_rate=rate) for k in (delay, 0))
    return late / fresh


def _best(rows, latency):
    """Return the bucket size, in bytes, with the shortest run at this latency."""
    return min((row for row in rows if row["latency"] == latency), key=lambda row: row["seconds"])["bucket_bytes"]
