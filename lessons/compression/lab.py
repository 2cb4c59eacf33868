"""The assignments of the lab on compression."""

from lessons.figure import column, ratio, value
from lessons.instructor.assignment import Assignment

SGD = {"algorithm": "sync_sgd", "learning_rate": 0.1, "evaluations": 1}
DIGITS = {**SGD, "workers": 4, "steps": 100}
FEWER = Assignment(
    DIGITS,
    turn={"compression": ("none", "bf16", "top_k", "one_bit", "power_sgd")},
    note=("bytes", "held_out_loss"),
    claims={
        "with every codec, the loss is less than a fifth above that of whole gradients": lambda rows: (
            max(column(rows, "held_out_loss")) < 1.2 * value(rows, "held_out_loss", compression="none")
        ),
        "three codecs send less than a tenth of the bytes of whole gradients": lambda rows: (
            sum(10 * row["bytes"] < value(rows, "bytes", compression="none") for row in rows) == 3
        ),
    },
)
FORGET = Assignment(
    DIGITS,
    turn={"compression": ("top_k", "one_bit", "qsgd"), "error_feedback": (True, False)},
    note=("held_out_loss",),
    claims={
        "without error feedback top_k and one_bit end at over 1.5 times their loss with it": lambda rows: all(
            ratio(rows, "held_out_loss", compression=codec, error_feedback=(False, True)) > 1.5
            for codec in ("top_k", "one_bit")
        ),
        "error feedback changes the loss of qsgd by less than a tenth": lambda rows: (
            0.9 < ratio(rows, "held_out_loss", compression="qsgd", error_feedback=(False, True)) < 1.1
        ),
    },
)
CROWD = Assignment(
    {**SGD, "steps": 5, "compression": "top_k", "density": 0.05},
    turn={"workers": (2, 5, 20, 40)},
    note=("bytes", "compression_ratio"),
    claims={
        "a twentieth of the numbers takes a tenth of the dense bytes with 2 workers, and twice them with 40": (
            lambda rows: 9.5 < rows[0]["compression_ratio"] < 10.5 and 0.48 < rows[-1]["compression_ratio"] < 0.52
        ),
        "with 20 workers a twentieth of the numbers takes as many bytes as all of them": lambda rows: (
            0.98 < value(rows, "compression_ratio", workers=20) < 1.02
        ),
    },
)
CODES = ("none", "bf16", "top_k", "power_sgd")
NETWORKS = Assignment(
    {**SGD, "workers": 8, "steps": 2, "hidden": "512,512", "latency": 5e-6},
    turn={"compression": CODES, "bandwidth": (1e7, 1e8, 1e9, 1e10)},
    note=("seconds",),
    claims={
        "over the slowest links power_sgd is over 20 times as fast as whole gradients": lambda rows: (
            ratio(rows, "seconds", compression=("none", "power_sgd"), bandwidth=1e7) > 20
        ),
        "over the fastest links every codec is slower than whole gradients": lambda rows: all(
            ratio(rows, "seconds", compression=("none", codec), bandwidth=1e10) < 1 for codec in CODES[1:]
        ),
    },
)
