"""Schedules as data: the orders of the literature, and lists that cannot be."""

from itertools import islice, pairwise

import pytest

from algorithms.pipelined import gpipe, pipedream
from algorithms.pipelined.schedule import Op, check, needs, parse, repeat, spell

ONE_F_ONE_B = """
0F0 0F1 0F2 0F3 0B0 0F4 0B1 0F5 0B2 0B3 0B4 0B5
1F0 1F1 1F2 1B0 1F3 1B1 1F4 1B2 1F5 1B3 1B4 1B5
2F0 2F1 2B0 2F2 2B1 2F3 2B2 2F4 2B3 2F5 2B4 2B5
3F0 3B0 3F1 3B1 3F2 3B2 3F3 3B3 3F4 3B4 3F5 3B5
"""


def without_updates(ops):
    return [op for op in ops if op.kind != "U"]


def test_1f1b_is_the_order_of_the_book():
    lists = [spell(without_updates(pipedream.schedule(stage, 4, 6))) for stage in range(4)]
    assert lists == ONE_F_ONE_B.split("\n")[1:-1]


def test_pipedream_is_1f1b_without_end_and_an_update_after_every_backward():
    endless = list(islice(pipedream.stream(1, 4), 23))
    assert spell(endless[:11]) == "1F0 1F1 1F2 1B0 1U0 1F3 1B1 1U1 1F4 1B2 1U2"
    finite = without_updates(pipedream.schedule(1, 4, 100))
    assert without_updates(endless) == finite[: len(without_updates(endless))]
    after = [later for earlier, later in pairwise(endless) if earlier.kind == "B"]
    assert after and all(op.kind == "U" for op in after)


@pytest.mark.parametrize("stage", range(4))
def test_gpipe_goes_forward_in_order_and_back_in_reverse(stage):
    ops = gpipe.schedule(stage, 4, 3)
    assert spell(ops) == "sF0 sF1 sF2 sB2 sB1 sB0 sU0".replace("s", str(stage))


def test_rematerialisation_goes_forward_again_right_before_going_back():
    assert spell(gpipe.schedule(0, 2, 2, recompute=True)) == "0F0 0F1 0R1 0B1 0R0 0B0 0U0"


def test_repeating_a_schedule_numbers_micro_batches_on():
    ops = islice(repeat(gpipe.schedule(0, 2, 2), 2), 10)
    assert spell(ops) == "0F0 0F1 0B1 0B0 0U0 0F2 0F3 0B3 0B2 0U1"


def test_the_text_of_a_schedule_reads_back():
    text = "0F0 0F1 12I3 0W7 0R1 0U0"
    assert spell(parse(text)) == text
    assert parse("2F0") == [Op("F", 2, 0)]


@pytest.mark.parametrize("word", ["F0", "2f0", "2X0", "2F", "2F0B1", "-1F0"])
def test_a_word_that_is_no_op_is_refused_with_an_example(word):
    with pytest.raises(ValueError, match="2F0"):
        parse(f"0F0 {word}")


@pytest.mark.parametrize(
    ("op", "before"),
    [
        ("0F3", ""),
        ("2F3", "1F3"),
        ("2B3", "2F3 3B3"),
        ("3B3", "3F3"),
        ("2R3", "2F3"),
        ("2U0", ""),
    ],
)
def test_what_an_op_waits_for(op, before):
    assert needs(*parse(op), last=3) == tuple(parse(before))


def test_only_the_input_half_of_a_split_backward_waits_for_the_stage_after():
    assert needs(*parse("1I0"), last=2) == tuple(parse("1F0 2B0"))
    assert needs(*parse("1W0"), last=2) == tuple(parse("1I0"))


@pytest.mark.parametrize("stages", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("chunks", [1, 2, 3, 8, 13])
def test_every_generated_schedule_is_complete_and_in_order(stages, chunks):
    for schedule in (gpipe.schedule, pipedream.schedule):
        check([list(schedule(stage, stages, chunks)) for stage in range(stages)])


@pytest.mark.parametrize(
    ("lists", "complaint"),
    [
        (["0F0 0B0", "1F0"], "1B0 is missing"),
        (["0F0 0B0 0F1", "1F0 1F1 1B0 1B1"], "0B1 is missing"),
        (["0F0 0F0 0B0"], "0F0 is done twice"),
        (["0B0 0F0"], "0B0 comes before 0F0"),
        (["0F0 0W0 0I0"], "0W0 comes before 0I0"),
        (["0F0 0I0"], "0W0 is missing"),
    ],
)
def test_a_list_that_cannot_be_is_named(lists, complaint):
    with pytest.raises(ValueError, match=complaint):
        check([parse(ops) for ops in lists])
