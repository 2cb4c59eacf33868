"""The check of the chapter on little communication: near misses of its exercise lose the marks that they should."""

import pytest

from tests.system.lessons.near_misses import begun, lost, solution

CHAPTER = "little_communication"
WHOLE, TURNS, TRAVELS, SHARE, REST, SHORT = [
    "with one part it is DiLoCo",
    "every part has its outer step at the end of its turn",
    "nobody waits for a part on its way",
    "a worker keeps its share of its own part",
    "what is left at the end is averaged",
    "no message is longer than a part",
]
SEND = 'return comm.all_reduce(x[part(k)] - w[part(k)], op="mean", async_op=True)'
WAITING = """p = x[part(k)] - w[part(k)]
        comm.all_reduce(p, op="mean")
        return p"""
LONG = """p = x - w
        handle = comm.all_reduce(p, op="mean", async_op=True)

        class Part:
            wait = lambda self: handle.wait()[part(k)]

        return Part()"""
REMAINDER = """    for k, steps in enumerate(moved):
        if steps:
            finish(k, start(k))
"""


@pytest.mark.slow
def test_the_start_file_earns_only_that_with_one_part_it_is_diloco():
    assert lost(CHAPTER, begun(CHAPTER)) == (8, [TURNS, TRAVELS, SHARE, REST, SHORT])


@pytest.mark.slow
def test_who_waits_for_a_part_at_once_loses_that_mark_alone():
    source = solution(CHAPTER, (SEND, WAITING), ("handle.wait()", "handle"), ("if handle:", "if handle is not None:"))
    assert lost(CHAPTER, source) == (77, [TRAVELS])


@pytest.mark.slow
def test_who_overwrites_what_was_learned_on_the_way_loses_that_mark_alone():
    keeps = "w[here] = s.own_share * w[here] + (1 - s.own_share) * x[here]"
    assert lost(CHAPTER, solution(CHAPTER, (keeps, "w[here] = x[here]"))) == (85, [SHARE])


@pytest.mark.slow
def test_who_forgets_the_parts_that_have_moved_since_loses_that_mark_alone():
    assert lost(CHAPTER, solution(CHAPTER, (REMAINDER, ""))) == (85, [REST])


@pytest.mark.slow
def test_who_sends_the_whole_model_for_a_part_loses_the_marks_for_messages_and_time():
    assert lost(CHAPTER, solution(CHAPTER, (SEND, LONG))) == (69, [TRAVELS, SHORT])
