"""How long a step takes, and what a module has to keep meanwhile."""

import numpy as np

from lessons.decoupled.experiments import DEEP, TIMED
from lessons.figure import Look, column, figure, ratio, value
from tracing import HELD


def _seconds(done, steps):
    """Return the time of a step once the pipeline is full, and the times of its passes, in s.

    The latter are {kind of pass: its mean time per step on each rank, (ranks,)}.
    """
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
    """Return the time of a step of `method`, in s. `p` has the times of each module's passes."""
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
        "a step of every method takes the sum of its passes, within 5 %": lambda rows: all(
            abs(row["step"] / row["theory"] - 1) < 0.05 for row in rows
        ),
        "methods that wait for the forward pass take at least 0.4 times as long as back-propagation": lambda rows: all(
            row["step"] > 0.4 * value(rows, "step", method="back-propagation", modules=2)
            for row in rows
            if row["method"] in ("DFA", "DDG", "features replay")
        ),
        "with eight modules DDG without its barrier, which is PipeDream, is over 7 times as fast as back-propagation": (
            lambda rows: ratio(rows, "step", method=("back-propagation", "DDG, no barrier"), modules=8) > 7
        ),
        "feedback alignment from layer to layer saves no time": lambda rows: all(
            ratio(rows, "step", method=("feedback alignment", "back-propagation"), modules=modules) > 0.99
            for modules in (2, 4, 8)
        ),
    },
    look=Look("modules", ("step",), "method", theory=("theory",), log="xy", title="milliseconds of a step"),
)
def a_step(run):
    """The time of a step of a residual model of 16 layers on digits, with 256 images in a mini-batch. Messages take no
    time.

    `theory` adds up the passes. F and B are a forward and a backward pass through all modules; f, g, r and m are the
    forward pass, the backward pass, the replay and the auxiliary network of the slowest module. A step takes F + B with
    back-propagation, F + g with DDG and DFA, and F + r + g with features replay; without their barriers f + g and f + r
    + g; and f + g + m if modules learn from targets of their own. (DFA is direct feedback alignment.)
    """
    steps = 20
    for modules in (2, 4, 8):
        for method, values in TIMED.items():
            done = run(workers=modules, batch=256, network="ideal", steps=steps, evaluations=1, learning_rate=0.01,
                       **DEEP, **values)  # fmt: skip
            step, passes = _seconds(done, steps)
            yield {"method": method, "modules": modules, "step": 1e3 * step,
                   "theory": 1e3 * float(_theory(method, passes))}  # fmt: skip


@figure(
    "What must a module keep while it waits?",
    source="Huo et al., NeurIPS 2018; the bytes are counted here",
    claims={
        "with back-propagation, 2, 4 and 8 ranks together keep equally many bytes of activations": lambda rows: (
            max(column(rows, "activations", method="back-propagation"))
            < 1.01 * min(column(rows, "activations", method="back-propagation"))
        ),
        "DDG's activations grow with the number of modules: eight keep over 4 times those of back-propagation": (
            lambda rows: ratio(rows, "activations", method=("DDG", "back-propagation"), modules=8) > 4
        ),
        "with DDG eight modules also keep over 4 times the weights of back-propagation": lambda rows: (
            ratio(rows, "parameters", method=("DDG", "back-propagation"), modules=8) > 4
        ),
        "features replay keeps inputs: eight modules keep less than half of what they keep with DDG": lambda rows: (
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
    """Peak memory of a residual model of 32 layers, summed over all ranks, with 32 images in a mini-batch.

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
