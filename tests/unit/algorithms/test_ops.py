"""Schedules as data: their text, what an op waits for, and lists that cannot be."""

import pytest

from algorithms.parts.pipeline.ops import Op, Overlapped, check, needs, parse, rematerialise, spell
from tests.quotes import quote


def test_the_text_of_a_schedule_reads_back():
    text = "0F0 0F1 12I3 0W7 0R1 3F6+0B2 0U0"
    assert spell(parse(text)) == text
    assert parse("2F0") == [Op("F", 2, 0)]


def test_joined_ops_are_ops_that_begin_and_end_together():
    ops = parse("3F6+0B2 1F0")
    assert [type(op) for op in ops] == [Overlapped, Op, Op]
    assert ops == parse("3F6 0B2 1F0")  # for all who do not ask for times
    assert type(ops[0]._replace(chunk=9)) is Overlapped


def test_rematerialisation_goes_forward_again_right_before_going_back():
    assert spell(rematerialise(parse("0F0 0F1 0B1 0I0 0W0 0U0"))) == "0F0 0F1 0R1 0B1 0R0 0I0 0W0 0U0"
    assert spell(rematerialise(parse("0F0 0B0"), late=True)) == "0F0 0R0+0B0"


@pytest.mark.parametrize("word", ["F0", "2f0", "2X0", "2F", "2F0B1", "-1F0", "+"])
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


@pytest.mark.parametrize(
    ("lists", "complaint"),
    [
        (["0F0 0B0", "1F0"], "1B0 is missing"),
        (["0F0 0B0 0F1", "1F0 1F1 1B0 1B1"], "0B1 is missing"),
        (["0F0 0B0", "2F0 2B0"], "1F0 is missing"),
        (["0F0 0F0 0B0"], r"0F0 … twice … rank 0."),
        (["0F0 0B0", "0F0"], r"0F0 … twice … rank 0 … rank 1."),
        (["0F0 0B0 0U0 0U0"], "0U0 is done twice"),
        (["0B0 0F0"], "0B0 comes before 0F0 on rank 0"),
        (["0F0 0W0 0I0"], "0W0 comes before 0I0"),
        (["0F0 0B0 0R0"], "0B0 comes before 0R0"),
        (["0F0 0I0"], "0W0 is missing"),
        (["0F0 0I0 0B0 0W0"], "0B0 … halves … remove 0I0"),
        (["0F0 1F0 1B0", "0B0"], "0B0 … rank 1 … 0F0 … rank 0"),
        (["0F0 0B0+"], "0B0+ … end of rank 0"),
        (["0F0 0B0 0U0", "0F1 0B1"], "0U0 … stage 0 … rank 1 … does not"),
        (["0F0 0B0 0U0", "0U0"], "rank 1 … does not hold"),
    ],
)
def test_a_list_that_cannot_be_is_refused_with_the_op_and_the_rule(lists, complaint):
    with pytest.raises(ValueError, match=quote(complaint)):
        check([parse(ops) for ops in lists])


def test_a_rank_may_hold_several_stages_and_a_stage_may_be_on_several_ranks():
    check([parse("0F0 1F1 1B1 0B0 0U0 1U0"), parse("0F1 1F0 1B0 0B1 0U0 1U0")])
