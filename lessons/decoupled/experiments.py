"""Decoupled learning: modules that do not wait for their errors, what they learn from instead, and what that costs."""

import numpy as np

import workloads
from lessons.figure import Look, column, figure, value
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
            7 * value(rows, "step", method="DDG, no barrier", modules=8)
            < value(rows, "step", method="back-propagation", modules=8)
        ),
        "feedback alignment from layer to layer saves no time": lambda rows: all(
            value(rows, "step", method="feedback alignment", modules=modules)
            > 0.99 * value(rows, "step", method="back-propagation", modules=modules)
            for modules in (2, 4, 8)
        ),
    },
    look=Look("modules", ("step",), "method", theory=("theory",), log="xy", title="milliseconds of a step"),
)
def a_step(run):
    """Digits, a residual model of 16 layers, 256 images in a mini-batch; messages take no time.

    `theory` adds up the passes. T_F and T_B are a forward and a backward pass through all modules; f, g, r and m are
    the forward pass, the backward pass, the replay and the auxiliary network of the slowest module. A step takes T_F +
    T_B with back-propagation, T_F + g with DDG and DFA, and T_F + r + g with features replay; without their barriers f
    + g and f + r + g; and f + g + m if modules learn from what they have.
    """
    rows, steps = [], 20
    for modules in (2, 4, 8):
        for method, values in TIMED.items():
            done = run(workers=modules, batch=256, network="ideal", steps=steps, evaluations=1, learning_rate=0.01,
                       **DEEP, **values)  # fmt: skip
            step, passes = _seconds(done, steps)
            rows.append({"method": method, "modules": modules, "step": 1e3 * step,
                         "theory": 1e3 * float(_theory(method, passes))})  # fmt: skip
    return rows


RACE = {
    "back-propagation": {"algorithm": "layer_wise"},
    "DDG": {"algorithm": "ddg"},
    "features replay": {"algorithm": "features_replay"},
    "DNI with labels": {"algorithm": "dni"},
    "DNI without": {"algorithm": "dni", "labels": False},
    "greedy": {"algorithm": "greedy"},
    "DFA": {"algorithm": "feedback_alignment", "learning_rate": 0.1},
}
EIGHT = {"model": "residual", "depth": 6, "width": 64, "activation": "tanh"}  # eight layers


@figure(
    "How far does each method get in the same number of steps, and in the same time?",
    source="Huo et al., 2018; Jaderberg et al., 2017; Belilovsky et al., 2020; Nokland, 2016",
    claims={
        "after 300 steps back-propagation has the lowest loss": lambda rows: (
            value(rows, "loss", method="back-propagation", steps=300) == min(column(rows, "loss", steps=300))
        ),
        "old errors cost least: DDG and features replay are within a tenth": lambda rows: all(
            value(rows, "loss", method=method, steps=300)
            < 1.1 * value(rows, "loss", method="back-propagation", steps=300)
            for method in ("DDG", "features replay")
        ),
        "guessed errors, local losses and random errors cost more, but less than twice the loss": lambda rows: all(
            1.02
            < value(rows, "loss", method=m, steps=300) / value(rows, "loss", method="back-propagation", steps=300)
            < 2
            for m in ("DNI with labels", "greedy", "DFA")
        ),
        "guesses without labels never get below a loss of 0.8": lambda rows: (
            min(column(rows, "loss", method="DNI without")) > 0.8
        ),
        "after half of back-propagation's time all but these are ahead of it": lambda rows: all(
            _after(rows, method, _half(rows)) < _after(rows, "back-propagation", _half(rows))
            for method in RACE
            if method not in ("back-propagation", "DNI without")
        ),
    },
    look=Look("ms", ("loss",), "method", log="y", title="loss on held-out images"),
)
def the_race(run):
    """Digits, a residual model of eight layers in four modules, 32 images in a mini-batch, rate 0.05 (DFA 0.1), 300
    steps; messages take no time.

    With so few images the overhead of kernels matters, which is the same for all. Without their barriers DDG and
    features replay would take little more than half the time, with the same weights.
    """
    rows = []
    for method, values in RACE.items():
        done = run(**{"workers": 4, "batch": 32, "steps": 300, "learning_rate": 0.05, "network": "ideal",
                      "evaluations": 12, **EIGHT, **values})  # fmt: skip
        tried = done.evaluations
        for step, seconds, loss in zip(tried["step"], tried["seconds"], tried["loss"], strict=True):
            rows.append({"method": method, "steps": round(float(step)), "ms": 1e3 * float(seconds),
                         "loss": float(loss)})  # fmt: skip
    return rows


