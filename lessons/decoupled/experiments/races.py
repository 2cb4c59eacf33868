"""Which method has learned most after the same number of steps, and how long these steps take."""

import numpy as np

import workloads
from lessons.decoupled.experiments import EIGHT, LAST, WIDE, at_best, lately
from lessons.figure import Look, figure, ratio, value
from lessons.pipelined_backprop.slots import updates
from workloads import digits

FROZEN = {"algorithm": "greedy", "frozen": 3}  # the control: only the last of four modules is trained
RACE = {  # with rates to try, or the method whose weights these are, bit for bit
    "frozen": (FROZEN, (0.8, 1.6, 3.2, 6.4, 12.8)),
    "back-propagation": ({"algorithm": "layer_wise"}, (0.05, 0.1, 0.2, 0.4, 0.8)),
    "pipeline": ({"algorithm": "gpipe", "chunks": 4}, "back-propagation"),
    "old errors": ({"algorithm": "ddg"}, (0.05, 0.1, 0.2, 0.4)),
    "old errors, no barrier": ({"algorithm": "ddg", "barrier": False}, "old errors"),
    "guesses": ({"algorithm": "dni"}, (0.1, 0.2, 0.4, 0.8, 1.6)),
    "own loss": ({"algorithm": "greedy"}, (0.1, 0.2, 0.4, 0.8)),
    "random errors": ({"algorithm": "feedback_alignment"}, (0.2, 0.4, 0.8, 1.6)),
}

RACING = {"workers": 4, "steps": 100, "evaluations": 10, **WIDE}


@figure(
    "Which method learns most, and how fast?",
    source="Huo et al., 2018; Jaderberg et al., 2017; Belilovsky et al., 2020; Nokland, 2016; Huang et al., 2019",
    claims={
        "after 100 steps own losses and random errors end at no more than 1.5 times the loss of true errors": (
            lambda rows: all(
                _end(rows, m) < 1.5 * _end(rows, "back-propagation") for m in ("own loss", "random errors")
            )
        ),
        "frozen, with one module of four trained, also ends at no more than 1.5 times the loss of true errors": (
            lambda rows: _end(rows, "frozen") < 1.5 * _end(rows, "back-propagation")
        ),
        "frozen ends at a lower loss than old errors and guesses, which train all four modules at one rate": (
            lambda rows: _end(rows, "frozen") < min(_end(rows, "old errors"), _end(rows, "guesses"))
        ),
        "frozen takes its steps in under half the time of any other method": lambda rows: all(
            _took(rows, "frozen") < 0.5 * _took(rows, method) for method in RACE if method != "frozen"
        ),
        "old errors end at a higher loss than true ones": lambda rows: (
            _end(rows, "old errors") > _end(rows, "back-propagation")
        ),
        "the pipeline learns the same as back-propagation, in under 0.7 times the time": lambda rows: (
            abs(_end(rows, "pipeline") / _end(rows, "back-propagation") - 1) < 0.01
            and _took(rows, "pipeline") < 0.7 * _took(rows, "back-propagation")
        ),
        "own losses and random errors take their steps in under 0.85 times the time of the pipeline": lambda rows: (
            max(_took(rows, "own loss"), _took(rows, "random errors")) < 0.85 * _took(rows, "pipeline")
        ),
        "each method's best rate lies between other rates that were tried": lambda rows: all(
            min(RACE[row["method"]][1]) < row["rate"] < max(RACE[row["method"]][1])
            for row in rows
            if isinstance(RACE[row["method"]][1], tuple)
        ),
    },
    look=Look("ms", ("loss",), "method", log="y", title="loss on held-out images"),
)
def the_race(run):
    """Each method trains a residual model of eight layers on digits, on four ranks, for 100 steps of 128 images.
    Messages take no time.

    It runs at its learning rate with the lowest training loss. The pipeline is GPipe with four micro-batches. `frozen`
    is the control: the last module is trained as usual, and the other three keep their initial weights.
    """
    found = {}
    for method, (values, rates) in RACE.items():
        rates = rates if isinstance(rates, tuple) else (found[rates],)
        found[method], done = at_best(run, rates, **RACING, **values)
        tried = done.evaluations
        for step, seconds, loss in zip(tried["step"], tried["seconds"], tried["loss"], strict=True):
            yield {"method": method, "steps": round(float(step)), "ms": 1e3 * float(seconds),
                   "loss": float(loss), "rate": found[method]}  # fmt: skip


def _end(rows, method):
    return [row["loss"] for row in rows if row["method"] == method][-1]


def _took(rows, method):
    """Return the time that all steps of a method took, in ms."""
    return [row["ms"] for row in rows if row["method"] == method][-1]


LAST_RATES = 1.6, 3.2, 6.4, 12.8
RATES = {  # of the lower three modules and of the last, to try
    "frozen": [(0.0, last) for last in LAST_RATES],
    "old errors, one rate": [(rate, rate) for rate in (0.05, 0.1, 0.2, 0.4)],
    "old errors, two rates": [(rate, last) for rate in (0.0125, 0.025, 0.05, 0.1) for last in LAST_RATES],
    "true errors, two rates": [(rate, last) for rate in (0.025, 0.05, 0.1) for last in LAST_RATES],
}


