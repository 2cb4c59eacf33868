"""PipeDream's dynamic program against brute force, the worked examples, and the simulator."""

import random
from itertools import combinations, pairwise
from math import ceil

import pytest

from algorithms.parts.pipeline.ops import check
from algorithms.pipelined.pipedream import replicated_schedule
from tests.quotes import quote
from theory import schedules
from theory.partition_pipedream import FORMS, PlannedStage, link, partition
from theory.profile import Profile
from theory.schedule_timing import simulate

HUGE = 1e9  # weights that nobody replicates


def profile(times, activations, weights):
    """Layers whose forward takes a third of their time."""
    return Profile(tuple(t / 3 for t in times), tuple(2 * t / 3 for t in times), tuple(activations), tuple(weights))


VGG = profile([8, 2], [0.5, 0.1], [0, 9])  # in miniature: one layer with all the work, one with all the weights


def cuts(plan):
    return [stage.first for stage in plan.stages[1:]]


def every_plan(layers, workers):
    """(first, last, replicas) of each stage, for all ways to cut and to replicate."""
    for stages in range(1, min(layers, workers) + 1):
        for inner in combinations(range(1, layers), stages - 1):
            for share in combinations(range(1, workers), stages - 1):
                ends = zip(pairwise((0, *inner, layers)), pairwise((0, *share, workers)), strict=True)
                yield [(i, j - 1, n - m) for (i, j), (m, n) in ends]


def period(p, plan, bandwidth, form, compression=None):
    worst = 0
    for i, j, m in plan:
        worst = max(worst, FORMS[form](sum(p.times[i : j + 1]), sum(p.weights[i : j + 1]), m, bandwidth))
        if form != "code" and i:
            worst = max(worst, 2 * p.activations[i - 1] / bandwidth)
        if compression and i:
            ends = p.activations[i - 1], p.activations[j] if j + 1 < len(p.layers) else 0
            worst = max(worst, 2 * max(ends) / (bandwidth * m * compression))
    return worst


def cases(count, seed):
    draw = random.Random(seed)
    for _ in range(count):
        layers, workers = draw.randint(1, 5), draw.randint(1, 5)
        numbers = [[draw.choice([0, 0.5, 1, 2, 3, 5]) for _ in range(layers)] for _ in range(3)]
        yield profile(*numbers), workers, draw.choice([0.5, 1, 4])


@pytest.mark.parametrize("form", FORMS)
def test_no_plan_is_better(form):
    for p, workers, bandwidth in cases(60, form):
        best = min(period(p, plan, bandwidth, form) for plan in every_plan(len(p.layers), workers))
        found = partition(p, [(workers, bandwidth)], form)
        assert found.period == pytest.approx(best)
        assert period(p, [stage[:3] for stage in found.stages], bandwidth, form) == pytest.approx(best)
        assert sum(stage.replicas for stage in found.stages) == workers


def test_no_plan_is_better_where_the_program_counts_links():
    for p, workers, bandwidth in cases(60, 1):
        best = min(period(p, plan, bandwidth, "code", 2) for plan in every_plan(len(p.layers), workers))
        assert partition(p, [(workers, bandwidth)], "code", compression=2).period == pytest.approx(best)


def test_the_program_lets_the_replicas_of_a_stage_share_its_links_but_not_those_of_the_first():
    p = profile([1] * 4, [6, 6, 6, 6], [0] * 4)
    stages = [PlannedStage(n, n, replicas) for n, replicas in enumerate((1, 3, 2, 3))]
    assert [link(p, stages, n, 1, "code", 0.5) for n in range(4)] == [8, 12, 12, 0]  # 12 / .5, over 3, 2 and 2
    assert [link(p, stages, n, 1, "code", None) for n in range(4)] == [0, 0, 0, 0]
    assert [link(p, stages, n, 1, "2018", None) for n in range(4)] == [12, 12, 12, 0]