def _after(rows, method, ms):
    """The loss of a method after so many milliseconds, or at its end."""
    return [row["loss"] for row in rows if row["method"] == method and row["ms"] <= ms][-1]


def _half(rows):
    return value(rows, "ms", method="back-propagation", steps=300) / 2


OLD = {
    "DDG": {"algorithm": "ddg"},
    "DDG, newest weights": {"algorithm": "ddg", "weights": "none"},
    "features replay": {"algorithm": "features_replay"},
}


@figure(
    "What do old errors cost?",
    source="Huo et al., ICML 2018 and NeurIPS 2018; the numbers are ours",
    claims={
        "the more modules, the older the errors and the higher the loss": lambda rows: all(
            (np.diff(column(rows, "loss", method=method)) > 0).all() for method in OLD
        ),
        "two modules raise the loss by less than 3 percent, eight by more than two thirds": lambda rows: all(
            row["loss"] < 1.03 * row["one module"] if row["modules"] == 2 else row["loss"] > 5 / 3 * row["one module"]
            for row in rows
            if row["modules"] != 4
        ),
        "with two and four modules features replay, whose weights are of one version, ends below DDG": lambda rows: all(
            value(rows, "loss", method="features replay", modules=modules)
            < value(rows, "loss", method="DDG", modules=modules)
            for modules in (2, 4)
        ),
        "on a model this smooth, backward passes with newer weights do no harm there": lambda rows: all(
            value(rows, "loss", method="DDG, newest weights", modules=modules)
            < value(rows, "loss", method="DDG", modules=modules)
            for modules in (2, 4)
        ),
    },
    look=Look("modules", ("loss",), "method", theory=("one module",), log="xy", title="training loss"),
)
def old_errors(run):
    """Digits, a residual model of 16 layers, momentum 0.9, rate 0.003: the mean loss of mini-batches 150 to 200.

    The first of K modules learns from errors that are K - 1 updates old; with momentum 0.9, eight modules are too many.
    "DDG, newest weights" is what the authors' code does.
    """
    rows, values = [], {"batch": 32, "network": "ideal", "evaluations": 1, "steps": 200, **DEEP}
    values |= {"update": "momentum", "momentum": 0.9, "learning_rate": 0.003}

    def loss(**more):
        return float(run(**values, **more).losses["loss"][-50:].mean())

    one = loss(algorithm="ddg", workers=1)
    for method, more in OLD.items():
        for modules in (2, 4, 8):
            rows.append({"method": method, "modules": modules, "loss": loss(workers=modules, **more),
                         "one module": one})  # fmt: skip
    return rows


@figure(
    "How many guesses can be stacked on each other?",
    source="Jaderberg et al., 2017; the order is that of the logs of Belilovsky et al. (DGL) on CIFAR-10",
    claims={
        "with labels, two modules are within 3 points of back-propagation": lambda rows: (
            value(rows, "accuracy", learning="DNI with labels", modules=2)
            > value(rows, "back-propagation", learning="DNI with labels", modules=2) - 0.03
        ),
        "without labels no number of modules is": lambda rows: all(
            row["accuracy"] < row["back-propagation"] - 0.03 for row in rows if row["learning"] == "DNI without"
        ),
        "each guess is trained on the next one, so eight modules are over 3 points below two": lambda rows: all(
            value(rows, "accuracy", learning=learning, modules=8)
            < value(rows, "accuracy", learning=learning, modules=2) - 0.03
            for learning in ("DNI with labels", "DNI without")
        ),
        "local losses do not stack: eight modules are less than 3 points below two": lambda rows: (
            value(rows, "accuracy", learning="greedy", modules=8)
            > value(rows, "accuracy", learning="greedy", modules=2) - 0.03
        ),
    },
    look=Look("modules", ("accuracy",), "learning", theory=("back-propagation",), log="x"),
)
def stacked_guesses(run):
    """Digits, a residual model of eight layers, 200 steps of 32 images, rate 0.1: held-out accuracy.

    `theirs` is the best accuracy in the logs of DGL's authors, a CNN on CIFAR-10, where back-propagation has 85.7
    percent.
    """
    values = {"batch": 32, "network": "ideal", "evaluations": 1, "steps": 200, "learning_rate": 0.1, **EIGHT}
    whole = run(**values, algorithm="layer_wise", workers=1).evaluations["accuracy"][-1]
    rows = []
    for learning, theirs in (("DNI with labels", 0.842), ("DNI without", 0.652), ("greedy", 0.856)):
        for modules in (2, 4, 8):
            done = run(**values, workers=modules, **RACE[learning])
            rows.append({"learning": learning, "modules": modules, "accuracy": float(done.evaluations["accuracy"][-1]),
                         "back-propagation": float(whole), "theirs": theirs})  # fmt: skip
    return rows


