"""Answers to the quiz on the distributed update, computed by the simulator or by closed forms."""

import numpy as np

from algorithms.synchronous.muon import divide
from theory.zero_memory import RECIPES, nbytes


def serial(run, share: int, ranks: int) -> float:
    """Return the speed-up of a step if everything but the update is divided among `ranks`.

    The update takes `share` percent of the step on one rank.
    """
    return 1 / (share / 100 + (1 - share / 100) / ranks)


def wire(run, ranks: int, gathered: str) -> str:
    """Return how the bytes sent change if the update is sharded.

    The new weights are gathered, with or without moments. The answer is "same", "half more" or "twice".
    """
    whole, sharded = (
        run(
            algorithm=name, update="adam", learning_rate=0.01, workers=ranks, steps=5, evaluations=1, collective="ring"
        ).summary["bytes"]
        for name in ("sync_sgd", "zero1")
    )
    factors = {"same": 1, "half more": 1.5, "twice": 2}
    moments = 2 if "both of" in gathered else 1 if "one of" in gathered else 0
    return min(factors, key=lambda key: abs(sharded / whole + moments / 2 - factors[key]))


def less(run, stored: str, ranks: int) -> float:
    """Return the memory of an unsharded rank as a multiple of the memory of a rank of ZeRO-1. Activations are not
    counted.
    """
    recipe = RECIPES["float32 Adam" if stored.startswith("single") else "mixed Adam"]
    return nbytes(1, ranks, 0, recipe) / nbytes(1, ranks, 1, recipe)


def held(run, millions: int, ranks: int) -> float:
    """Return the size of Adam's moments on one of the `ranks` ranks that share them, in MB. The model has `millions`
    million parameters.
    """
    return RECIPES["float32 Adam"].state * millions / ranks


def rules(run, rule: str) -> str:
    """Return how the model changes if an update rule is applied to two shards separately instead of to the whole model.

    The border of the shards cuts through a layer. The answer is "same", "rounding" if results are equal up to rounding,
    or "other".
    """
    dice = np.random.default_rng(run.seed)
    w, g = dice.normal(size=(2, 12))
    step = {"A": adam, "m": momentum, "S": clipped, "L": lars, "M": muon}[rule[0]]
    if "summed over the ranks" in rule:  # in a different order than on one rank
        return "rounding"
    parts = np.concatenate([step(w[part], g[part], layers) for part, layers in SHARDS])
    return "same" if np.array_equal(parts, step(w, g, LAYERS)) else "other"


LAYERS = (slice(0, 8), slice(8, 12))
SHARDS = (slice(0, 6), (slice(0, 6),)), (slice(6, 12), (slice(0, 2), slice(2, 6)))
"""For each shard: its position, and the positions of the layers within it."""


def adam(w, g, layers):
    """Return the weights after two steps of Adam with the same gradient."""
    m, v = 0.1 * g, 0.001 * g**2
    for t in (1, 2):
        w = w - 0.01 * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
    return w


def momentum(w, g, layers):
    """Return the weights after two steps of SGD with momentum, with the same gradient."""
    return w - 0.01 * g - 0.01 * (0.9 * g + g)


def clipped(w, g, layers):
    """Return the weights after one step of SGD, with the gradient clipped to norm 1."""
    return w - 0.01 * g / max(1.0, float(np.linalg.norm(g)))


def lars(w, g, layers):
    """Return the weights after one step along the gradient.

    In each layer, the norm of the step is a fixed fraction of the norm of the weights.
    """
    return np.concatenate([w[i] - 0.01 * np.linalg.norm(w[i]) / np.linalg.norm(g[i]) * g[i] for i in layers])


def muon(w, g, layers):
    """Return the weights after one step of Muon without momentum.

    In each layer, the step is the gradient, reshaped to a matrix of two rows, with all its singular values set to one.
    """
    steps = [np.linalg.svd(g[i].reshape(2, -1), full_matrices=False) for i in layers]
    return np.concatenate([w[i] - 0.01 * (u @ v).ravel() for i, (u, _, v) in zip(layers, steps, strict=True)])


def mean_of_means(run, few: int, many: int) -> float:
    """Return the weight of a token of the shorter mini-batch in a mean of means, as a multiple of the weight of a token
    of the longer one.
    """
    return (1 / few) / (1 / many)


def gain(run, gradient: int, exchange: int, accumulate: int) -> float:
    """Return the speed-up of processing mini-batches if `accumulate` of them share one exchange."""
    return (gradient + exchange) / (gradient + exchange / accumulate)


def loss(run, accumulate: int, after: str) -> str:
    """Compare the held-out loss after accumulating gradients with the loss after an update for every mini-batch at
    learning rate 0.1.

    Return "lower", "alike" or "higher".
    """
    few = 64
    others = accumulate, few if "mini" in after else few * accumulate, 0.2 if "twice" in after else 0.1
    ends = [
        run(
            algorithm="accumulation", accumulate=one, learning_rate=rate, workers=8, batch=8, steps=steps, evaluations=1
        ).summary["held_out_loss"]
        for one, steps, rate in ((1, few, 0.1), others)
    ]
    ratio = ends[1] / ends[0]
    return "higher" if ratio > 1.33 else "lower" if ratio < 0.75 else "alike"


def sent(run, accumulate: int, stage: str) -> float:
    """Return the traffic of one update under `stage`, as a multiple of ZeRO-1's, which is 2 (N - 1) d numbers."""
    sums, gathers = (accumulate, 1) if stage.startswith("ZeRO-2") else (accumulate, 2 * accumulate)
    return (sums + gathers) / 2


def owners(run, matrices: int, ranks: int) -> float:
    """Return the speed-up of an update of equal matrices by `ranks` owners instead of one.

    All wait for the owner of the most matrices.
    """
    equal = [(slice(4 * place, 4 * place + 4), (2, 2)) for place in range(matrices)]
    return matrices / max(map(len, divide(equal, ranks, all_matrices=True)[0]))