@pytest.mark.parametrize("form", ["2018", "code"])
def test_no_plan_that_fits_is_better(form):
    own = form != "code"
    for p, workers, bandwidth in cases(60, 2):

        def held(plan, p=p):
            later = [sum(m for _, _, m in plan[n + 1 :]) for n in range(len(plan))]
            size = [sum(p.activations[i : j + 1]) + sum(p.weights[i : j + 1]) for i, j, _ in plan]
            return max((ceil(l / m) + own) * s for l, s, (_, _, m) in zip(later, size, plan, strict=True))

        plans = list(every_plan(len(p.layers), workers))
        limit = 6
        fitting = [period(p, plan, bandwidth, form) for plan in plans if held(plan) <= limit]
        if fitting:
            assert partition(p, [(workers, bandwidth)], form, memory=limit).period == pytest.approx(min(fitting))
        else:
            least = min(map(held, plans))
            with pytest.raises(ValueError, match=quote(f"6 bytes … smallest … {least:g}")):
                partition(p, [(workers, bandwidth)], form, memory=limit)
            partition(p, [(workers, bandwidth)], form, memory=least)


@pytest.mark.parametrize("form", FORMS)
def test_more_workers_are_never_slower_if_some_may_stay_idle(form):
    for p, _, bandwidth in cases(15, 3):
        periods = [partition(p, [(m, bandwidth)], form, fewer=True).period for m in range(1, 6)]
        assert periods == sorted(periods, reverse=True)


def test_more_workers_may_be_slower_if_all_have_to_work():
    p = profile([1], [0], [10])
    assert partition(p, [(1, 1)]).period == 1
    assert partition(p, [(2, 1)]).period == 10
    assert partition(p, [(2, 1)], fewer=True).period == 1
    assert partition(p, [(2, 1)], fewer=True).stages == (PlannedStage(0, 0, 1),)


@pytest.mark.parametrize("form", FORMS)
def test_without_weights_all_workers_share_all_layers(form):
    plan = partition(profile([3, 1, 4], [1, 1, 1], [0, 0, 0]), [(4, 1)], form)
    assert (plan.name, plan.period) == ("4", 2)


@pytest.mark.parametrize(("workers", "cut", "period"), [(2, [4], 10), (3, [3, 5], 9)])
def test_straight_cuts_without_communication(workers, cut, period):
    p = profile([1, 2, 3, 4, 5, 5], [0] * 6, [HUGE] * 6)
    for plan in (partition(p, [(workers, 1)]), partition(p, [(workers, 1)], straight=True)):
        assert (cuts(plan), plan.period) == (cut, pytest.approx(period))


def test_vgg_in_miniature_replicates_the_work_and_not_the_weights():
    plan = partition(VGG, [(3, 1)])
    assert (plan.name, plan.period, plan.speed_up) == ("2-1", 4, 2.5)
    assert plan.in_flight == 2
    assert plan.warm_up == (1, 0)
    together = {form: FORMS[form](10, 9, 3, 1) for form in FORMS}
    assert together == pytest.approx({"2018": 8, "sosp": 12, "ring": 4, "code": 34 / 3})
    assert 10 / together["2018"] == 1.25  # the speed-up of data parallelism
    assert period(VGG, [(0, 0, 1), (1, 1, 2)], 1, "2018") == 9


def test_papers_and_program_differ_on_the_same_profile():
    p = profile([6, 6, 6, 2], [4, 2, 0.5, 0.1], [0.1, 0.2, 0.3, 20])
    for form in ("2018", "sosp"):
        plan = partition(p, [(4, 1)], form)
        assert (plan.name, plan.period, cuts(plan)) == ("3-1", 6, [3])
    plan = partition(p, [(4, 1)], "code", compression=1)
    assert (plan.name, plan.period, cuts(plan)) == ("2-1-1", pytest.approx(6.3), [2, 3])
    free = partition(p, [(4, 1)], "code")  # without the cost of links the straight pipeline is quicker
    assert (free.name, free.period) == ("1-1-1-1", 6)


def test_communication_decides_the_cut():
    p = profile([4] * 4, [10, 1, 10, 0], [HUGE] * 4)
    assert (cuts(partition(p, [(2, 1)])), partition(p, [(2, 1)]).period) == ([2], 8)
    p = profile([4] * 4, [1, 10, 1, 0], [HUGE] * 4)
    assert (cuts(partition(p, [(2, 1)])), partition(p, [(2, 1)]).period) == ([1], 12)  # an even cut would take 20