@figure(
    "What must a module keep while it waits?",
    source="Huo et al., NeurIPS 2018; the bytes are counted here",
    claims={
        "with back-propagation all ranks together keep the same activations, however many they are": lambda rows: (
            max(column(rows, "activations", method="back-propagation"))
            < 1.01 * min(column(rows, "activations", method="back-propagation"))
        ),
        "with DDG they grow with the modules: eight keep more than 4 times as much": lambda rows: (
            value(rows, "activations", method="DDG", modules=8)
            > 4 * value(rows, "activations", method="back-propagation", modules=8)
        ),
        "and so do versions of the weights": lambda rows: (
            value(rows, "parameters", method="DDG", modules=8)
            > 4 * value(rows, "parameters", method="back-propagation", modules=8)
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

    Module k of K has K - k + 1 mini-batches in flight, so DDG keeps K (K + 1) / 2 shares of the model's activations
    where back-propagation keeps K.
    """
    rows = []
    for method in ("back-propagation", "DDG", "features replay", "greedy"):
        for modules in (2, 4, 8):
            done = run(**{"workers": modules, "batch": 32, "steps": 2 * modules + 2, "network": "ideal",
                          "evaluations": 1, "learning_rate": 0.01, **DEEP, "depth": 30, **TIMED[method]})  # fmt: skip
            most = dict(zip(HELD, done.peaks().sum(0) / 1e3, strict=True))
            rows.append({"method": method, "modules": modules, "activations": float(most["activations"]),
                         "inputs": float(most["buffers"]), "parameters": float(most["parameters"])})  # fmt: skip
    return rows


@figure(
    "Why does training with random errors work?",
    source="Lillicrap et al., 2016; Nokland, 2016",
    claims={
        "at first a step is within 5 degrees of a right angle to the gradient": lambda rows: all(
            abs(row["degrees"] - 90) < 5 for row in rows if row["steps"] == 0
        ),
        "from 30 steps on it turns towards the gradient, further and further": lambda rows: all(
            (np.diff(column(rows, "degrees", feedback=feedback)[2:]) < 0).all() for feedback in ("DFA", "FA")
        ),
        "after 300 steps it is downhill, less than 70 degrees from the gradient": lambda rows: (
            max(column(rows, "degrees", steps=300)) < 70
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
    rows = []
    for feedback, direct in (("DFA", True), ("FA", False)):
        for steps in (0, 10, 30, 100, 300):
            w = [_weights(run, workload, n, direct, model) for n in range(steps, steps + 4)]
            angles = []
            for n in range(3):
                g = workload.gradient(w[n], workload.batch(_batch(run, workload, steps + n)))[1][hidden]
                step = (w[n] - w[n + 1])[hidden]
                angles.append(np.arccos(g @ step / np.linalg.norm(g) / np.linalg.norm(step)))
            rows.append({"feedback": feedback, "steps": steps, "degrees": float(np.degrees(np.mean(angles)))})
    return rows


def _weights(run, workload, steps, direct, model):
    """The weights after so many steps."""
    if not steps:
        return workload.start(run.seed)
    return run(algorithm="feedback_alignment", direct=direct, workers=1, batch=32, steps=steps, evaluations=1,
               learning_rate=0.1, precision="float64", network="ideal", **model).parameters  # fmt: skip


def _batch(run, workload, number):
    """The indices of the images of that mini-batch."""
    batches = Batches(workload.samples, 32, seed=run.seed)
    return [next(batches) for _ in range(number + 1)][-1]
