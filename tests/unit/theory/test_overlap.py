"""Timelines of layer profiles: the published figures and the bounds."""

import math
from itertools import pairwise

import numpy as np
import pytest

from theory.overlap import (
    Cost,
    StepCosts,
    delayed_update,
    fill_buckets,
    forward_overlap,
    merge_buckets,
    no_overlap,
    prefetching,
    steps,
    wait_free,
)

EACH = Cost(0.0, 1.0)  # sizes are seconds
PARAMETERS = 34_944, 307_456, 885_120, 663_936, 442_624, 37_752_832, 16_781_312, 4_097_000
FORWARD = [0.12] * 5 + [0.06, 0.02, 0.02]
ALEXNET = StepCosts(FORWARD, [2 * f for f in FORWARD], [2.0 * n / sum(PARAMETERS) for n in PARAMETERS], EACH)
EQUAL = StepCosts([0.02] * 50, [0.04] * 50, [0.06] * 50, EACH)


def draw(seed, line, update):
    """A profile of up to nine layers, drawn at random."""
    generator = np.random.default_rng(seed)
    layers = int(generator.integers(1, 10))
    forward, backward, sizes = generator.exponential(1.0, (3, layers)) * [
        [1.0],
        [2.0],
        [10 ** generator.uniform(-1, 1)],
    ]
    return StepCosts(forward.tolist(), backward.tolist(), sizes.tolist(), line, update=Cost(0.0, update))


def drawn(line=EACH, update=0.0):
    """Forty of them."""
    return (draw(seed, line, update) for seed in range(40))


# published figures


def test_alexnets_large_last_layers_hide_behind_the_next_forward_only_if_the_first_layers_go_first():
    assert sum(PARAMETERS[5:]) / sum(PARAMETERS) == pytest.approx(0.96, abs=0.005)
    times = [
        no_overlap(ALEXNET),
        wait_free(ALEXNET),
        forward_overlap(ALEXNET, urgent=False, most=0.001),
        forward_overlap(ALEXNET, most=0.001),
        delayed_update(ALEXNET),
    ]
    assert [round(t, 2) for t in times] == [4.10, 2.74, 2.74, 2.10, 2.10]


def test_fifty_equal_layers_with_as_much_to_say_as_to_compute():
    times = [
        no_overlap(EQUAL),
        wait_free(EQUAL),
        forward_overlap(EQUAL, urgent=False),
        forward_overlap(EQUAL, most=0.03),
        delayed_update(EQUAL),
    ]
    assert [round(t, 2) for t in times] == [6.00, 4.04, 4.04, 3.09, 3.00]


# the order of the methods, and their bounds


def test_without_latency_more_overlap_is_never_slower():
    for p in drawn(update=0.1):
        times = [
            delayed_update(p),
            forward_overlap(p, most=sum(p.sizes) / 50),
            forward_overlap(p, urgent=False),
            wait_free(p),
            no_overlap(p),
        ]
        assert all(a <= b * (1 + 1e-12) for a, b in pairwise(times))


def test_with_latency_many_small_layers_turn_the_order_round():
    p = StepCosts([0.02] * 50, [0.04] * 50, [0.001] * 50, Cost(0.1, 1.0))
    assert wait_free(p) > 1.8 * no_overlap(p)
    assert forward_overlap(p) > 1.5 * no_overlap(p)
    assert delayed_update(p) > 1.5 * no_overlap(p)
    assert wait_free(p, fill_buckets(p, 0.0249)) < no_overlap(p)  # two buckets


def test_wait_free_lies_between_its_bounds():
    for p in drawn(Cost(0.1, 1.0)):
        first, tf, tb = p.line(p.sizes[0]), sum(p.forward), sum(p.backward)
        low = tf + max(tb + first, p.backward[-1] + p.communicate)
        assert low <= wait_free(p) * (1 + 1e-12) <= (p.compute + p.communicate) * (1 + 1e-12)


@pytest.mark.parametrize("most", [math.inf, 0.3])
def test_urgent_first_is_never_later_and_never_faster_than_computing_or_communicating(most):
    for p in drawn(Cost(0.05, 1.0), update=0.1):
        urgent, fifo = (forward_overlap(p, urgent=u, most=most) for u in (True, False))
        assert urgent <= fifo * (1 + 1e-12)
        assert urgent * (1 + 1e-12) >= max(p.compute, p.communicate)
        if most == math.inf:
            first = p.line(p.sizes[0]) + sum(map(p.update, p.sizes))
            assert urgent * (1 + 1e-12) >= p.compute + first  # the first layer's sum has nothing to hide behind


def test_first_come_first_served_gains_nothing_from_the_next_forward():
    for p in drawn(Cost(0.1, 1.0)):
        assert forward_overlap(p, urgent=False) == pytest.approx(wait_free(p), rel=1e-12)


def test_one_layer_leaves_nothing_to_order():
    p = StepCosts([1.0], [2.0], [4.0], Cost(0.5, 1.0), Cost(0.25))
    assert forward_overlap(p) == forward_overlap(p, urgent=False) == wait_free(p) == no_overlap(p) == 7.75


