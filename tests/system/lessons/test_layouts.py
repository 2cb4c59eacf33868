"""The check of the chapter on layouts: near misses of its exercise lose the marks that they should."""

import random

import pytest

from lessons.layouts import solution as perfect
from lessons.layouts.check import POINTS, draw_case, draw_cases
from lessons.layouts.experiments import failing_job
from lessons.seeds import Seeded
from tests.system.lessons.near_misses import begun, lost, solution
from theory.checkpoint_interval import seconds_to_save

CHAPTER = "layouts"
IN_NODE = 'divisors(cluster["per_node"], model["heads"], model["kv_heads"], cluster["gpus"])'
BY_LINK = '    if d <= near:\n        return (d - 1) / d * nbytes / cluster["link"]\n    rate'
STAGES = 'divisors(cluster["gpus"] // t, model["layers"])'
NAMED, FITS, INSIDE, NODE, FAST, SLOW, SAVED = POINTS


def test_the_price_list_gives_the_planners_memory_to_the_byte_and_a_layout_as_fast_as_its_best():
    for case in draw_cases(random.Random(3))[:9]:
        model, cluster = case.arguments()
        at = perfect.choose(model, cluster)
        priced = case.price([at])
        assert perfect.memory(at, model) == pytest.approx(float(priced.memory.total[0]), rel=1e-9)
        assert case.ours.time.seconds[0] / priced.time.seconds[0] > 0.97


def test_a_single_replica_has_nobody_to_shard_its_states_with():
    alone = {"data": 1, "tensor": 8, "pipeline": 1, "micro_batch": 1, "shard": "full", "recompute": True}
    case = draw_case(random.Random(1), "node", "middle")
    assert "at least two replicas" in case.refusal(alone) and not case.refusal(alone | {"shard": "optimizer"})


def test_a_job_that_fails_takes_as_long_as_the_closed_form_says():
    seconds = failing_job(Seeded(0), 10_000, 50.0, 10, seed=1)
    assert seconds == pytest.approx(1000 * seconds_to_save(10, 1.0, 50.0, 20.0), rel=0.15)


def test_a_job_that_never_fails_takes_its_work_and_its_checkpoints():
    assert failing_job(Seeded(0), 100, 1e12, 10, seed=1) == pytest.approx(110, rel=1e-4)


@pytest.mark.slow
def test_the_start_file_earns_next_to_nothing():
    assert lost(CHAPTER, begun(CHAPTER))[0] < 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "marks"),
    [
        ((" * under_way + work", " + work"), [FITS]),
        (("10 * layer + 4 * words * h", "0"), [FITS]),
        ((IN_NODE, 'divisors(cluster["gpus"], model["heads"], model["kv_heads"])'), [INSIDE]),
        ((BY_LINK, "    rate"), [NODE]),
        (("for b in (1, 2, 4, 8)", "for b in (1, 2, 4)"), [FAST]),
        ((STAGES, f"[n for n in {STAGES} if n < 3]"), [SLOW]),
        (('min(cluster["link"], near * cluster["port"])', 'cluster["port"]'), [SLOW]),
        (('(1 - cluster["hidden"])\n    last', "0\n    last"), [SLOW]),
        (("sqrt(2 * ", "sqrt("), [SAVED]),
        ((' / cluster["gpus"])', ")"), [SAVED]),
    ],
)
def test_a_near_miss_loses_its_mark_alone(change, marks):
    assert lost(CHAPTER, solution(CHAPTER, change))[1] == marks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "marks"),
    [
        (("(micro_batches + p - 1) *", "micro_batches *"), [FAST, SLOW]),  # slow ports keep stages out of the one node
        (("for again in (False, True)", "for again in (True,)"), [NODE, FAST, SLOW]),
        (("for b in (1, 2, 4, 8)", "for b in (1,)"), [NODE, FAST, SLOW]),
    ],
)
def test_a_planner_without_bubble_or_choice_loses_on_every_cluster_that_needs_it(change, marks):
    assert lost(CHAPTER, solution(CHAPTER, change))[1] == marks
