"""The memory of a rank's model states by ZeRO stage: parameters, gradients and optimizer state.

With d parameters, N ranks, and w, g and s bytes per parameter for its weight, its gradient and its optimizer state:

    stage 0   everything is replicated      d (w + g + s)
    stage 1   optimizer state is sharded    d (w + g + s/N)           at most (w + g + s) / (w + g) times less
    stage 2   and gradients                 d (w + (g + s)/N)
    stage 3   and parameters                d (w + g + s)/N           N times less, but 1.5 times the traffic

This does not count activations, nor what is whole only for a moment: one layer's gradient from stage 2 on, and one
layer's parameters at stage 3.

Source: Rajbhandari, Rasley, Ruwase & He, SC 2020, Figure 1 and sections 5 and 7.
"""

from typing import NamedTuple

import algorithms


class Recipe(NamedTuple):
    """The memory of each parameter, in bytes."""

    weights: int
    gradients: int
    state: int  # of the optimizer, including its own copy of the weights, if it has one


RECIPES: dict[str, Recipe] = {
    "float32 SGD": Recipe(4, 4, 0),
    "float32 momentum": Recipe(4, 4, 4),
    "float32 Adam": Recipe(4, 4, 8),
    "mixed momentum": Recipe(2, 2, 8),  # half precision; the rule has float32 weights and velocity
    "mixed Adam": Recipe(2, 2, 12),  # the same, with two moments: 16 bytes
    "mixed Adam, float32 gradients": Recipe(2, 4, 12),  # 18 bytes
}


STAGES = {0: "replicated", 1: "ZeRO-1", 2: "ZeRO-2", 3: "ZeRO-3"}
METHODS = ("sync_sgd", "zero1", "zero2", "zero3")  # by stage: what each divides, it declares


def nbytes(parameters: float, ranks: int, stage: int, recipe: Recipe) -> float:
    """Return the size in bytes of the model states on each rank. Raise ValueError if there is no such stage."""
    if stage not in STAGES:
        raise ValueError(f"ZeRO has stages 0 to 3, not {stage}.")
    split = algorithms.find(METHODS[stage]).split(ranks, None)
    return sum(parameters * size / parts for size, parts in zip(recipe, split, strict=True))
