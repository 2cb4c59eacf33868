"""Averaging once, at the end of training."""

import numpy as np

import kernels
import workloads
from lessons.averaging.experiments import SMALL
from lessons.figure import Look, column, figure, is_rising, value

NOISY = {
    "workload": "quadratic", "condition": 4, "noise": 3.0, "dimension": 400, "points": 20_000,
    "batch": 1, "steps": 20, "learning_rate": 0.1, "evaluations": 2,
}  # fmt: skip


@figure(
    "Can models that were trained separately be averaged at the end?",
    source="Zinkevich, Weimer, Smola & Li, 2010",
    claims={
        "the loss differs by less than a sixth from the prediction of theory, bias + variance / N": lambda rows: all(
            abs(row["loss"] / row["theory"] - 1) < 1 / 6 for row in rows
        ),
        "ten workers remove most of the variance, and a hundred only a little more": lambda rows: (
            value(rows, "loss", workers=1) - value(rows, "loss", workers=10)
            > 5 * (value(rows, "loss", workers=10) - value(rows, "loss", workers=100))
        ),
        "the bias stays, however many workers there are": lambda rows: (
            value(rows, "loss", workers=100) > 0.95 * value(rows, "bias", workers=100)
        ),
    },
    look=Look("workers", ("loss",), theory=("theory", "bias"), log="x", title="loss of the average"),
)
def one_average(run):
    """Every worker takes 20 noisy steps alone in a bowl with 400 coordinates. The models are averaged once, at the end.

    The bias is how far even a worker without noise would still have to go; only more steps help against that. The
    paper's curve, on e-mail spam, has the same shape: going from 1 to 10 machines gains much, from 10 to 100 little.
    """
    steps, rate, noise = (NOISY[name] for name in ("steps", "learning_rate", "noise"))
    h = np.geomspace(1, 1 / NOISY["condition"], NOISY["dimension"])
    left = (1 - rate * h) ** steps
    bias = float(h @ left**2 / 2)
    variance = float(h @ (rate * h * noise**2 / (2 - rate * h) * (1 - left**2)) / 2)
    return [
        {"workers": workers, "loss": once_averaged(run, workers), "theory": bias + variance / workers, "bias": bias}
        for workers in (1, 3, 10, 30, 100)
    ]


def once_averaged(run, workers):
    """Return the loss of the average of this many models, each trained alone in the noisy bowl until the end."""
    return run(algorithm="one_shot", workers=workers, **NOISY).summary["held_out_loss"]


@figure(
    "Does averaging two networks depend on where they started?",
    source="Zinkevich et al., 2010, on convex problems; the barrier is ours",
    claims={
        "on the line between networks from the same start, the loss is nowhere above the worse one's": lambda rows: (
            max(column(rows, "loss", starts="the same")) <= max(_ends(rows, "the same")) * 1.01
        ),
        "the mean of two networks from the same start has a lower loss than the two have on average": lambda rows: (
            value(rows, "loss", starts="the same", along=0.5) < np.mean(_ends(rows, "the same"))
        ),
        "halfway between networks from different starts, the loss is over 1.8 times that of the worse one": (
            lambda rows: value(rows, "loss", starts="different", along=0.5) > 1.8 * max(_ends(rows, "different"))
        ),
    },
    look=Look("along", ("loss",), "starts", title="held-out loss"),
)
def two_starts(run):
    """The held-out loss on digits along the line between two networks that were trained on different images.

    Hidden neurons can be numbered in any order. Networks from two starts have usually chosen different orders, and
    their mean mixes unrelated neurons.
    """
    digits = workloads.find("digits")
    problem = digits.build(digits.Settings(**SMALL))
    values = {"batch": 8, "steps": 800, "learning_rate": 0.2, "evaluations": 2, **SMALL}
    pair = {"algorithm": "one_shot", "workers": 2, **values}
    mean = run(**pair).parameters
    first, other = (run(worker_override=_alone, **pair, **start).parameters for start in ({}, {"seed": 1}))
    for starts, end in (("the same", 2 * mean - first), ("different", other)):
        for along in (0.0, 0.25, 0.5, 0.75, 1.0):
            loss, accuracy = problem.evaluate((1 - along) * first + along * end)
            yield {"starts": starts, "along": along, "loss": loss, "accuracy": accuracy}


@figure(
    "How long can two networks train separately before averaging them no longer helps?",
    source="Frankle et al., 2020, on larger networks; the measure is ours",
    claims={
        "after 800 steps the mean has a lower loss than the two networks have on average": (
            lambda rows: _saved(rows, steps=800) > 0
        ),
        "the mean lowers the loss of the two networks by a smaller share after 6,400 steps than after 800": (
            lambda rows: _saved(rows, steps=6400) < _saved(rows, steps=800)
        ),
        "the longer they train, the farther apart the networks are": lambda rows: is_rising(column(rows, "apart")),
    },
    look=Look("steps", ("ends", "mean"), log="x", title="held-out loss"),
)
def longer_apart(run):
    """Two workers train on digits from the same start, each with its own images. `ends` is the mean of their two
    losses, and `mean` is the loss of their mean.

    At a constant learning rate each network keeps noise of its own, and averaging the two removes half of it. `apart`
    is the distance between the two.
    """
    digits = workloads.find("digits")
    problem = digits.build(digits.Settings(**SMALL))
    for steps in (800, 2400, 6400):
        pair = {"algorithm": "one_shot", "workers": 2, "batch": 8, "steps": steps, "learning_rate": 0.2}
        pair |= {"evaluations": 2, **SMALL}
        mean = run(**pair).parameters
        first = run(worker_override=_alone, **pair).parameters
        ends = [problem.evaluate(w)[0] for w in (first, 2 * mean - first)]
        yield {
            "steps": steps,
            "ends": float(np.mean(ends)),
            "mean": problem.evaluate(mean)[0],
            "apart": float(2 * np.linalg.norm(mean - first)),
        }


def _saved(rows, steps):
    return 1 - value(rows, "mean", steps=steps) / value(rows, "ends", steps=steps)


def _alone(comm, task, s):
    """Train like a worker of one-shot averaging, but without the average, and return the model. Only rank 0 reports its
    model.
    """
    w = task.start()  # (d,)
    for _ in task.steps():
        kernels.sgd(w, task.gradient(w)[1], s.learning_rate)
    if comm.rank == 0:
        task.report(w)
    return w


def _ends(rows, starts):
    first, *_, last = column(rows, "loss", starts=starts)
    return first, last
