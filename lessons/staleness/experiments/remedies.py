"""Ways to make an old gradient harmless."""

import numpy as np

from lessons.figure import Look, column, figure, value
from lessons.staleness.experiments import DIGITS, GUESSING, end_loss


@figure(
    "Can a server keep the rate of one worker, however many push?",
    source="Zhang, Gupta, Lian & Liu, 2016; Jiang, Cui, Zhang & Yu, 2017",
    claims={
        "asynchronous SGD cannot keep the rate of one worker": lambda rows: all(
            row["loss"] > 1.5 for row in rows if row["method"] == "asynchronous SGD" and row["workers"] > 1
        ),
        "a server that divides each step by its age can keep the rate of one worker": lambda rows: all(
            row["loss"] < 1.3 * rows[0]["loss"] for row in rows if row["method"] != "asynchronous SGD"
        ),
        "with steps divided by age, workers with 100 steps each end at over 0.45 times the loss of one worker": (
            lambda rows: all(
                row["loss"] > 0.45 * rows[0]["loss"] for row in rows if row["method"] != "asynchronous SGD"
            )
        ),
    },
    look=Look("workers", ("loss",), "method", log="x", title="held-out loss"),
)
def staleness_aware(run):
    """Training on digits, where each worker takes 100 steps of 16 images. All use 0.4, the learning rate that suits one
    worker.

    N gradients, each at 1/N of the learning rate, are about one step of a batch N times as large: nobody waits, but
    training takes as many steps as synchronous SGD.
    """
    methods = {"asynchronous SGD": "asgd", "softsync, divided": "softsync", "DynSGD": "dynsgd"}
    for method, algorithm in methods.items():
        for workers in (1, 8, 16, 32):
            more = {"splits": workers} if algorithm == "softsync" else {}
            done = run(algorithm=algorithm, workers=workers, learning_rate=0.4, steps=100, **more, **DIGITS)
            yield {"method": method, "workers": workers, "loss": end_loss(done)}


FORMS = ("constant", "adaptive")


@figure(
    "Can a late gradient be brought up to date?",
    source="Zheng et al., 2017",
    claims={
        "with a lam of 1 the adaptive form does no harm, and usually repairs part of the damage": lambda rows: (
            value(rows, "loss", form="adaptive", lam=1) < 1.1 * value(rows, "loss", form="constant", lam=0)
        ),
        "a lam that is far too large ends at more than three times the loss of a lam of 0": lambda rows: (
            value(rows, "loss", form="adaptive", lam=100) > 3 * value(rows, "loss", form="constant", lam=0)
        ),
        "the adaptive form is about best at a lam of 1, and the constant form at a lam of 10": lambda rows: all(
            value(rows, "loss", form=form, lam=lam) < 1.25 * min(column(rows, "loss", form=form))
            for form, lam in (("adaptive", 1), ("constant", 10))
        ),
    },
    look=Look("lam", ("loss",), "form", kind="bar", log="y", title="held-out loss"),
)
def compensated(run):
    """Training on digits with 8 workers for 768 updates, at a learning rate of 0.15, nearly all that asynchronous SGD
    tolerates. Values are medians of 7 seeds.

    lam 0 is asynchronous SGD. Well below that learning rate there is nothing to gain here. The mean gradient of 16
    images is short, and so is its square, which approximates the curvature: the constant lam has to be larger than the
    paper's 0.04. A loss above that of guessing counts as that of guessing. `no delay` is one worker.
    """
    yield {"form": "no delay", "lam": 0, "loss": _median_loss(run, algorithm="sgd", workers=1, steps=768)}
    for form in FORMS:
        for lam in (0, 1, 10, 100):
            late = {"algorithm": "dc_asgd", "form": form, "compensation": lam, "workers": 8, "steps": 96}
            yield {"form": form, "lam": lam, "loss": _median_loss(run, **late)}


def _median_loss(run, **values):
    tried = [end_loss(run(learning_rate=0.15, seed=seed, **values, **DIGITS)) for seed in range(7)]
    return float(np.median(np.minimum(tried, GUESSING)))
