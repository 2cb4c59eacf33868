"""The constants of a measured GPU: found again from times that they make, and used by the planner."""

import numpy as np
import pytest

from theory.planner.constants import COLLECTIVES, FITTED
from theory.planner.language_model import find_model
from theory.planner.measured import GpuTimings, MeasuredGpu, fit_gpu
from theory.planner.setup import GPUS, Layout, Setup
from theory.planner.step_time import StepPrices

H100 = GPUS["H100"]
TRUE = MeasuredGpu("H100", H100.half, H100.bandwidth, products=0.68, traffic=2.5, memory=0.83, attention=0.58)
SHAPES = [(m, n, q) for m in (2048, 8192) for n in (1024, 4096, 28672) for q in (1024, 8192)]
ALONE = Setup(find_model("llama-3-8b"), 64, TRUE.apply(H100), Layout())


def planted(noise=0.0, **more):
    """Times by the planner's own formulas with the constants TRUE, each off by a random factor."""
    prices, random = StepPrices(ALONE, TRUE.constants), np.random.default_rng(5)

    def off(seconds):
        return float(seconds) * random.lognormal(0, noise)

    model, forward = ALONE.model, float(prices.attention()[0])
    causal = 2.0 * model.sequence**2 * model.queries
    return GpuTimings(
        products=[(*shape, off(prices.product(*shape))) for shape in SHAPES],
        memory=[(nbytes, off(nbytes / prices.bounded)) for nbytes in (1e8, 2e8, 4e8, 8e8)],
        attention=[(scale * causal, off(scale * forward)) for scale in (1, 2, 4)],
        **more,
    )


def gathers(noise, each, hop, ranks):
    random = np.random.default_rng(6)
    sizes = [2.0**power for power in range(20, 31, 2)]
    return [
        (ranks, nbytes, (nbytes * (ranks - 1) / ranks / each + hop * (ranks - 1)) * random.lognormal(0, noise))
        for nbytes in sizes
    ]


def test_constants_are_found_again_from_the_times_that_they_make():
    found = fit_gpu("H100", H100.half, H100.bandwidth, planted())
    for name in ("products", "traffic", "memory", "attention"):
        assert getattr(found, name) == pytest.approx(getattr(TRUE, name), rel=1e-9), name
        assert found.errors[name] < 1e-9


def test_constants_are_found_within_their_errors_if_the_times_are_noisy():
    found = fit_gpu("H100", H100.half, H100.bandwidth, planted(noise=0.03))
    for name in ("products", "traffic", "memory", "attention"):
        error = found.errors[name]
        assert 0 < error < 0.15 * getattr(TRUE, name), name
        assert abs(getattr(found, name) - getattr(TRUE, name)) < 3 * error, name


def test_a_gather_gives_the_rate_of_links_in_a_node_or_that_of_each_gpu_between_nodes():
    inside = fit_gpu("H100", H100.half, H100.bandwidth, GpuTimings(gathers=gathers(0.02, 3e11, 4e-6, 8)))
    assert abs(inside.link - 3e11) < 3 * inside.errors["link"] and inside.network is inside.hop is None
    outside = fit_gpu("H100", H100.half, H100.bandwidth, GpuTimings(gathers=gathers(0.02, 2e11, 4e-6, 32)), 8)
    assert abs(outside.network - 2e11 / 8) < 3 * outside.errors["network"] and outside.link is None
    assert abs(outside.hop - 4e-6) < 3 * outside.errors["hop"]


def test_the_planner_then_takes_as_long_for_a_gather_as_was_measured():
    found = fit_gpu("H100", H100.half, H100.bandwidth, GpuTimings(gathers=gathers(0.0, 2e11, 4e-6, 32)), 8)
    setup = Setup(ALONE.model, 64, found.apply(H100), Layout(data=32))
    took = float(StepPrices(setup, found.constants).collective(2.0**30))
    assert took == pytest.approx(gathers(0.0, 2e11, 4e-6, 32)[-1][2], rel=1e-9)


def test_what_was_not_measured_keeps_its_value():
    one = MeasuredGpu("H100", H100.half, H100.bandwidth, memory=0.9)
    assert one.constants == FITTED._replace(memory=0.9) and one.apply(H100) == H100
    assert MeasuredGpu("H100", 1.0, 1.0, link=8e10).apply(H100).link == 8e10 / COLLECTIVES


def test_a_constant_that_would_be_negative_is_zero():
    rows = [(m, n, q, 2 * m * n * q / (0.5 * H100.half) * (1 + 1e-9 * m * n * q / (m + n + q))) for m, n, q in SHAPES]
    found = fit_gpu("H100", H100.half, H100.bandwidth, GpuTimings(products=rows))
    assert found.traffic == 0 and found.constants.traffic == 0 and 0 < found.products < 0.5


def test_products_whose_time_is_all_memory_are_refused():
    rows = [(m, n, q, 2 * (m * n + n * q + m * q) / H100.bandwidth) for m, n, q in SHAPES[:6]]
    rows.append((65536, 65536, 65536, 1e-6))
    with pytest.raises(ValueError, match="do not grow with their FLOPs"):
        fit_gpu("H100", H100.half, H100.bandwidth, GpuTimings(products=rows))


def test_too_few_measurements_are_refused():
    with pytest.raises(ValueError, match="do not determine 2 constants"):
        fit_gpu("H100", H100.half, H100.bandwidth, GpuTimings(products=[(8, 8, 8, 1.0), (16, 8, 8, 1.5)]))
