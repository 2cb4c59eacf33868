import doctest
from math import exp

import numpy as np
import pytest

from algorithms.parts import lr_schedules
from algorithms.parts.lr_schedules import (
    linear_scaling,
    milestones_passed,
    sgd_share,
    slow_start,
    warm_up_rate,
    with_less_noise,
)

CIFAR = 50_000  # training images
SMITH = {"rate": 0.1, "batch": 128, "momentum": 0.9, "factor": 5}  # for a Wide-ResNet-16-4
MILESTONES, EPOCHS = (60, 120, 160), 200
LARGEST = {"larger_rate": 5120, "larger_momentum": 5120}


def smith(schedule, epoch):
    """(rate, batch, momentum) in this epoch of Smith's experiment."""
    return with_less_noise(schedule, milestones_passed(epoch, MILESTONES), **SMITH, largest=LARGEST.get(schedule))


def test_its_examples_are_true():
    failed, tried = doctest.testmod(lr_schedules)
    assert not failed and tried >= 6


def test_imagenets_rates_are_those_of_the_paper():
    assert [linear_scaling(0.1, batch, 256) for batch in (256, 8192)] == [0.1, 3.2]


@pytest.mark.parametrize("kind", ["gradual", "constant", "none"])
def test_after_its_warm_up_the_rate_is_k_times_the_base_rate_exactly(kind):
    peak = linear_scaling(0.1, 8192, 256)
    assert {warm_up_rate(0.1, peak, step, 5 * 156, kind) for step in range(780, 900)} == {peak}


def test_a_gradual_warm_up_rises_as_much_in_every_step_and_a_constant_one_not_at_all():
    gradual = [warm_up_rate(0.1, 3.2, step, 780) for step in range(781)]
    assert np.diff(gradual) == pytest.approx(np.full(780, 3.1 / 780))
    assert gradual[0] == 0.1
    assert {warm_up_rate(0.1, 3.2, step, 780, "constant") for step in range(780)} == {0.1}
    assert warm_up_rate(0.1, 3.2, 0, 780, "none") == 3.2


@pytest.mark.parametrize("kind", ["gradual", "constant", "none"])
def test_at_the_base_batch_nothing_warms_up(kind):
    assert {warm_up_rate(0.1, linear_scaling(0.1, 256, 256), step, 7, kind) for step in range(20)} == {0.1}


def test_akibas_share_of_sgd_has_the_known_values():
    shares = [sgd_share(epoch) for epoch in (0, 5, 10, 11, 12)]
    assert shares == pytest.approx([0.00916, 0.06767, 0.5, 0.7, 0.9], abs=5e-6)


@pytest.mark.parametrize(("centre", "period"), [(10, 5), (2, 1), (3, 4)])
def test_akibas_share_of_sgd_is_continuous_and_at_the_centre_its_slope_is_too(centre, period):
    tiny = 1e-7
    for epoch in (centre, centre + period / 2):
        assert sgd_share(epoch + tiny, centre, period) == pytest.approx(
            sgd_share(epoch - tiny, centre, period), abs=1e-6
        )
    slopes = [(sgd_share(centre + by, centre, period) - 0.5) / by for by in (-tiny, tiny)]
    assert slopes == pytest.approx([1 / period] * 2, rel=1e-5)
    assert sgd_share(centre + period / 2, centre, period) == sgd_share(1e9, centre, period) == 1
    assert sgd_share(0, centre, period) == exp(-2 * centre / period) / 2


def test_akibas_share_without_a_period_is_a_switch():
    assert [sgd_share(epoch, 2, 0) for epoch in (0, 1.99, 2, 9)] == [0, 0, 1, 1]
    assert sgd_share(0, 0, 0) == 1


def test_akibas_slow_start_keeps_its_proportions_at_any_length():
    for length in (90, 9):
        stairs = [slow_start(length * epoch / 90, length) for epoch in range(90)]
        assert [stairs.count(share) for share in (0.5, 0.075, 0.01, 0.001)] == [40, 30, 15, 5]
    assert slow_start(1000, 90) == 0.001


@pytest.mark.parametrize(
    ("schedule", "updates"),
    [("decay", 78_125), ("grow", 28_875), ("larger_rate", 6_406.25), ("larger_momentum", 2_304.6875)],
)
def test_smiths_schedules_need_the_known_numbers_of_updates(schedule, updates):
    assert sum(CIFAR / smith(schedule, epoch)[1] for epoch in range(EPOCHS)) == pytest.approx(updates, rel=1e-12)


def test_smiths_schedules_begin_and_grow_as_in_the_paper():
    def batches(schedule):
        return [smith(schedule, epoch)[1] for epoch in (0, 60, 120, 160)]

    assert batches("grow") == [128, 640, 3200, 16000]
    assert batches("hybrid") == [128, 640, 640, 640]
    assert batches("larger_rate") == [640, 3200, 5120, 5120]
    assert batches("larger_momentum") == [3200, 5120, 5120, 5120]
    assert smith("larger_rate", 0)[::2] == (0.5, 0.9)
    assert smith("larger_momentum", 0)[::2] == (0.5, pytest.approx(0.98))
    assert [smith("decay", epoch)[0] for epoch in (0, 60, 120, 160)] == pytest.approx([0.1, 0.02, 0.004, 0.0008])
    assert {smith("grow", epoch)[0] for epoch in range(EPOCHS)} == {0.1}


@pytest.mark.parametrize("schedule", ["grow", "hybrid", "larger_rate", "larger_momentum"])
def test_every_schedule_of_smith_has_the_same_noise_in_every_epoch(schedule):
    def noise(name, epoch):
        rate, batch, momentum = smith(name, epoch)
        return rate * CIFAR / batch / (1 - momentum)

    for epoch in range(EPOCHS):
        assert noise(schedule, epoch) == pytest.approx(noise("decay", epoch), rel=1e-12)
