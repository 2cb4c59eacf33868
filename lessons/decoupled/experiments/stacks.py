"""How accurate a model becomes if it is cut into more modules, or has convolutions as layers."""

from lessons.decoupled.experiments import WIDE, at_best, lately
from lessons.figure import Look, figure, value

FROZEN = {"algorithm": "greedy"}  # the control, with all modules but the last one frozen
STACKED = {
    "frozen": (FROZEN, (0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6)),
    "own loss": ({"algorithm": "greedy"}, (0.1, 0.2, 0.4, 0.8, 1.6)),
    "guesses with labels": ({"algorithm": "dni"}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "guesses": ({"algorithm": "dni", "labels": False}, (0.05, 0.1, 0.2, 0.4, 0.8)),
}


@figure(
    "How many modules that learn from guessed errors can be stacked?",
    source="Jaderberg et al., 2017; Belilovsky et al., ICML 2020 (DGL), whose logs on CIFAR-10 have this order",
    claims={
        "with guesses that use labels, two modules are less than 5 points below back-propagation": lambda rows: (
            value(rows, "accuracy", learning="guesses with labels", modules=2)
            > value(rows, "back-propagation", learning="guesses with labels", modules=2) - 0.05
        ),
        "each guess is trained on the next one: with labels eight modules are over 3 points below two": lambda rows: (
            value(rows, "accuracy", learning="guesses with labels", modules=8)
            < value(rows, "accuracy", learning="guesses with labels", modules=2) - 0.03
        ),
        "frozen, which trains only the last of 8 modules, is over 5 points more accurate than guesses": lambda rows: (
            value(rows, "accuracy", learning="frozen", modules=8)
            > value(rows, "accuracy", learning="guesses with labels", modules=8) + 0.05
        ),
        "with a linear last module, frozen is less than 6 points below back-propagation": lambda rows: (
            value(rows, "accuracy", learning="frozen", modules=8)
            > value(rows, "back-propagation", learning="frozen", modules=8) - 0.06
        ),
        "a linear classifier on the pixels is less than 3 points below back-propagation": lambda rows: all(
            row["pixels"] > row["back-propagation"] - 0.03 for row in rows
        ),
        "four modules are less accurate with guesses without labels than with labels": lambda rows: (
            value(rows, "accuracy", learning="guesses", modules=4)
            < value(rows, "accuracy", learning="guesses with labels", modules=4)
        ),
        "the best rate lies between other rates tried, except for guesses without labels": lambda rows: all(
            min(STACKED[row["learning"]][1]) < row["rate"] < max(STACKED[row["learning"]][1])
            for row in rows
            if row["learning"] != "guesses"
        ),
        "own losses do not accumulate errors: eight modules are less than 5 points below two": lambda rows: (
            value(rows, "accuracy", learning="own loss", modules=8)
            > value(rows, "accuracy", learning="own loss", modules=2) - 0.05
        ),
    },
    look=Look("modules", ("accuracy",), "learning", theory=("back-propagation", "pixels"), log="x"),
)
def stacked_guesses(run):
    """Held-out accuracy of a residual model of eight layers on digits, after 80 steps of 128 images.

    Each way of learning runs at the learning rate with the lowest training loss, of several a factor of two apart.
    `frozen` is the control: all modules but the last one keep their initial weights. `pixels` is a single linear layer.
    """
    whole, _ = best_of_rates(run, {"algorithm": "layer_wise"}, (0.1, 0.2, 0.4), 1)
    linear = WIDE | {"model": "mlp", "hidden": ""}
    _, pixels = at_best(run, (1.6, 3.2, 6.4, 12.8), algorithm="sgd", workers=1, steps=80, evaluations=1, **linear)
    for learning, (method, rates) in STACKED.items():
        for modules in (2, 4, 8):
            accuracy, rate = best_of_rates(run, method, rates, modules)
            yield {"learning": learning, "modules": modules, "accuracy": accuracy, "back-propagation": whole,
                   "pixels": float(pixels.evaluations["accuracy"][-1]), "rate": rate}  # fmt: skip


def best_of_rates(run, method, rates, modules) -> tuple[float, float]:
    """Return (held-out accuracy, learning rate) for this number of modules at the best of these rates."""
    if method is FROZEN:
        method = method | {"frozen": modules - 1}
    rate, done = at_best(run, rates, workers=modules, steps=80, evaluations=1, **WIDE, **method)
    return float(done.evaluations["accuracy"][-1]), rate


CNN = {"model": "cnn", "workers": 2, "batch": 64, "steps": 200, "network": "ideal", "evaluations": 20}
ON_IMAGES = {
    "frozen": ({"algorithm": "greedy", "frozen": 1}, (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)),
    "back-propagation": ({"algorithm": "layer_wise"}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "own loss": ({"algorithm": "greedy"}, (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)),
    "random errors": ({"algorithm": "feedback_alignment"}, (0.00625, 0.0125, 0.025, 0.05, 0.1, 0.2)),
}


@figure(
    "What if the layers are convolutions?",
    source="Belilovsky et al., ICML 2019; the numbers are ours",
    claims={
        "random errors are over 5 points less accurate than back-propagation": lambda rows: (
            value(rows, "accuracy", method="random errors") < value(rows, "accuracy", method="back-propagation") - 0.05
        ),
        "random errors gain next to nothing: less than 5 points over frozen convolutions": lambda rows: (
            value(rows, "accuracy", method="random errors") < value(rows, "accuracy", method="frozen") + 0.05
        ),
        "with losses of their own, modules are over 4 points more accurate than frozen ones": lambda rows: (
            value(rows, "accuracy", method="own loss") > value(rows, "accuracy", method="frozen") + 0.04
        ),
        "each method's best rate lies between other rates that were tried": lambda rows: all(
            min(ON_IMAGES[row["method"]][1]) < row["rate"] < max(ON_IMAGES[row["method"]][1]) for row in rows
        ),
        "with losses of their own, modules are at most 8 points less accurate than back-propagation": lambda rows: (
            value(rows, "accuracy", method="own loss") > value(rows, "accuracy", method="back-propagation") - 0.08
        ),
    },
    look=Look("method", ("accuracy",), kind="bar", title="held-out accuracy"),
)
def convolutions(run):
    """A CNN of two convolutions and two dense layers, in two modules, learns digits in 200 steps of 64 images.

    Each method runs at the learning rate, of those tried, with the lowest training loss. Accuracy and held-out loss are
    the median of the last five of 20 evaluations: a single step can spoil a good model for a while. With `frozen`, the
    convolutions are not trained.
    """
    for method, (values, rates) in ON_IMAGES.items():
        rate, done = at_best(run, rates, **CNN, **values)
        yield {"method": method, "accuracy": lately(done, "accuracy"), "loss": lately(done, "loss"), "rate": rate}
