"""Decoupled learning: modules that do not wait for their errors, what they learn from instead, and what that costs."""

from math import inf

import numpy as np

import workloads
from lessons.figure import Look, column, figure, is_falling, ratio, value
from tracing import HELD
from workloads.batches import Batches

DEEP = {"model": "residual", "depth": 14, "width": 32, "activation": "tanh"}  # sixteen layers
TIMED = {
    "back-propagation": {"algorithm": "layer_wise"},
    "feedback alignment": {"algorithm": "feedback_alignment", "direct": False},
    "DFA": {"algorithm": "feedback_alignment"},
    "DDG": {"algorithm": "ddg"},
    "DDG, no barrier": {"algorithm": "ddg", "barrier": False},
    "features replay": {"algorithm": "features_replay"},
    "features replay, no barrier": {"algorithm": "features_replay", "barrier": False},
    "DNI": {"algorithm": "dni"},
    "DNI, lessons late": {"algorithm": "dni", "late": 1},
    "greedy": {"algorithm": "greedy"},
}


def _seconds(done, steps):
    """(of a step in a full row, mean seconds by rank of each kind of pass: forward, backward, and so on)."""
    spans, labels = done.trace.spans, np.array(done.trace.labels)
    kinds = np.array([label.rstrip("0123456789") for label in labels])[spans["label"]]
    length = spans["end"] - spans["start"]
    first = (spans["rank"] == 0) & (kinds == "F")
    starts = spans["start"][first]
    half = steps // 2
    passes = {
        kind: np.array([length[(spans["rank"] == k) & (kinds == kind)].sum() / steps for k in range(done.trace.ranks)])
        for kind in ("F", "B", "R", "guess", "lesson", "classify")
    }
    return float(starts[-1] - starts[half]) / (len(starts) - 1 - half), passes


def _theory(method, p):
    """Seconds of a step from those of the passes of each module."""
    f, g = p["F"], p["B"]
    whole, beside = f.sum(), p["guess"] + p["lesson"] + p["classify"]
    mine = p["guess"] + g
    waiting = f + np.maximum(mine, np.append((f + mine)[1:], 0)) + p["lesson"]
    return {
        "back-propagation": whole + g.sum(),
        "feedback alignment": whole + g.sum(),
        "DFA": whole + g.max(),
        "DDG": whole + g.max(),
        "DDG, no barrier": (f + g).max(),
        "features replay": whole + (p["R"] + g).max(),
        "features replay, no barrier": (f + p["R"] + g).max(),
        "DNI": waiting.max(),
        "DNI, lessons late": (f + g + beside).max(),
        "greedy": (f + g + beside).max(),
    }[method]


@figure(
    "How long does a step take if modules do not wait for the errors of later ones?",
    source="Huo et al., ICML 2018 and NeurIPS 2018; Jaderberg et al., 2017; Belilovsky et al., 2020; Nokland, 2016",
    claims={
        "every method takes the sum of its passes, within 5 %": lambda rows: all(
            abs(row["step"] / row["theory"] - 1) < 0.05 for row in rows
        ),
        "methods that wait for the forward pass never take under 0.4 times as long as back-propagation": lambda rows: (
            all(
                row["step"] > 0.4 * value(rows, "step", method="back-propagation", modules=2)
                for row in rows
                if row["method"] in ("DFA", "DDG", "features replay")
            )
        ),
        "without that wait, eight are over 7 times as fast: DDG without its barrier, which is PipeDream": lambda rows: (
            ratio(rows, "step", method=("back-propagation", "DDG, no barrier"), modules=8) > 7
        ),
        "feedback alignment from layer to layer saves no time": lambda rows: all(
            ratio(rows, "step", method=("feedback alignment", "back-propagation"), modules=modules) > 0.99
            for modules in (2, 4, 8)
        ),
    },
    look=Look("modules", ("step",), "method", theory=("theory",), log="xy", title="milliseconds of a step"),
)
def a_step(run):
    """Digits, a residual model of 16 layers, 256 images in a mini-batch; messages take no time.

    `theory` adds up the passes. F and B are a forward and a backward pass through all modules; f, g, r and m are the
    forward pass, the backward pass, the replay and the auxiliary network of the slowest module. A step takes F + B with
    back-propagation, F + g with DDG and DFA, and F + r + g with features replay; without their barriers f + g and f + r
    + g; and f + g + m if modules learn from what they have. (DFA is direct feedback alignment.)
    """
    steps = 20
    for modules in (2, 4, 8):
        for method, values in TIMED.items():
            done = run(workers=modules, batch=256, network="ideal", steps=steps, evaluations=1, learning_rate=0.01,
                       **DEEP, **values)  # fmt: skip
            step, passes = _seconds(done, steps)
            yield {"method": method, "modules": modules, "step": 1e3 * step,
                   "theory": 1e3 * float(_theory(method, passes))}  # fmt: skip