@pytest.mark.parametrize("delay", [1, 2, 3])
def test_any_delay_takes_the_longer_of_computing_and_communicating(delay):
    for p in drawn(Cost(0.1, 1.0), update=0.1):
        begins = steps(p, 60, delay=delay)
        assert begins[-1] - begins[-31] == pytest.approx(30 * delayed_update(p), rel=1e-9)


def test_delay_at_most_halves_a_step():
    for p in drawn(Cost(0.1, 1.0)):
        assert no_overlap(p) <= 2 * delayed_update(p) * (1 + 1e-12)


@pytest.mark.parametrize("ratio", [0.1, 0.7, 1.0])
def test_what_delay_gains_is_the_smaller_over_the_larger(ratio):
    sizes = [3.0 * ratio / 50] * 50
    for p in (StepCosts(EQUAL.forward, EQUAL.backward, sizes, EACH), StepCosts(sizes, sizes, [0.12] * 50, EACH)):
        smaller, larger = sorted((p.compute, p.communicate))
        assert no_overlap(p) / delayed_update(p) == pytest.approx(1 + smaller / larger)


# sharded parameters


def test_of_equal_layers_gathered_ahead_only_the_first_gather_of_each_pass_shows():
    p = StepCosts([2.0] * 9, [4.0] * 9, [1.5] * 9, EACH, update=Cost(0.0, 0.1))
    add = Cost(0.0, 0.2)
    summed = 9 * (1.5 + 0.3)
    assert prefetching(p, 0, add) == pytest.approx(p.compute + 2 * p.communicate + summed + 1.35)
    for ahead in (1, 2):
        assert prefetching(p, ahead, add) == pytest.approx(p.compute + 2 * 1.5 + summed + 1.35)


def test_gathers_too_far_ahead_delay_the_reduce_scatters():
    p = StepCosts([2.0] * 9, [4.0] * 9, [1.5] * 9, EACH)
    near, far, all_at_once = (prefetching(p, ahead) for ahead in (2, 5, 9))
    assert near < far < all_at_once


def test_slow_gathers_hide_what_is_computed_meanwhile():
    p = StepCosts([2.0] * 9, [0.0] * 9, [5.0] * 9, EACH)
    assert prefetching(p, 1) == pytest.approx(2.0 + 3 * p.communicate)


def test_gathering_when_needed_overlaps_nothing():
    for p in drawn(Cost(0.1, 1.0), update=0.1):
        alone = p.compute + 3 * p.communicate + 0.1 * sum(p.sizes)
        assert prefetching(p, 0) == pytest.approx(alone)
        assert all(prefetching(p, ahead) <= alone * (1 + 1e-12) for ahead in (1, 2, 3))


# buckets


def test_buckets_hold_every_layer_once_and_the_last_layers_first():
    for p in drawn(Cost(0.3, 1.0)):
        for buckets in (fill_buckets(p, 0), fill_buckets(p, 1.0), fill_buckets(p, math.inf), merge_buckets(p)):
            assert [layer for bucket in reversed(buckets) for layer in bucket] == list(range(p.layers))
            assert sum(map(p.size, buckets)) == pytest.approx(sum(p.sizes))


def test_one_bucket_is_no_overlap_and_no_bucket_is_layer_by_layer():
    for p in drawn(Cost(0.3, 1.0), update=0.1):
        assert wait_free(p, fill_buckets(p, math.inf)) == pytest.approx(no_overlap(p), rel=1e-12)
        assert wait_free(p, fill_buckets(p, 0)) == wait_free(p) and len(fill_buckets(p, 0)) == p.layers


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 2.0])
def test_merging_is_never_slower_than_layer_by_layer_or_all_at_once(alpha):
    for p in drawn(Cost(alpha, 1.0)):
        assert wait_free(p, merge_buckets(p)) <= min(wait_free(p), no_overlap(p)) * (1 + 1e-12)


def test_between_too_many_starts_and_too_late_a_start_lies_the_best_bucket():
    layers, alpha, backward, size = 64, 0.05, 0.04, 0.06
    p = StepCosts([0.02] * layers, [backward] * layers, [size] * layers, Cost(alpha, 1.0))
    counts = [1, 2, 4, 8, 16, 32, 64]
    times = [wait_free(p, fill_buckets(p, count * size * 0.999)) for count in counts]
    for count, seconds in zip(counts, times, strict=True):  # the network is busy as soon as the first bucket is full
        saturated = sum(p.forward) + count * backward + layers / count * alpha + layers * size
        assert seconds == pytest.approx(saturated)
    slopes = np.diff(times) / np.diff(counts)
    assert (np.diff(slopes) > 0).all() and slopes[0] < 0 < slopes[-1]
    assert counts[int(np.argmin(times))] == 8
    assert math.sqrt(layers * alpha / backward) == pytest.approx(8.9, abs=0.1)
