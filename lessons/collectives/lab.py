"""The assignments of the lab on collectives."""

from lessons.figure import column, ratio
from lessons.instructor.assignment import Assignment

WAYS = ("ring", "recursive_doubling", "halving_doubling")
SMALL = {"algorithm": "sync_sgd", "hidden": "16", "batch": 16, "steps": 20, "learning_rate": 0.1}
MORE_RANKS = Assignment(
    {**SMALL, "network": "10GbE"},
    turn={"collective": WAYS, "workers": (4, 8, 16, 32)},
    note=("seconds", "messages"),
    claims={
        "from 4 to 32 ranks, the ring's time grows over 6 times, that of the others less than 3 times": lambda rows: (
            _grows(rows, "ring") > 6 > 3 > max(_grows(rows, name) for name in WAYS[1:])
        ),
        "with 32 ranks the ring takes more than eight times as long as recursive doubling": lambda rows: (
            ratio(rows, "seconds", collective=("ring", "recursive_doubling"), workers=32) > 8
        ),
    },
)
LONG = Assignment(
    {**SMALL, "hidden": "1024,256", "workers": 16},
    turn={"collective": WAYS, "network": ("10GbE", "1GbE")},
    note=("seconds", "bytes"),
    claims={
        "recursive doubling is the slowest, on either network": lambda rows: all(
            ratio(rows, "seconds", collective=("recursive_doubling", other), network=network) > 1.3
            for network in ("10GbE", "1GbE")
            for other in ("ring", "halving_doubling")
        ),
        "recursive doubling sends over twice the bytes of the ring": lambda rows: (
            ratio(rows, "bytes", collective=("recursive_doubling", "ring"), network="10GbE") > 2
        ),
        "on the slow network the ring is within 5 % of halving and doubling": lambda rows: (
            ratio(rows, "seconds", collective=("ring", "halving_doubling"), network="1GbE") < 1.05
        ),
    },
)
SAME = Assignment(
    {**SMALL, "network": "10GbE", "workers": 6},
    turn={"collective": WAYS},
    note=("held_out_loss",),
    claims={
        "the trained models are the same up to rounding": lambda rows: (
            max(column(rows, "held_out_loss")) - min(column(rows, "held_out_loss")) < 1e-4
        ),
    },
)
BOXES = Assignment(
    {**SMALL, "hidden": "1024,256", "workers": 16, "network": "10GbE", "per_node": 8},
    turn={"collective": (*WAYS[:2], "hierarchical")},
    note=("seconds",),
    claims={
        "recursive doubling takes more than three times as long as the hierarchy": lambda rows: (
            ratio(rows, "seconds", collective=("recursive_doubling", "hierarchical")) > 3
        ),
    },
)


def _grows(rows, name):
    """Return the time of a run with 32 workers, as a multiple of the time with four workers."""
    return ratio(rows, "seconds", collective=name, workers=(32, 4))