EIGHT = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}  # eight layers
RATES = 0.05, 0.1, 0.2, 0.4, 0.8
STEPS = 200
LAST = 30  # steps over which a loss is averaged


def final_loss(done) -> float:
    """Return the mean loss of the last mini-batches, infinite if training was thrown out."""
    loss = done.losses["loss"][-LAST:].mean()
    return float(loss) if np.isfinite(loss) else inf


def at_best(run, rates, **values):
    """Return (rate, Run) of the rate whose run ends lowest."""
    tried = {rate: run(learning_rate=rate, **values) for rate in rates}
    best = min(tried, key=lambda rate: final_loss(tried[rate]))
    return best, tried[best]


OLD_RATES = 0.0125, 0.025, 0.05, 0.1, 0.2, 0.4, 0.8
TRIED = {1: OLD_RATES[2:], 4: OLD_RATES[2:], 8: OLD_RATES[:5]}


@figure(
    "What do old errors cost?",
    source="Huo et al., ICML 2018; the numbers are ours",
    claims={
        "at 0.1, where one module learns well, eight end over 1.5 times as high": lambda rows: (
            ratio(rows, "loss", modules=(8, 1), rate=0.1) > 1.5
        ),
        "the best rate of eight is no larger than that of one": lambda rows: (
            _best(rows, 8)["rate"] <= _best(rows, 1)["rate"]
        ),
        "at their best rates eight end over 1.4 times as high as one, and higher than four": lambda rows: (
            _best(rows, 8)["loss"] > max(1.4 * _best(rows, 1)["loss"], _best(rows, 4)["loss"])
        ),
        "at 0.05 four modules are as good as one, within a tenth": lambda rows: (
            abs(ratio(rows, "loss", modules=(4, 1), rate=0.05) - 1) < 0.1
        ),
        "the best rate of four has a worse one on both sides, that of eight two worse ones below it": lambda rows: (
            min(TRIED[4]) < _best(rows, 4)["rate"] < max(TRIED[4]) and TRIED[8][1] < _best(rows, 8)["rate"]
        ),
    },
    look=Look("rate", ("loss",), "modules", log="xy", title="training loss after 200 steps"),
)
def old_errors(run):
    """Digits, a residual model of eight layers, 32 images in a mini-batch, DDG. The first of K modules learns from
    errors that are K - 1 updates old; one module is SGD."""
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
    """Return the row of the lowest loss with so many modules."""
    return min((row for row in rows if row["modules"] == modules), key=lambda row: row["loss"])


