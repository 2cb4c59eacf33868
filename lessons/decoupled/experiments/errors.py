"""What old errors cost, and why networks learn from random ones."""

import numpy as np

import workloads
from lessons.decoupled.experiments import EIGHT, final_loss
from lessons.figure import Look, column, figure, is_falling, ratio
from workloads.batches import Batches

STEPS = 200
OLD_RATES = 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8
TRIED = {1: OLD_RATES[2:], 4: OLD_RATES[2:], 8: OLD_RATES[:5]}
TWO_HIDDEN = {"model": "mlp", "hidden": "64,64", "activation": "tanh"}


@figure(
    "What do old errors cost?",
    source="Huo et al., ICML 2018; the numbers are ours",
    claims={
        "at a rate of 0.1, where one module learns well, eight end at over 1.5 times its loss": lambda rows: (
            ratio(rows, "loss", modules=(8, 1), rate=0.1) > 1.5
        ),
        "the best rate of eight modules is no larger than that of one": lambda rows: (
            _best(rows, 8)["rate"] <= _best(rows, 1)["rate"]
        ),
        "at their best rates eight modules end at over 1.4 times the loss of one, and at a higher loss than four": (
            lambda rows: _best(rows, 8)["loss"] > max(1.4 * _best(rows, 1)["loss"], _best(rows, 4)["loss"])
        ),
        "at a rate of 0.05 four modules are as good as one, within a tenth": lambda rows: (
            abs(ratio(rows, "loss", modules=(4, 1), rate=0.05) - 1) < 0.1
        ),
        "with four modules the rates next to the best one are worse, and with eight the two rates below the best": (
            lambda rows: min(TRIED[4]) < _best(rows, 4)["rate"] < max(TRIED[4]) and TRIED[8][1] < _best(rows, 8)["rate"]
        ),
    },
    look=Look("rate", ("loss",), "modules", log="xy", title="training loss after 200 steps"),
)
def old_errors(run):
    """DDG trains a residual model of eight layers on digits, with 32 images in a mini-batch. The first of K modules
    learns from errors that are K - 1 updates old. One module is SGD.
    """
    rows = []
    for modules, rates in TRIED.items():
        for rate in rates:
            done = run(algorithm="ddg", workers=modules, learning_rate=rate, batch=32, steps=STEPS, network="ideal",
                       evaluations=1, **EIGHT)  # fmt: skip
            rows.append({"modules": modules, "rate": rate, "loss": min(final_loss(done), 10.0)})
    return [
        {**row, "best": _best(rows, row["modules"])["rate"], "least": _best(rows, row["modules"])["loss"]}
        for row in rows
    ]


def _best(rows, modules):
    """Return the row with the lowest loss for this number of modules."""
    return min((row for row in rows if row["modules"] == modules), key=lambda row: row["loss"])


@figure(
    "Why does training with random errors work?",
    source="Lillicrap et al., 2016; Nokland, 2016",
    claims={
        "at first a step is within 8 degrees of a right angle to the gradient": lambda rows: all(
            abs(row["degrees"] - 90) < 8 for row in rows if row["steps"] == 0
        ),
        "after 30 steps, the step keeps turning towards the gradient": lambda rows: all(
            is_falling(column(rows, "degrees", feedback=feedback)[2:]) for feedback in ("DFA", "FA")
        ),
        "after 300 steps the step is downhill, less than 80 degrees from the gradient": lambda rows: (
            max(column(rows, "degrees", steps=300)) < 80
        ),
    },
    look=Look("steps", ("degrees",), "feedback", title="angle between step and gradient, degrees"),
)
def alignment(run):
    """The angle between a step of the hidden layers and the gradient of back-propagation for the same images. It is the
    mean of three steps.

    An MLP with two hidden layers of 64 neurons (tanh) is trained on digits, with 32 images in a mini-batch and a
    learning rate of 0.1.
    """
    for feedback, direct in (("DFA", True), ("FA", False)):
        for steps in (0, 10, 30, 100, 300):
            yield {"feedback": feedback, "steps": steps, "degrees": angle(run, steps, direct)}


def angle(run, steps, direct, hidden=True):
    """Return the angle between a step and the gradient after `steps` steps, in degrees. It is averaged over three
    steps.

    Only the weights of the two hidden layers count or, unless `hidden`, those of the last layer.
    """
    digits = workloads.find("digits")
    workload = digits.build(digits.Settings(**TWO_HIDDEN), np.dtype("float64"))
    last = workload.split(3)[2].offset
    part = slice(0, last) if hidden else slice(last, None)
    w = [_weights(run, workload, n, direct) for n in range(steps, steps + 4)]
    angles = []
    for n in range(3):
        g = workload.gradient(w[n], workload.batch(_batch(run, workload, steps + n)))[1][part]
        step = (w[n] - w[n + 1])[part]
        cosine = g @ step / np.linalg.norm(g) / np.linalg.norm(step)
        angles.append(np.arccos(min(1.0, cosine)))  # rounding may lead beyond 1
    return float(np.degrees(np.mean(angles)))


def _weights(run, workload, steps, direct):
    if not steps:
        return workload.start(run.seed)
    return run(algorithm="feedback_alignment", direct=direct, workers=1, batch=32, steps=steps, evaluations=1,
               learning_rate=0.1, precision="float64", network="ideal", **TWO_HIDDEN).parameters  # fmt: skip


def _batch(run, workload, number):
    batches = Batches(workload.samples, 32, seed=run.seed)
    return [next(batches) for _ in range(number + 1)][-1]
