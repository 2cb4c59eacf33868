"""The assignments of the lab on gossip."""

from lessons.figure import column, ratio, value
from lessons.instructor.assignment import Assignment

SIZES = (4, 8, 16, 32)
FAR = {"network": "10GbE", "latency": 1e-3, "batch": 16, "steps": 20, "learning_rate": 0.2}
AROUND = Assignment(
    {"algorithm": "sync_sgd", "collective": "ring", **FAR},
    turn={"workers": SIZES},
    note=("seconds", "bytes", "held_out_loss"),
    claims={
        "32 workers take more than 8 times as long as 4": lambda rows: rows[-1]["seconds"] > 8 * rows[0]["seconds"],
    },
)
NEXT_DOOR = Assignment(
    {"algorithm": "dpsgd", **FAR},
    turn={"workers": SIZES},
    note=("seconds", "bytes", "held_out_loss"),
    claims={
        "32 workers take hardly longer than 4": lambda rows: rows[-1]["seconds"] < 1.1 * rows[0]["seconds"],
    },
)
RING = {
    "topology": "ring", "network": "ideal", "workers": 8, "batch": 16, "hidden": "32", "seconds": 0.002,
    "learning_rate": 0.1,
}  # fmt: skip
LATE = ("", "4:2", "4:4", "4:8")
WAITING = Assignment(
    {"algorithm": "dpsgd", **RING},
    turn={"slow": LATE},
    note=("samples", "held_out_loss"),
    claims={
        "if one worker is four times as slow, all together process under a third of the samples of equal workers": (
            lambda rows: ratio(rows, "samples", slow=("none", "4:4")) > 3
        ),
    },
)
ASKING = Assignment(
    {"algorithm": "adpsgd", **RING},
    turn={"slow": LATE},
    note=("samples", "held_out_loss"),
    claims={
        "if one worker is eight times as slow, all together process over four fifths of equal workers' samples": (
            lambda rows: min(column(rows, "samples")) > 0.8 * value(rows, "samples", slow="none")
        ),
    },
)
