"""The check of the chapter on overlap: near misses of its exercise lose the marks that they should lose."""

import random

import pytest

import lessons
from lessons.overlap import check
from tests.system.lessons.near_misses import begun, grade_here, lost, solution
from tests.tiers import slow_except

CHAPTER = lessons.chapter("overlap")
WHOLE, NEVER, SLOW, FAST, ONE, MANY = [
    "every layer is in one bucket",
    "never slower than one message for everything, or than one per layer",
    "near the best plan where messages are slow",
    "near the best plan where messages are fast",
    "near the best plan where one layer has most of the bytes",
    "near the best plan of 150 layers",
]


def planned(words):
    return f"def plan(layers, network):\n    last = len(layers)\n    {words}\n"


FILLED = """plans, size = [[]], 0
    for layer in reversed(range(last)):
        plans[-1].append(layer)
        size += layers[layer]["bytes"]
        if size >= 150_000 and layer:
            plans.append([])
            size = 0
    return plans"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "marks"),
    [
        (begun("overlap"), [NEVER, SLOW, FAST, ONE, MANY]),
        (planned("return [[layer] for layer in reversed(range(last))]"), [NEVER, SLOW, ONE, MANY]),
        (planned("return [[layer] for layer in range(last)]"), [NEVER, SLOW, FAST, ONE, MANY]),
        (planned(FILLED), [NEVER, SLOW, FAST, ONE, MANY]),
        (solution("overlap", ('network["latency"] + ', "")), [NEVER, SLOW, ONE, MANY]),
        (solution("overlap", ("max(ready, through[stop])", "ready")), [NEVER, SLOW, ONE, MANY]),
        (solution("overlap", ("return buckets[0]", "return buckets[0][::-1]")), [NEVER, SLOW, FAST, ONE, MANY]),
    ],
    ids=["one", "by layer", "first layer first", "one size", "no latency", "no queue", "backwards"],
)
def test_a_near_miss_loses_its_marks(source, marks):
    assert lost("overlap", source)[1] == marks


def test_buckets_in_the_order_of_the_layers_are_told_that_all_wait_for_the_gradient_that_is_ready_last():
    assert check.order_error([[0], [1], [2]]) == check.order_error([[0], [2], [1]]).replace("layer 2", "layer 1")
    assert "with layer 0 is sent before one with layer 1" in check.order_error([[0], [1], [2]])
    assert "with layer 1 is sent before one with layer 2" in check.order_error([[3], [1], [2], [0]])
    assert (
        check.order_error([[2], [0, 1]]) == check.order_error([[3, 2], [1], [0]]) == check.order_error([[0, 1]]) == ""
    )


@pytest.mark.parametrize(
    ("words", "told"),
    slow_except(
        1, [("[[layer] for layer in range(last)]", True), ("[[layer] for layer in reversed(range(last))]", False)]
    ),
)
def test_a_report_names_the_wrong_order_of_buckets_and_only_that(words, told):
    report = grade_here("overlap", planned(f"return {words}"))
    never = next(mark for mark in report.marks if mark.name == NEVER)
    assert not never.earned and ("send the last layers first" in never.observed) is told


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_no_plan_that_we_know_is_faster_than_the_one_that_is_called_best(seed):
    for case in check.draw_cases(random.Random(seed)):
        best = case.seconds(case.best)
        sizes = sum(case.sizes)
        for parts in (2, 3, 4, 5, 7, 10):
            filled, full = [[]], 0
            for layer in reversed(range(len(case.sizes))):
                filled[-1].append(layer)
                full += case.sizes[layer]
                if full >= sizes / parts and layer:
                    filled.append([])
                    full = 0
            assert best <= 1.001 * case.seconds(filled)
        assert best <= 1.001 * min(map(case.seconds, case.naive))


CHEATS = {
    "a layer twice": ("[[0, 0], *([layer] for layer in range(1, last))]", "layer 0 is sent twice"),
    "a layer left out": ("[[layer] for layer in range(1, last)]", "layer 0 is never sent"),
    "a layer that is not there": ("[[*range(last + 1)]]", "there is no layer"),
    "nothing": ("[]", "layer 0 is never sent"),
    "an empty bucket": ("[[], [*range(last)]]", "expected a list of buckets"),
    "a number": ("1", "expected a list of buckets"),
    "half a layer": ("[[0.5], [*range(last)]]", "layers are whole numbers"),
    "truth": ("[[False, True, *range(2, last)]]", "layers are whole numbers"),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_what_is_no_plan_earns_nothing_and_is_told(cheat):
    returned, said = CHEATS[cheat]
    report = grade_here("overlap", planned(f"return {returned}"))
    assert said in report.error and report.score == 0, report.error


@pytest.mark.slow
def test_a_plan_for_the_fastest_step_that_says_so_of_itself_is_timed_all_the_same():
    """The clock, the layers and the network are on our side: all that a solution gives is which layers go together."""
    boasts = planned("import time; time.perf_counter = lambda: 0.0; layers[0]['backward'] = 0; return [[*range(last)]]")
    assert lost("overlap", boasts)[1] == [NEVER, SLOW, FAST, ONE, MANY]