def test_machines_of_several_workers_are_solved_from_the_inside_out():
    plan = partition(VGG, [(2, 10), (2, 1)], "sosp")
    assert plan.period == 4
    assert plan.stages == (
        PlannedStage(0, 0, 1, (PlannedStage(0, 0, 2),)),
        PlannedStage(1, 1, 1, (PlannedStage(1, 1, 2),)),
    )
    assert [partition(VGG, [(2, 10)], "sosp").period] == [5]  # of one machine


def test_the_program_spreads_the_gradients_of_a_single_stage_over_the_level_below():
    plan = partition(profile([10], [0], [3]), [(2, 1), (2, 1)], "code")
    inside = (10 + 4 * 1 * 3 / 2) / 2
    assert plan.period == pytest.approx((inside + 4 * 1 * 3 / 2 / 2) / 2)


PUBLISHED = """
    22.307,24.613,1644.2,7168 4.446,5.553,1644.2,0 46.201,113.330,1644.2,147712 4.455,5.311,1644.2,0 3.795,5.579,411.0,0
    15.155,39.648,822.1,295424 2.359,2.738,822.1,0 22.062,53.379,822.1,590336 2.513,2.620,822.1,0 2.211,2.788,205.5,0
    10.814,18.335,411.0,1180672 1.377,1.380,411.0,0 17.458,27.023,411.0,2360320 1.640,1.463,411.0,0
    14.245,33.888,411.0,2360320 1.549,1.321,411.0,0 1.169,1.513,102.8,0 9.249,14.574,205.5,4720640 1.026,0.696,205.5,0
    15.359,21.900,205.5,9439232 0.848,0.679,205.5,0 11.775,28.670,205.5,9439232 0.881,0.642,205.5,0 0.802,0.781,51.4,0
    5.608,7.381,51.4,9439232 0.784,0.266,51.4,0 4.070,7.396,51.4,9439232 0.463,0.190,51.4,0 4.042,8.648,51.4,9439232
    0.455,0.175,51.4,0 0.553,0.234,12.8,0 0,0,0,0 0,0,12.8,0 2.475,4.575,2.1,411058176 0.377,0.030,2.1,0 0,0,2.1,0
    0.709,0.734,2.1,67125248 0.277,0.032,2.1,0 0,0,2.1,0 0.393,0.548,0.5,16388000
"""  # VGG-16 as PipeDream's authors measured it: forward and backward in ms, activations in MB, weights in bytes


def published():
    """The profile of VGG-16, in seconds and bytes."""
    columns = zip(*([float(number) for number in row.split(",")] for row in PUBLISHED.split()), strict=True)
    units = (1e-3, 1e-3, 1e6, 1)
    return Profile(*(tuple(unit * n for n in column) for unit, column in zip(units, columns, strict=True)))


def test_of_the_authors_own_profile_of_vgg_16_the_program_makes_their_plans():
    p = published()
    assert len(p.layers) == 40 and sum(p.times) == pytest.approx(0.6725, abs=5e-5)
    plan = partition(p, [(4, 1.25e9)], "code")
    assert (plan.name, cuts(plan)) == ("3-1", [15])
    assert (plan.period, plan.speed_up) == (pytest.approx(0.1745, abs=5e-5), pytest.approx(3.85, abs=5e-3))
    alone = FORMS["code"](sum(p.times), sum(p.weights), 4, 1.25e9)  # all four have all layers
    assert (plan.alone / alone, alone / plan.period) == (pytest.approx(1.34, abs=5e-3), pytest.approx(2.87, abs=5e-3))
    many = partition(p, [(16, 1.25e9)], "code")
    assert many.name.startswith("9-1-2-1-") and many.speed_up == pytest.approx(14.4, abs=0.05)
    assert plan.alone / FORMS["code"](sum(p.times), sum(p.weights), 16, 1.25e9) == pytest.approx(4.6, abs=0.05)


@pytest.mark.parametrize("form", FORMS)
def test_a_level_of_one_worker_changes_nothing(form):
    for p, workers, bandwidth in cases(10, 4):
        flat = partition(p, [(workers, bandwidth)], form)
        for levels in ([(1, 7), (workers, bandwidth)], [(workers, bandwidth), (1, 7)]):
            assert partition(p, levels, form).period == pytest.approx(flat.period)


