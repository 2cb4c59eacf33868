"""The check of the chapter on full sharding: near misses of its exercise lose the marks that they should."""

import pytest

from lessons.fully_sharded.check import FLOPS, TOKENS, ShardedModel, textbook
from tests.system.lessons.near_misses import begun, lost, solution
from theory.overlap import Cost, StepCosts, prefetching

CHAPTER = "fully_sharded"
SAME, FORWARD, BACKWARD, EARLY, FORGOTTEN, SENT, GENERAL = [
    "every pass reads the whole layer, and training is the same to the bit",
    "gathers hide behind the forward pass",
    "gathers hide behind the backward pass",
    "no layer is gathered too early",
    "a layer is freed after its pass",
    "ranks send no more than they must",
    "it works if asked to prefetch no layers, or more than there are, and on one rank",
]
AHEAD = "gather_ahead(comm, w, forwards, s.prefetch)"
BACK = "gather_ahead(comm, w, forwards[::-1], s.prefetch)"
REPORT = "        task.report(w)\n"
KEPT = """            task.forward(layer, whole)
            kept[layer] = whole
"""


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_the_textbooks_worker_takes_what_the_closed_form_says(ahead):
    ranks, layers = 4, [40_000] * 12
    model = ShardedModel(ranks, layers, ahead, seed=1)
    model.play([textbook] * ranks)
    forward = [2 * TOKENS * n / FLOPS for n in layers]
    gather = Cost(0.0, 0.7 * forward[0] / layers[0])
    p = StepCosts(forward, [2 * seconds for seconds in forward], layers, gather)
    assert sum(model.seconds.values()) / 2 == pytest.approx(prefetching(p, ahead), rel=0.01)


@pytest.mark.slow
def test_the_start_file_earns_only_that_training_is_the_same():
    assert lost(CHAPTER, begun(CHAPTER)) == (18, [FORWARD, BACKWARD, EARLY, FORGOTTEN, SENT, GENERAL])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "marks"),
    [
        (((AHEAD, AHEAD.replace("s.prefetch", "0")),), [FORWARD]),
        (((BACK, BACK.replace("s.prefetch", "0")),), [BACKWARD]),
        ((("len(begun) <= ahead and", "len(begun) <= ahead + (ahead > 0) and"),), [EARLY]),
        (
            (("    g = np", "    kept = {}\n    g = np"), ("            task.forward(layer, whole)\n", KEPT)),
            [FORGOTTEN],
        ),
        (((REPORT, "        comm.all_gather(w[: len(w) // 20])\n" + REPORT),), [SENT]),
        ((("len(begun) <= ahead and", "len(begun) <= max(ahead, 1) and"),), [GENERAL]),
    ],
)
def test_a_near_miss_loses_its_mark_alone(changes, marks):
    assert lost(CHAPTER, solution(CHAPTER, *changes))[1] == marks


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for rank in range(comm.size)])", "for rank in [*pieces]])"),
        ('op="mean")', 'op="sum")'),
        ("w -= s.learning_rate * g", "w -= 0.99 * s.learning_rate * g"),
    ],
)
def test_other_training_than_the_textbooks_earns_nothing(old, new):
    assert lost(CHAPTER, solution(CHAPTER, (old, new)))[0] == 0
