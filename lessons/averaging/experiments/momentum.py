"""Momentum in the averaging step: block momentum, SlowMo and DiLoCo."""

from math import log10

import numpy as np

from lessons.averaging.experiments import SMALL
from lessons.figure import Look, column, figure, interior, ratio, value

BLOCKS = {
    "algorithm": "bmuf", "workload": "quadratic", "dimension": 1, "points": 80, "workers": 16, "batch": 1,
    "precision": "float64", "evaluations": 1000,
}  # fmt: skip


@figure(
    "Are the forms of block momentum that are in use equivalent?",
    source="Chen & Huo, 2016; CNTK's and fairseq's code",
    claims={
        "down a slope, both of the paper's forms take 16 workers 16 times as far as plain averaging": lambda rows: all(
            abs(value(rows, "gain", form=form) - 16) < 0.1 for form in ("classical", "nesterov")
        ),
        "the form in the code takes 16 workers 31 times as far as plain averaging": lambda rows: (
            abs(value(rows, "gain", form="nesterov_code") - 31) < 0.2
        ),
        "the code overshoots an optimum farther than the form it is meant to implement": lambda rows: (
            ratio(rows, "overshoot", form=("nesterov_code", "nesterov")) > 1.5
        ),
        "Nesterov's form overshoots least": lambda rows: (
            min(rows, key=lambda row: row["overshoot"])["form"] == "nesterov"
        ),
    },
    look=Look("form", ("gain",), kind="bar", title="times as far down a slope as model averaging"),
)
def block_forms(run):
    """Sixteen workers descend a one-dimensional bowl without noise, with a block momentum of 15/16.

    `gain` is measured on the bowl's flank, at a rate so small that the flank looks like a slope. `overshoot` is
    measured at a larger rate: it is how far the model goes beyond the optimum, as a fraction of its distance at the
    start.
    """
    for form in ("classical", "nesterov", "nesterov_code"):
        distance = _distances(run(form=form, period=5, learning_rate=0.02, steps=200, **BLOCKS))
        past = distance[int(np.argmax(distance < 0.25)) :]  # the first time it is near, it is passing through
        yield {
            "form": form,
            "gain": gain(run, form=form),
            "overshoot": float(past.max()),
            "left after 40 blocks": float(distance[-1]),
        }


def gain(run, **values):
    """Return how far down a slope block momentum gets once its filter is full, as a multiple of the distance that model
    averaging covers.
    """
    rate = 1e-7
    before, after = _distances(run(period=1, learning_rate=rate, steps=170, **BLOCKS, **values))[[-31, -1]]
    return float((before - after) / (30 * rate))


def _distances(done):
    """Return the distance of w from the optimum, w = 0, after each block."""
    return np.sqrt(2 * done.evaluations["loss"])


@figure(
    "What does a second, outer momentum add to local SGD?",
    source="Wang, Tantia, Ballas & Rabbat, 2020 (SlowMo); Douillard et al., 2023 (DiLoCo)",
    claims={
        "down a narrow valley SlowMo and DiLoCo get farther than local SGD": lambda rows: all(
            ratio(rows, "progress", method=(method, "local SGD"), rate=1.0) > 1.2 for method in ("SlowMo", "DiLoCo")
        ),
        "SlowMo and DiLoCo get farther at a rate of 1 than local SGD does at 1.95, where it nearly diverges": (
            lambda rows: all(
                value(rows, "progress", method=method, rate=1.0)
                > value(rows, "progress", method="local SGD", rate=1.95)
                for method in ("SlowMo", "DiLoCo")
            )
        ),
    },
    look=Look("method", ("progress",), "rate", kind="bar", title="powers of ten by which the loss fell"),
)
def outer_momentum(run):
    """Four workers descend a narrow bowl without noise and average their models every 10 steps. Progress is the number
    of powers of ten by which the loss falls.

    Local steps must be short enough for the steepest direction: rate 2 is the limit. Momentum in the averaging step
    sees ten steps at once. By then the steep directions have settled, and it speeds up the others.
    """
    bowl = {"workload": "quadratic", "condition": 1000, "dimension": 20, "points": 64, "precision": "float64"}
    methods = (
        ("local SGD", 1.0, {"algorithm": "local_sgd"}),
        ("local SGD", 1.95, {"algorithm": "local_sgd"}),
        ("SlowMo", 1.0, {"algorithm": "slowmo", "slow_momentum": 0.8}),
        ("DiLoCo", 1.0, {"algorithm": "diloco", "update": "sgd"}),
    )
    for method, rate, values in methods:
        done = run(workers=4, batch=1, steps=600, period=10, learning_rate=rate, evaluations=2, **bowl, **values)
        loss = done.evaluations["loss"]
        yield {"method": method, "rate": rate, "progress": log10(loss[0] / loss[-1])}


def lowest(rows, outer):
    """Return the lowest loss of any inner learning rate with the outer step `outer`. Raise ValueError if the smallest
    or largest rate has it.
    """
    losses = {row["rate"]: row["loss"] for row in rows if row["outer"] == outer}
    return losses[interior(losses)]


@figure(
    "Does DiLoCo's outer step beat plain averaging of Adam's models?",
    source="Douillard et al., 2023",
    claims={
        "with an inner rate of 0.001, DiLoCo ends at a far lower loss than the plain average": lambda rows: (
            ratio(rows, "loss", outer=("Nesterov", "average"), rate=0.001) < 0.6
        ),
        "each at its own best rate, DiLoCo ends at over 1.5 times the loss of the plain average": lambda rows: (
            lowest(rows, "Nesterov") > 1.5 * lowest(rows, "average")
        ),
        "the best accuracies of DiLoCo and the plain average differ by less than 0.03": lambda rows: (
            abs(max(column(rows, "accuracy", outer="Nesterov")) - max(column(rows, "accuracy", outer="average"))) < 0.03
        ),
    },
    look=Look("rate", ("loss",), "outer", log="xy", title="held-out loss"),
)
def diloco_rates(run):
    """Eight workers train on digits with Adam as the inner optimizer, for 256 steps of 16 images each. Models are
    averaged every 32 steps.

    An outer rate of 0.7 with momentum 0.9 is, in the long run, a step seven times as long. It makes up for an inner
    rate that is too small; here a larger inner rate does better. The paper's gains are on language models that are not
    learned in eight rounds of averaging.
    """
    for rate in (0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16):
        for outer, algorithm, more in (("average", "local_sgd", {"update": "adam"}), ("Nesterov", "diloco", {})):
            done = run(
                algorithm=algorithm, workers=8, batch=16, steps=256, period=32, learning_rate=rate, evaluations=2,
                **SMALL, **more,
            ).summary  # fmt: skip
            yield {"rate": rate, "outer": outer, "loss": done["held_out_loss"], "accuracy": done["accuracy"]}
