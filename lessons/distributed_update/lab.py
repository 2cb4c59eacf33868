"""The assignments of the lab on the distributed update."""

from lessons.figure import column, ratio
from lessons.instructor.assignment import Assignment

BIG = {"hidden": "512,256", "update": "adam", "network": "HDR", "steps": 10, "evaluations": 1, "learning_rate": 0.01}
RANKS = (1, 2, 4, 8, 16)
DIVIDED = {"workers": RANKS, "batch": tuple(64 // ranks for ranks in RANKS)}  # 64 images in a step
EVERYBODY = Assignment(
    {**BIG, "algorithm": "sync_sgd"},
    turn=DIVIDED,
    paired=True,
    note=("seconds", "share_compute", "share_update"),
    claims={
        "on 16 ranks the update takes over two fifths of a step": lambda rows: rows[-1]["share_update"] > 0.4,
        "16 ranks are less than three times as fast as one": lambda rows: rows[0]["seconds"] < 3 * rows[-1]["seconds"],
    },
)
OWNERS = Assignment(
    {**BIG, "algorithm": "zero1"},
    turn=DIVIDED,
    paired=True,
    note=("seconds", "share_update", "bytes"),
    claims={
        "on 16 ranks the update takes less than a tenth of a step": lambda rows: rows[-1]["share_update"] < 0.1,
        "16 ranks are more than four times as fast as one": lambda rows: rows[0]["seconds"] > 4 * rows[-1]["seconds"],
    },
)
DIGITS = {"algorithm": "accumulation", "workers": 8, "batch": 8, "evaluations": 1}
ACCUMULATE = (1, 2, 4, 8)
PAYS = Assignment(
    {**DIGITS, "steps": 120, "learning_rate": 0.05},
    turn={"network": ("1GbE", "HDR"), "accumulate": ACCUMULATE},
    note=("seconds", "updates", "held_out_loss"),
    claims={
        "eight mini-batches per update are over 5 times as fast as one on the slow network, under 3 on the fast one": (
            lambda rows: (
                ratio(rows, "seconds", network="1GbE", accumulate=(1, 8)) > 5
                and ratio(rows, "seconds", network="HDR", accumulate=(1, 8)) < 3
            )
        ),
        "on both networks, the fewer updates, the higher the loss": lambda rows: all(
            (losses := column(rows, "held_out_loss", network=network)) == sorted(losses) for network in ("1GbE", "HDR")
        ),
    },
)
SCALED = Assignment(
    {**DIGITS, "network": "1GbE", "steps": 240},
    turn={"accumulate": ACCUMULATE, "learning_rate": tuple(0.05 * a for a in ACCUMULATE)},
    paired=True,
    note=("seconds", "updates", "held_out_loss"),
    claims={
        "if the rate grows with the batch, four mini-batches per update have under 1.25 times the loss of one": (
            lambda rows: rows[2]["held_out_loss"] < 1.25 * rows[0]["held_out_loss"]
        ),
        "four mini-batches per update take less than a third of the time of one": lambda rows: (
            rows[2]["seconds"] < rows[0]["seconds"] / 3
        ),
    },
)
