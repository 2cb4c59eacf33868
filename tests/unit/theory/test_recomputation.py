"""What a chain of layers holds if activations are recomputed, and the cheapest plan, against the engine and trials."""

import itertools
import random

import numpy as np
import pytest

from kernels.arrays import shares
from theory.recomputation import (
    AGAIN,
    KEEP,
    ChainLayer,
    best_plan,
    even_plan,
    peak_bytes,
    repeated_seconds,
)
from workloads import text


def test_the_peak_of_every_number_of_segments_is_the_engines():
    work = text.build(text.Settings(context=8, width=8, heads=2, depth=14))
    model = work.model.with_recomputation()
    w, (x, target) = model.start(0), work.batch(np.arange(3))
    chain, y = [], x
    for layer, parts in zip(model.layers, model.cut(w), strict=True):
        size = y.nbytes
        y, saved = layer.forward(parts, y)
        chain.append(ChainLayer(size, sum(model.extents(saved).values()), 1.0))
    for k in range(1, 17):
        plan = even_plan(16, k)
        at = [0, *itertools.accumulate(count for _, count in plan)]
        model.segments = [slice(a, b) for a, b in itertools.pairwise(at)]
        model.activations.clear()
        model.gradient(w, x, target)
        last = chain[at[-2]].input  # the engine holds the input of the segment that it keeps, too
        assert 0 <= model.activations[3] - peak_bytes(chain, plan) <= last, k
    assert shares(16, 4) == [slice(a, a + 4) for a in range(0, 16, 4)], "the engine's own segments are even"


def test_equal_layers_hold_least_with_as_many_segments_as_the_square_root_says():
    layers = [ChainLayer(1, 1, 1.0)] * 64
    peaks = {k: peak_bytes(layers, even_plan(64, k)) for k in range(1, 65)}
    assert min(peaks.values()) == peaks[8] == 15 and peaks[1] == 64
    assert repeated_seconds(layers, even_plan(64, 8)) == 56
    layers = [ChainLayer(1, 9, 1.0)] * 64
    assert min(range(1, 65), key=lambda k: peak_bytes(layers, even_plan(64, k))) == pytest.approx(24, abs=3)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_plan_is_the_best_of_all_plans(seed):
    dice = random.Random(seed)
    layers = [ChainLayer(dice.randint(1, 9), dice.randint(1, 9), dice.randint(1, 9)) for _ in range(6)]
    plans = [
        [*zip(hows, sizes, strict=True)]
        for parts in range(1, 7)
        for sizes in itertools.product(range(1, 7), repeat=parts)
        if sum(sizes) == 6
        for hows in itertools.product((KEEP, AGAIN), repeat=parts)
    ]
    for limit in range(5, 40, 2):
        fit = [plan for plan in plans if peak_bytes(layers, plan) <= limit]
        found = best_plan(layers, limit)
        if not fit:
            assert found is None
            continue
        assert sum(count for _, count in found) == 6 and peak_bytes(layers, found) <= limit
        assert repeated_seconds(layers, found) == min(repeated_seconds(layers, plan) for plan in fit)