@figure(
    "What if the last module, whose error is never old, has a rate of its own?",
    source="Huo et al., 2018; the second rate and the numbers are ours",
    claims={
        "with one rate for all modules, old errors end at over 1.5 times the loss of frozen modules": lambda rows: (
            ratio(rows, "loss", method=("old errors, one rate", "frozen")) > 1.5
        ),
        "with a rate of its own for the last module, old errors end at a lower loss than frozen modules": lambda rows: (
            ratio(rows, "loss", method=("old errors, two rates", "frozen")) < 0.9
        ),
        "with two rates, the loss of true errors is less than a third below that of old ones": lambda rows: (
            ratio(rows, "loss", method=("true errors, two rates", "old errors, two rates")) > 2 / 3
        ),
        "with old errors and two rates, the last module's best rate is over ten times the others'": lambda rows: (
            value(rows, "last", method="old errors, two rates")
            > 10 * value(rows, "rate", method="old errors, two rates")
        ),
        "for frozen, and for old errors with one rate, the best rate lies between other rates that were tried": (
            lambda rows: all(
                min(RATES[name])[1] < value(rows, "last", method=name) < max(RATES[name])[1]
                for name in ("frozen", "old errors, one rate")
            )
        ),
    },
    look=Look("method", ("loss",), kind="bar", title="training loss of the last 30 steps"),
)
def a_rate_of_its_own(run):
    """Training on the digits of the race for 100 steps of 128 images, in four modules. `rate` is the learning rate of
    the lower three modules, and `last` that of the last one.

    The two are the pair with the lowest loss of all pairs tried. Weights are computed on one machine, where each module
    learns from errors that are as old as DDG's. True errors are those of back-propagation.
    """
    workload = workloads.find("digits").build(digits.Settings(**EIGHT), np.dtype("float32"))
    for method, tried in RATES.items():
        hops = 0 if method.startswith("true") else 1
        losses = {rates: _loss(workload, rates, run.seed, hops) for rates in tried}
        best = min(losses, key=losses.get)
        yield {"method": method, "loss": losses[best], "rate": best[0], "last": best[1]}


def _loss(workload, rates, seed, hops):
    """Return the mean loss of the last steps, or infinity if training diverged.

    Errors are true if `hops` is 0, and old if it is 1.
    """
    each = [rates[0]] * 3 + [rates[1]]
    with np.errstate(all="ignore"):
        losses = [
            one.loss for one in updates(workload, 4, each, steps=100, batch=128, seed=seed, hops=hops, stash=True)
        ]
    mean = float(np.mean(losses[-LAST:]))
    return mean if np.isfinite(mean) else np.inf


SPIRALS = {
    "workload": "spirals", "model": "residual", "depth": 2, "width": 64, "activation": "tanh", "workers": 4,
    "batch": 128, "steps": 400, "network": "ideal", "evaluations": 20,
}  # fmt: skip
ON_SPIRALS = {
    "frozen": (FROZEN, (0.6, 1.2, 2.4, 4.8)),
    "old errors": ({"algorithm": "ddg"}, (0.6, 1.2, 2.4, 4.8)),
    "guesses": ({"algorithm": "dni"}, (1.2, 2.4, 4.8)),
    "own loss": ({"algorithm": "greedy"}, (0.15, 0.3, 0.6, 1.2, 2.4)),
    "random errors": ({"algorithm": "feedback_alignment"}, (0.15, 0.3, 0.6, 1.2, 2.4)),
    "back-propagation": ({"algorithm": "layer_wise"}, (0.3, 0.6, 1.2, 2.4, 4.8, 9.6)),
}


@figure(
    "What if the lower layers have to learn?",
    source="Lang & Witbrock, 1988, for the spirals, which are Wieland's; the numbers are ours",
    claims={
        "frozen is over 15 points less accurate than back-propagation: the lower layers have to learn": lambda rows: (
            _right(rows, "frozen") < _right(rows, "back-propagation") - 0.15
        ),
        "old errors, own losses and random errors each win back over a quarter of what frozen loses": lambda rows: all(
            _won(rows, method) > 0.25 for method in ("old errors", "own loss", "random errors")
        ),
        "own losses still end at a lower accuracy than back-propagation": lambda rows: (
            _right(rows, "own loss") < _right(rows, "back-propagation")
        ),
        "guesses are at most 3 points less accurate than back-propagation": lambda rows: (
            _right(rows, "guesses") > _right(rows, "back-propagation") - 0.03
        ),
        "each method's best rate lies between other rates that were tried": lambda rows: all(
            min(ON_SPIRALS[row["method"]][1]) < row["rate"] < max(ON_SPIRALS[row["method"]][1]) for row in rows
        ),
    },
    look=Look("method", ("accuracy",), kind="bar", title="held-out accuracy"),
)
def spirals(run):
    """A residual model of four layers of 64 neurons, with one layer in each of four modules, learns to tell three
    spirals apart in 400 steps of 128 points.

    Each method runs at the learning rate, of those tried, with the lowest training loss. The last module is linear, so
    it depends on the features that the other modules compute. Accuracy is the median of the last five of 20
    evaluations.
    """
    for method, (values, rates) in ON_SPIRALS.items():
        rate, done = at_best(run, rates, **SPIRALS, **values)
        yield {"method": method, "accuracy": lately(done, "accuracy"), "rate": rate}


def _right(rows, method):
    return value(rows, "accuracy", method=method)


def _won(rows, method):
    """Return how much of the gap in accuracy between `frozen` and back-propagation a method closes, as a fraction."""
    frozen = _right(rows, "frozen")
    return (_right(rows, method) - frozen) / (_right(rows, "back-propagation") - frozen)