STACKED = {
    "own loss": ({"algorithm": "greedy"}, (0.1, 0.2, 0.4, 0.8, 1.6)),
    "guesses with labels": ({"algorithm": "dni"}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "guesses": ({"algorithm": "dni", "labels": False}, (0.05, 0.1, 0.2, 0.4)),
}
WIDE = {"batch": 128, "network": "ideal", **EIGHT}


@figure(
    "How many guesses can be stacked on each other?",
    source="Jaderberg et al., 2017; Belilovsky et al., ICML 2020 (DGL), whose logs on CIFAR-10 have this order",
    claims={
        "with labels, two modules are less than 5 points below back-propagation": lambda rows: (
            value(rows, "accuracy", learning="guesses with labels", modules=2)
            > value(rows, "back-propagation", learning="guesses with labels", modules=2) - 0.05
        ),
        "each guess is trained on the next one: with labels eight modules are over 3 points below two": lambda rows: (
            value(rows, "accuracy", learning="guesses with labels", modules=8)
            < value(rows, "accuracy", learning="guesses with labels", modules=2) - 0.03
        ),
        "without labels four are over 3 points below two": lambda rows: (
            value(rows, "accuracy", learning="guesses", modules=4)
            < value(rows, "accuracy", learning="guesses", modules=2) - 0.03
        ),
        "with labels, and with losses of their own, each best rate has a worse one on both sides": lambda rows: all(
            min(STACKED[row["learning"]][1]) < row["rate"] < max(STACKED[row["learning"]][1])
            for row in rows
            if row["learning"] != "guesses"
        ),
        "losses of their own do not add up: eight modules are less than 5 points below two": lambda rows: (
            value(rows, "accuracy", learning="own loss", modules=8)
            > value(rows, "accuracy", learning="own loss", modules=2) - 0.05
        ),
    },
    look=Look("modules", ("accuracy",), "learning", theory=("back-propagation",), log="x"),
)
def stacked_guesses(run):
    """Digits, a residual model of eight layers, 80 steps of 128 images: held-out accuracy, each at the rate of those
    tried, a factor of two apart, with the lowest training loss."""
    whole, _ = best_of_rates(run, {"algorithm": "layer_wise"}, (0.1, 0.2, 0.4), 1)
    for learning, (method, rates) in STACKED.items():
        for modules in (2, 4, 8):
            accuracy, rate = best_of_rates(run, method, rates, modules)
            yield {"learning": learning, "modules": modules, "accuracy": accuracy, "back-propagation": whole,
                   "rate": rate}  # fmt: skip


def best_of_rates(run, method, rates, modules) -> tuple[float, float]:
    """Return (held-out accuracy, rate) of so many modules at the best of these rates."""
    rate, done = at_best(run, rates, workers=modules, steps=80, evaluations=1, **WIDE, **method)
    return float(done.evaluations["accuracy"][-1]), rate


RACE = {  # with rates to try, or the method whose weights these are, bit for bit
    "back-propagation": ({"algorithm": "layer_wise"}, (0.05, 0.1, 0.2, 0.4, 0.8)),
    "pipeline": ({"algorithm": "gpipe", "chunks": 4}, "back-propagation"),
    "old errors": ({"algorithm": "ddg"}, (0.05, 0.1, 0.2, 0.4)),
    "old errors, no barrier": ({"algorithm": "ddg", "barrier": False}, "old errors"),
    "guesses": ({"algorithm": "dni"}, (0.1, 0.2, 0.4, 0.8)),
    "own loss": ({"algorithm": "greedy"}, (0.1, 0.2, 0.4, 0.8)),
    "random errors": ({"algorithm": "feedback_alignment"}, (0.2, 0.4, 0.8, 1.6)),
}

RACING = {"workers": 4, "steps": 100, "evaluations": 10, **WIDE}


@figure(
    "Who has learned most by when?",
    source="Huo et al., 2018; Jaderberg et al., 2017; Belilovsky et al., 2020; Nokland, 2016; Huang et al., 2019",
    claims={
        "after as many steps own losses and random errors end at most 1.5 times as high as true ones": lambda rows: all(
            _end(rows, m) < 1.5 * _end(rows, "back-propagation") for m in ("own loss", "random errors")
        ),
        "old errors end higher": lambda rows: _end(rows, "old errors") > _end(rows, "back-propagation"),
        "the pipeline is where back-propagation is, in under 0.7 times the time": lambda rows: (
            abs(_end(rows, "pipeline") / _end(rows, "back-propagation") - 1) < 0.01
            and _took(rows, "pipeline") < 0.7 * _took(rows, "back-propagation")
        ),
        "own losses and random errors take their steps in under 0.85 times the time of the pipeline": lambda rows: (
            max(_took(rows, "own loss"), _took(rows, "random errors")) < 0.85 * _took(rows, "pipeline")
        ),
        "each best rate has a worse one on both sides": lambda rows: all(
            min(RACE[row["method"]][1]) < row["rate"] < max(RACE[row["method"]][1])
            for row in rows
            if isinstance(RACE[row["method"]][1], tuple)
        ),
    },
    look=Look("ms", ("loss",), "method", log="y", title="loss on held-out images"),
)
def the_race(run):
    """Digits, a residual model of eight layers on four ranks, 100 steps of 128 images, messages take no time. Each
    method has the rate of the lowest training loss; the pipeline is GPipe with four micro-batches."""
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
    """Return how long all steps of a method took, ms."""
    return [row["ms"] for row in rows if row["method"] == method][-1]


CNN = {"model": "cnn", "workers": 2, "batch": 64, "steps": 200, "network": "ideal", "evaluations": 20}
ON_IMAGES = {
    "back-propagation": ({"algorithm": "layer_wise"}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "own loss": ({"algorithm": "greedy"}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "random errors": ({"algorithm": "feedback_alignment"}, (0.00625, 0.0125, 0.025, 0.05, 0.1, 0.2)),
}


@figure(
    "And if the layers are convolutions?",
    source="Belilovsky et al., ICML 2019; the numbers are ours",
    claims={
        "with random errors over 5 points are lost": lambda rows: (
            value(rows, "accuracy", method="random errors") < value(rows, "accuracy", method="back-propagation") - 0.05
        ),
        "each best rate has a worse one on both sides": lambda rows: all(
            min(ON_IMAGES[row["method"]][1]) < row["rate"] < max(ON_IMAGES[row["method"]][1]) for row in rows
        ),
        "with losses of their own fewer than 8": lambda rows: (
            value(rows, "accuracy", method="own loss") > value(rows, "accuracy", method="back-propagation") - 0.08
        ),
    },
    look=Look("method", ("accuracy",), kind="bar", title="held-out accuracy"),
)
def convolutions(run):
    """Digits, a CNN of two convolutions and two dense layers in two modules, 200 steps of 64 images; each method at
    whichever tried rate gave the lowest training loss. Accuracy and held-out loss are the median of the last five of 20
    evaluations: a single step can spoil a good model for a while."""
    for method, (values, rates) in ON_IMAGES.items():
        rate, done = at_best(run, rates, **CNN, **values)
        yield {"method": method, "accuracy": lately(done, "accuracy"), "loss": lately(done, "loss"), "rate": rate}


def lately(done, quantity) -> float:
    """Return the median of the last five evaluations."""
    return float(np.median(done.evaluations[quantity][-5:]))


@figure(
    "What must a module keep while it waits?",
    source="Huo et al., NeurIPS 2018; the bytes are counted here",
    claims={
        "with back-propagation all ranks together keep the same activations, however many they are": lambda rows: (
            max(column(rows, "activations", method="back-propagation"))
            < 1.01 * min(column(rows, "activations", method="back-propagation"))
        ),
        "with DDG they grow with the modules: eight keep more than 4 times as much": lambda rows: (
            ratio(rows, "activations", method=("DDG", "back-propagation"), modules=8) > 4
        ),
        "and so do versions of the weights": lambda rows: (
            ratio(rows, "parameters", method=("DDG", "back-propagation"), modules=8) > 4
        ),
        "features replay keeps inputs: eight modules keep less than half of what DDG does": lambda rows: (
            value(rows, "activations", method="features replay", modules=8)
            + value(rows, "inputs", method="features replay", modules=8)
            < value(rows, "activations", method="DDG", modules=8) / 2
        ),
        "greedy modules keep the activations of one mini-batch only": lambda rows: all(
            row["activations"] == value(rows, "activations", method="back-propagation", modules=row["modules"])
            for row in rows
            if row["method"] == "greedy"
        ),
    },
    look=Look("modules", ("activations", "parameters"), "method", log="xy", title="kilobytes, all ranks"),
)
def kept(run):
    """The sum of all ranks' peaks; a residual model of 32 layers, 32 images in a mini-batch.

    Module k of K, counted from 0, has K - k mini-batches in flight, so DDG keeps (K + 1) / 2 times what the others
    keep.
    """
    for method in ("back-propagation", "DDG", "features replay", "greedy"):
        for modules in (2, 4, 8):
            done = run(**{"workers": modules, "batch": 32, "steps": 2 * modules + 2, "network": "ideal",
                          "evaluations": 1, "learning_rate": 0.01, **DEEP, "depth": 30, **TIMED[method]})  # fmt: skip
            most = dict(zip(HELD, done.peaks().sum(0) / 1e3, strict=True))
            yield {"method": method, "modules": modules, "activations": float(most["activations"]),
                   "inputs": float(most["buffers"]), "parameters": float(most["parameters"])}  # fmt: skip


@figure(
    "Why does training with random errors work?",
    source="Lillicrap et al., 2016; Nokland, 2016",
    claims={
        "at first a step is within 8 degrees of a right angle to the gradient": lambda rows: all(
            abs(row["degrees"] - 90) < 8 for row in rows if row["steps"] == 0
        ),
        "from 30 steps on it turns towards the gradient, further and further": lambda rows: all(
            is_falling(column(rows, "degrees", feedback=feedback)[2:]) for feedback in ("DFA", "FA")
        ),
        "after 300 steps it is downhill, less than 80 degrees from the gradient": lambda rows: (
            max(column(rows, "degrees", steps=300)) < 80
        ),
    },
    look=Look("steps", ("degrees",), "feedback", title="angle between step and gradient, degrees"),
)
def alignment(run):
    """Digits, an MLP with two hidden layers of 64 neurons (tanh), 32 images, rate 0.1: the angle between a step of the
    hidden layers and the gradient of back-propagation for the same images, the mean of three steps."""
    model = {"model": "mlp", "hidden": "64,64", "activation": "tanh"}
    digits = workloads.find("digits")
    workload = digits.build(digits.Settings(**model), np.dtype("float64"))
    hidden = slice(0, workload.split(3)[2].offset)
    for feedback, direct in (("DFA", True), ("FA", False)):
        for steps in (0, 10, 30, 100, 300):
            w = [_weights(run, workload, n, direct, model) for n in range(steps, steps + 4)]
            angles = []
            for n in range(3):
                g = workload.gradient(w[n], workload.batch(_batch(run, workload, steps + n)))[1][hidden]
                step = (w[n] - w[n + 1])[hidden]
                angles.append(np.arccos(g @ step / np.linalg.norm(g) / np.linalg.norm(step)))
            yield {"feedback": feedback, "steps": steps, "degrees": float(np.degrees(np.mean(angles)))}


def _weights(run, workload, steps, direct, model):
    if not steps:
        return workload.start(run.seed)
    return run(algorithm="feedback_alignment", direct=direct, workers=1, batch=32, steps=steps, evaluations=1,
               learning_rate=0.1, precision="float64", network="ideal", **model).parameters  # fmt: skip


def _batch(run, workload, number):
    batches = Batches(workload.samples, 32, seed=run.seed)
    return [next(batches) for _ in range(number + 1)][-1]