def test_of_equal_plans_it_always_takes_the_same():
    p = profile([1, 1, 1, 1], [0] * 4, [0] * 4)
    assert partition(p, [(2, 1)]).stages == (PlannedStage(0, 3, 2),)  # one stage before two
    for times, earlier in (([1, 1, 0, 1, 1], 2), ([1, 0, 2], 1)):
        p = profile(times, [0] * len(times), [HUGE] * len(times))
        assert cuts(partition(p, [(2, 1)])) == [earlier]
    p = profile([4] * 4, [1, 10, 1, 0], [HUGE] * 4)
    assert cuts(partition(p, [(2, 1)])) == [1]


def test_the_table_has_a_row_for_all_layers_so_far_and_all_workers():
    plan = partition(VGG, [(2, 1)])
    assert [(cell.last, cell.workers, cell.period, cell.cut, cell.before, cell.replicas) for cell in plan.table] == [
        (0, 1, 8, None, 0, 1),
        (0, 2, 4, None, 0, 2),
        (1, 1, 10, None, 0, 1),
        (1, 2, 8, 0, 1, 1),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_a_straight_plan_takes_as_long_as_the_simulator_says(seed):
    draw = random.Random(seed)
    p = profile([draw.randint(1, 9) for _ in range(8)], [0] * 8, [HUGE] * 8)
    plan = partition(p, [(4, 1)], straight=True)
    costs = {}
    for s, stage in enumerate(plan.stages):
        costs["F", s] = sum(p.forward[stage.first : stage.last + 1])
        costs["B", s] = sum(p.backward[stage.first : stage.last + 1])
    times = simulate(schedules.lists("pipedream", 4, 80), costs)
    ends = [end for op, end in zip(times.lists[0], times.end[0], strict=True) if op.kind == "B"]
    assert (ends[60] - ends[20]) / 40 == pytest.approx(plan.period)


@pytest.mark.parametrize(("replicas", "work"), [((2, 1), (8, 2)), ((3, 1), (18, 2)), ((2, 2), (4, 4))])
def test_replicas_that_take_turns_are_as_quick_as_the_plan_says(replicas, work):
    lists = [list(replicated_schedule(rank, replicas, 120)) for rank in range(sum(replicas))]
    check(lists)
    costs = {(kind, s): t * share for s, t in enumerate(work) for kind, share in (("F", 1 / 3), ("B", 2 / 3))}
    times = simulate(lists, costs)
    ends = sorted(
        end
        for rank in range(replicas[0])
        for op, end in zip(lists[rank], times.end[rank], strict=True)
        if op.kind == "B"
    )
    assert (ends[90] - ends[30]) / 60 == pytest.approx(max(t / m for t, m in zip(work, replicas, strict=True)))


def test_mini_batches_that_cannot_be_dealt_to_the_replicas_are_refused():
    with pytest.raises(ValueError, match=quote("7 mini-batches … 2 replicas … multiple of 2")):
        list(replicated_schedule(0, (2, 1), 7))


@pytest.mark.parametrize(
    ("levels", "options", "sentence"),
    [
        ([(3, 1)], {"memory": 5}, "3 workers … 5 bytes … 9.1"),
        (
            [(3, 1)],
            {"straight": True},
            "3 workers … 2 … at most 2",
        ),
        (
            [(2, 1), (2, 1)],
            {"straight": True, "form": "sosp"},
            "4 workers … 2",
        ),
        ([(3, 1)], {"form": "2020"}, "'2020' … 2018, sosp, ring, code"),
        ([(0, 1)], {}, "0 workers … at least 1"),
        ([(2, 0)], {}, "bandwidth: 0 bytes … more than 0"),
        ([], {}, "a plan needs workers"),
        ([(2, 1), (2, 1)], {"memory": 5}, "memory limit … one level"),
        ([(2, 1)], {"compression": 2}, "compression: 2 … form"),
    ],
)
def test_plans_that_cannot_be_are_refused_with_what_is_allowed(levels, options, sentence):
    with pytest.raises(ValueError, match=quote(sentence)):
        partition(VGG, levels, **options)
