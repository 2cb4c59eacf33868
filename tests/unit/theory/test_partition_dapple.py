"""DAPPLE's planner against brute force, its limits, and the simulator."""

import random

import pytest

from tests.quotes import quote
from tests.unit.theory.test_partition_pipedream import HUGE, cuts, every_plan, profile
from theory import schedules
from theory.partition import Partition
from theory.partition_dapple import partition_step, ring
from theory.partition_pipedream import PlannedStage, partition
from theory.pipeline_memory import Sizes, peak_bytes
from theory.profile import Profile
from theory.schedule_timing import simulate


def length(p, plan, bandwidth, chunks):
    """L of a plan, term by term as the formula has it."""
    stages = [sum(p.times[i : j + 1]) / r / chunks for i, j, r in plan]
    links = [2 * p.activations[i - 1] / bandwidth / chunks for i, _, _ in plan[1:]]
    back = [sum(p.backward[i : j + 1]) / r / chunks for i, j, r in plan]
    rings = [2 * (r - 1) / r * sum(p.weights[i : j + 1]) / bandwidth for i, j, r in plan]
    exposed = max(max(0, ring - sum(back[:s])) for s, ring in enumerate(rings))
    return (chunks - 1) * max(stages + links) + sum(stages + links) + exposed


def cases(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        layers, workers = draw.randint(1, 5), draw.randint(1, 5)
        numbers = [[draw.choice([0.5, 1, 2, 3, 5]) for _ in range(layers)] for _ in range(3)]
        yield profile(*numbers), workers, draw.choice([0.5, 1, 4, 50]), draw.choice([1, 2, 4, 16])


def test_no_plan_is_quicker():
    for p, workers, bandwidth, chunks in cases(120, 0):
        best = min(length(p, plan, bandwidth, chunks) for plan in every_plan(len(p.layers), workers))
        found = partition_step(p, workers, bandwidth, chunks)
        assert found.period == pytest.approx(best)
        assert length(p, [stage[:3] for stage in found.stages], bandwidth, chunks) == pytest.approx(best)


def test_with_many_micro_batches_it_finds_pipedreams_cut():
    for p, workers, bandwidth, _ in cases(60, 1):
        workers = min(workers, len(p.layers))
        full = partition(p, [(workers, bandwidth)], straight=True)
        step = partition_step(p, workers, bandwidth, 10**7, straight=True)
        assert step.period == pytest.approx(full.period, rel=1e-5)
    p = profile([1, 2, 3, 4, 5, 5], [0] * 6, [HUGE] * 6)
    assert cuts(partition_step(p, 2, 1, 10**7)) == cuts(partition(p, [(2, 1)])) == [4]


def test_with_one_micro_batch_all_workers_share_all_layers_if_memory_allows():
    p = profile([4, 4, 4, 4], [1, 1, 1, 1], [0.1] * 4)
    assert partition_step(p, 4, 10, 1).stages == (PlannedStage(0, 3, 4),)
    assert len(partition_step(p, 4, 10, 1, memory=1.3).stages) > 1
    assert len(partition_step(profile([4] * 4, [0.01] * 4, [9] * 4), 4, 1, 64).stages) > 1  # weights that cost too much


def held(p, plan, chunks):
    """The most bytes on a worker at one time, counted micro-batch by micro-batch along the lists of 1F1B."""
    activations = [sum(p.activations[i : j + 1]) / chunks / r for i, j, r in plan]
    weights = [sum(p.weights[i : j + 1]) for i, j, _ in plan]
    sizes = Sizes([0] * len(plan), activations, weights)
    peaks = peak_bytes(schedules.lists("1f1b", len(plan), chunks), sizes)
    return max(map(sum, zip(peaks, weights, strict=True)))


def test_a_plan_fits_and_no_plan_that_fits_is_quicker():
    limits = random.Random(3)
    for p, workers, bandwidth, chunks in cases(120, 4):
        plans = list(every_plan(len(p.layers), workers))
        limit = limits.choice([held(p, plan, chunks) for plan in plans])
        found = partition_step(p, workers, bandwidth, chunks, memory=limit)
        assert held(p, [stage[:3] for stage in found.stages], chunks) <= limit
        fitting = [plan for plan in plans if held(p, plan, chunks) <= limit]
        assert found.period == pytest.approx(min(length(p, plan, bandwidth, chunks) for plan in fitting))


def test_replicas_share_each_micro_batch_and_so_hold_a_part_of_every_one_in_flight():
    forward, backward = (0.004, 0.001, 0.001), (0.008, 0.002, 0.002)
    p = Profile(forward, backward, (3e6, 1e5, 1e5), (1000, 40_000, 40_000), ("a", "b", "c"))
    assert held(p, [(0, 1, 4), (2, 2, 1)], 16) == 137_875
    found = partition_step(p, 5, 1e9, 16, memory=100_000)
    assert found.stages == (PlannedStage(0, 0, 4), PlannedStage(1, 2, 1))
    assert held(p, [stage[:3] for stage in found.stages], 16) <= 100_000


def test_a_limit_that_is_said_to_be_met_is_met():
    for p, workers, bandwidth, chunks in cases(30, 2):
        with pytest.raises(ValueError, match="smallest") as refused:
            partition_step(p, workers, bandwidth, chunks, memory=1e-3)
        least = float(str(refused.value).rstrip(".").split()[-1]) * (1 + 1e-5)
        partition_step(p, workers, bandwidth, chunks, memory=least)
        with pytest.raises(ValueError, match="fits"):
            partition_step(p, workers, bandwidth, chunks, memory=least * (1 - 1e-4))


def test_fewer_and_uneven_stages_win_where_filling_counts():
    p = profile([6, 2, 2, 2], [0.01] * 4, [HUGE] * 4)
    few, many = (partition_step(p, 2, 1, chunks) for chunks in (1, 100))
    assert few.period == pytest.approx(12 + 0.02)  # whatever the cut: one micro-batch goes through all
    assert cuts(many) == [1] and many.period == pytest.approx((99 * 6 + 12 + 0.02) / 100)


@pytest.mark.parametrize("name", ["gpipe", "1f1b"])
def test_a_step_of_equal_stages_takes_as_long_as_the_simulator_says(name):
    p = profile([3] * 4, [0] * 4, [HUGE] * 4)
    plan = partition_step(p, 4, 1, 8)
    assert plan.name == "1-1-1-1"
    assert plan.period == pytest.approx(simulate(schedules.lists(name, 4, 8), {"F": 1 / 8, "B": 2 / 8}).makespan)


@pytest.mark.parametrize("chunks", [1, 2, 3, 8])
def test_a_stage_of_a_step_runs_as_far_ahead_as_in_1f1b_however_many_replicas_share_it(chunks):
    plan = Partition((PlannedStage(0, 0, 3), PlannedStage(1, 1, 1), PlannedStage(2, 2, 1)), 1, 1, chunks=chunks)
    lists = schedules.lists("1f1b", 3, chunks)
    assert plan.warm_up == tuple([op.kind for op in ops].index("B") - 1 for ops in lists)
    assert chunks < 3 or plan.warm_up == (2, 1, 0)


def of_1f1b(p, plan, bandwidth, chunks):
    """Seconds of a step by 1F1B with free links, the rings that sum gradients included."""
    stages = [(sum(p.forward[i : j + 1]) / r, sum(p.backward[i : j + 1]) / r) for i, j, r in plan]
    costs = {(kind, s): t / chunks for s, both in enumerate(stages) for kind, t in zip("FB", both, strict=True)}
    times = simulate(schedules.lists("1f1b", len(plan), chunks), costs)
    rings = [ring(sum(p.weights[i : j + 1]), r, bandwidth) for i, j, r in plan]
    return max(ends[-1] + seconds for ends, seconds in zip(times.end, rings, strict=True))


def test_a_step_of_1f1b_with_free_links_takes_no_longer_than_is_said():
    shares = []
    for p, workers, bandwidth, chunks in cases(300, 5):
        free = Profile(p.forward, p.backward, (0.0,) * len(p.layers), p.weights)
        for plan in every_plan(len(p.layers), workers):
            shares.append(of_1f1b(free, plan, bandwidth, chunks) / length(free, plan, bandwidth, chunks))
    assert min(shares) < 0.8 and max(shares) == pytest.approx(1)


def test_where_one_stage_is_slow_forward_and_another_backward_1f1b_may_take_longer():
    p = Profile((4, 0, 0), (0, 4, 0), (0, 0, 0), (HUGE,) * 3)
    plan = [(0, 0, 1), (1, 1, 1), (2, 2, 1)]
    assert of_1f1b(p, plan, 1, 2) == pytest.approx(4 / 3 * length(p, plan, 1, 2))


@pytest.mark.parametrize(
    ("workers", "bandwidth", "chunks", "options", "sentence"),
    [
        (0, 1, 4, {}, "4 micro-batches on 0 workers … at least 1 of each"),
        (2, 0, 4, {}, "bandwidth: 0 bytes per second"),
        (3, 1, 4, {"straight": True}, "3 workers … 2 … at most 2"),
        (2, 1, 4, {"memory": 0.5}, "2 workers … 0.5 bytes … 1.5"),
    ],
)
def test_steps_that_cannot_be_are_refused(workers, bandwidth, chunks, options, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        partition_step(profile([1, 1], [1, 1], [1, 1]), workers, bandwidth, chunks, **options)
