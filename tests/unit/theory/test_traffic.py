import math

import numpy as np
import pytest

from theory.traffic import best_replicas, hybrid, intensity


def test_how_much_a_layer_computes_per_byte_is_set_by_its_output_area_and_the_batch_alone():
    for kernel, channels, filters in ((1, 64, 64), (3, 64, 128), (11, 3, 96)):
        weights = kernel**2 * channels * filters
        flops = 6 * 32 * 14 * 14 * weights
        assert flops / (2 * 4 * weights) == pytest.approx(intensity(32, 14 * 14))
    assert intensity(32) == 0.75 * 32


def test_replicas_of_a_cut_layer_send_less_than_all_cut_or_all_copied():
    nodes, batch, width = 64, 1024, 4096
    assert best_replicas(nodes, batch, width) == 4
    megabytes = [hybrid(g, nodes, batch, width) / 1e6 for g in (4, 64, 1)]
    assert megabytes == pytest.approx([16.8, 134.7, 35.7], abs=0.05)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_divisor_is_a_neighbour_of_the_formula(seed):
    nodes, batch, width = (2 ** np.random.default_rng(seed).integers([2, 5, 8], [9, 14, 14])).tolist()
    divisors = [g for g in range(1, nodes + 1) if nodes % g == 0]
    best = min(divisors, key=lambda g: hybrid(g, nodes, batch, width))
    exact = best_replicas(nodes, batch, width)
    below = max((g for g in divisors if g <= exact * (1 + 1e-12)), default=1)
    above = min((g for g in divisors if g >= exact * (1 - 1e-12)), default=nodes)
    assert best in (below, above)


def test_one_replica_is_the_model_cut_and_as_many_as_workers_are_copies():
    nodes, batch, width = 16, 256, 512
    weights, activations = 2 * 4 * width * width, 2 * 4 * width * batch
    assert hybrid(1, nodes, batch, width) == activations + weights / nodes
    assert hybrid(nodes, nodes, batch, width) == weights + activations / nodes
    assert math.isclose(hybrid(1, 10**9, batch, width), activations, rel_tol=1e-6)  # however many pieces
    assert math.isclose(hybrid(10**9, 10**9, batch, width), weights, rel_tol=1e-6)
