"""Answers to the quiz on what a step remembers, computed by the engine or by closed forms."""

import numpy as np

from lessons.step_memory.experiments import MODEL, peaks
from theory.recomputation import AGAIN, ChainLayer, best_plan, even_plan, peak_bytes, repeated_seconds
from theory.zero_memory import RECIPES
from workloads.loss_scale import LossScale
from workloads.mixed_precision import FORMATS, ShortWeights

STEPS = 256
BYTES = {
    "single precision": sum(RECIPES["float32 Adam"]),
    "a copy of the weights is kept in single precision, and gradients have 16 bits": sum(RECIPES["mixed Adam"]),
    "a copy of the weights is kept in single precision, and gradients are added up in single precision": sum(
        RECIPES["mixed Adam, float32 gradients"]
    ),
    "no copy of the weights is kept in single precision, and gradients have 16 bits": 2 + 2 + 8,
}


def batch(run, sequences: int) -> float:
    """Return how many GB a model of 100 million weights holds in a step. Each of its `sequences` sequences
    takes 40 MB.
    """
    return (16 * 100e6 + sequences * 40e6) / 1e9


def longer(run, what: str, batch: str) -> str:
    """Return by what factor the memory of these activations grows if the context is four times as long: "same", "four"
    or "sixteen".
    """
    few, many = 32, 128
    held = {}
    for context in (few, many):
        samples = 8 if batch == "as many sequences" else 8 * few // context
        whole = peaks(run(**{**MODEL, "depth": 2, "context": context, "batch": samples}))["activations"]
        scores = 4 * MODEL["heads"] * context**2 * samples
        held[context] = scores if what == "the attention weights" else whole - scores
    times = held[many] / held[few]
    return min(("same", 1), ("four", 4), ("sixteen", 16), key=lambda one: abs(np.log(times / one[1])))[0]


def best_segments(run, layers: int, kept: int) -> float:
    """Return the number of segments with which a step holds the least memory, by the formula."""
    chain = [ChainLayer(1, kept, 1.0)] * layers
    held = {k: k + kept * layers / k for k in range(1, layers + 1)}
    least = min(held, key=held.__getitem__)
    assert peak_bytes(chain, even_plan(layers, least)) <= 1.2 * held[least]
    return least


def again_time(run, segments: int) -> float:
    """Return the percentage by which recomputation in this many segments lengthens a step."""
    chain = [ChainLayer(1, 1, 1.0)] * (4 * segments)
    return 100 * repeated_seconds(chain, even_plan(len(chain), segments)) / (3 * len(chain))


def which_again(run, limit: int) -> str:
    """Return which of the layers A, B and C the best plan recomputes, e.g. "AC", or "none"."""
    plan = best_plan([ChainLayer(1, 30, 6), ChainLayer(1, 20, 5), ChainLayer(1, 12, 2)], limit)
    assert plan is not None and all(count == 1 for _, count in plan)
    return "".join(name for name, (how, _) in zip("ABC", plan, strict=True) if how == AGAIN) or "none"


def states(run, how: str) -> str:
    """Return whether the states of a weight take "less", "more" or the "same" memory as in single precision."""
    before, after = BYTES["single precision"], BYTES[how]
    return "less" if after < before else "more" if after > before else "same"


def small_update(run, update: float, how: str) -> float:
    """Return the mean of 4,096 weights that begin at 1, after `update` has been added STEPS times.

    Each result is rounded to bf16, in the way that `how` says.
    """
    assert FORMATS["bf16"][0] == 8
    weights = np.ones(4096, np.float32)
    stored = ShortWeights("bf16", how.startswith("up or down at random"), run.seed)
    for step in range(STEPS):
        weights += np.float32(update)
        stored.store(weights, step)
    return float(weights.mean())


def least_scale(run, digits: int) -> float:
    """Return the smallest power of two that scales ten to the minus `digits` up to a normal number of fp16."""
    return next(2.0**n for n in range(60) if 2.0**n * 10.0**-digits >= np.finfo(np.float16).smallest_normal)


def skipped(run, window: int) -> float:
    """Return how many of 100 steps are skipped if every step with a scale above 2^18 overflows."""
    scale = LossScale(None, window)
    for _ in range(100):
        scale.update(scale.value <= 2**18)
    return scale.skipped
