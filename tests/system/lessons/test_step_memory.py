"""The check of the chapter on a step's memory: near misses of its exercise lose the marks that they should lose."""

import random

import pytest

from lessons.step_memory import check
from tests.system.lessons.near_misses import begun, lost, solution
from theory.recomputation import best_plan, even_plan, peak_bytes, repeated_seconds

CHAPTER = "step_memory"
WHOLE, NOTHING, FITS, TIGHT, ALIKE, SOME, MANY = [
    "every layer is in one segment",
    "nothing is repeated if everything fits",
    "its plans fit into the limit",
    "it fits where few plans do",
    "near the best plan of layers that are alike",
    "near the best plan where some layers keep much and take little time",
    "near the best plan of 90 layers",
]
HELD = """
def held(layers, plan):
    at = before = most = 0
    for how, count in plan:
        kept = sum(layer["kept"] for layer in layers[at : at + count])
        entered = layers[at]["input"] if how == "again" else 0
        most = max(most, before + entered + kept)
        before += entered or kept
        at += count
    return most
"""
ROOT = """
def plan(layers, limit):
    size = round(len(layers) ** 0.5)
    full, rest = divmod(len(layers), size)
    return [("again", size)] * (full - 1) + [("keep", size + rest)]
"""
EVEN = (
    HELD
    + """
def plan(layers, limit):
    n = len(layers)
    plans = []
    for k in range(1, n + 1):
        sizes = [n * (i + 1) // k - n * i // k for i in range(k)]
        plans.append([("again", size) for size in sizes[:-1]] + [("keep", sizes[-1])])
    return next((plan for plan in plans if held(layers, plan) <= limit), min(plans, key=lambda p: held(layers, p)))
"""
)
ONE_BY_ONE = (
    HELD
    + """
def plan(layers, limit):
    hows = ["keep"] * len(layers)
    worth = sorted(range(len(layers) - 1), key=lambda n: -layers[n]["kept"] / layers[n]["forward"])
    for n in worth:
        if held(layers, [(how, 1) for how in hows]) <= limit:
            break
        hows[n] = "again"
    return [(how, 1) for how in hows]
"""
)
NO_INPUT = ('yield "again", count, entered, entered + kept, again', 'yield "again", count, entered, kept, again')
COUNTED = ('again += layer["forward"]', "again += 100")
LAST = ('again += layer["forward"]', 'again = layer["forward"]')
NEVER = ("if count == 1 and kept <= limit:", "if count == 1 and kept < 0:")
PAIRS = ("if kept > limit:", "if kept > limit or count == 2:")
GIVE_UP = (
    "    return follow(",
    """    if not np.isfinite(least[-1]).any():
        return [("keep", len(layers))]
    return follow(""",
)
COARSE = (
    "    least = np.full(",
    """    if len(layers) > 60:  # in units of 3 MB
        layers = [{**layer, "input": -(-layer["input"] // 3), "kept": -(-layer["kept"] // 3)} for layer in layers]
        limit //= 3
    least = np.full(""",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "marks"),
    [
        (begun(CHAPTER), [NOTHING, FITS, TIGHT, ALIKE, SOME, MANY]),
        (ROOT, [NOTHING, FITS, TIGHT, ALIKE, SOME, MANY]),
        (EVEN, [TIGHT, ALIKE, SOME, MANY]),
        (ONE_BY_ONE, [TIGHT, ALIKE, SOME, MANY]),
        (solution(CHAPTER, NO_INPUT), [FITS, TIGHT]),
        (solution(CHAPTER, COUNTED), [SOME]),
        (solution(CHAPTER, LAST), [ALIKE, SOME, MANY]),
        (solution(CHAPTER, NEVER), [NOTHING, ALIKE, SOME, MANY]),
        (solution(CHAPTER, PAIRS, GIVE_UP), [TIGHT, ALIKE, MANY]),
        (solution(CHAPTER, COARSE), [MANY]),
    ],
    ids=[
        "keeps all",
        "root",
        "even",
        "one by one",
        "no input",
        "counted",
        "last",
        "never keeps",
        "gives up",
        "coarse",
    ],
)
def test_a_near_miss_loses_its_marks(source, marks):
    assert lost(CHAPTER, source)[1] == marks


@pytest.mark.parametrize("seed", range(3))
def test_the_best_plan_of_each_case_fits_and_takes_what_its_passes_take(seed):
    for case in check.draw_cases(random.Random(seed)):
        assert sum(count for _, count in case.best) == len(case.layers) and case.peak(case.best) <= 1
        forward = sum(layer.forward for layer in case.layers)
        taken = 3 * forward + repeated_seconds(case.layers, case.best)
        assert case.seconds(case.best) == pytest.approx(taken * check.US, rel=1e-4)


def test_the_smallest_limit_is_one_under_which_a_plan_fits_and_one_less_is_too_small():
    tight = [case for case in check.draw_cases(random.Random(3)) if case.kind == "tight"]
    for case in tight:
        assert case.best and best_plan(case.layers, case.limit - 1) is None
    even = min(peak_bytes(tight[0].layers, even_plan(len(tight[0].layers), k)) for k in range(1, 16))
    assert tight[0].limit <= even, "unequal segments may hold less"
