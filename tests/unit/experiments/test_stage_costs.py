"""A cut model in a schedule: stages by layer times, and what they cost in units of the schedule."""

import pytest

from experiments.study import partitions
from experiments.study.schedules import Plan, study
from tests.quotes import quote

HEAD = "layer,forward,backward,activations,weights\n"
UNEVEN = HEAD + "a,1,2,0,0\nb,1,2,0,0\nc,2,4,0,0\nd,4,8,0,0"


def cut(text, schedule="1f1b", ranks=2, **more):
    done = study(Plan.of(schedule=schedule, ranks=ranks, **more))
    profile = partitions.read_text(text)
    plan = partitions.plan(profile, [(done.summary["stages"], 1e15)], "min_max")
    return done, partitions.stage_costs(profile, plan, done)


def test_stages_that_are_cut_evenly_take_what_even_stages_do():
    done, costs = cut(UNEVEN)
    assert costs == "0F=1 0B=2 1F=1 1B=2"
    assert study(Plan.of(schedule="1f1b", ranks=2, costs=costs)).summary["makespan"] == done.summary["makespan"]


def test_the_slowest_stage_sets_the_pace_of_a_long_pipeline():
    _, costs = cut(HEAD + "a,1,2,0,0\nb,3,6,0,0", chunks=64)
    assert costs == "0F=0.5 0B=1 1F=1.5 1B=3"
    made = study(Plan.of(schedule="1f1b", ranks=2, chunks=64, costs=costs))
    assert made.summary["makespan"] == pytest.approx(64 * 4.5 + 0.5 + 1)


def test_a_schedule_gets_costs_of_the_kinds_of_ops_that_it_has_for_each_of_its_stages():
    assert cut(UNEVEN, "zb_h1")[1] == "0F=1 0I=1 0W=1 1F=1 1I=1 1W=1"
    assert cut(UNEVEN, "interleaved")[1].split() == [
        *("0F=0.25", "0B=0.5", "1F=0.25", "1B=0.5", "2F=0.5", "2B=1", "3F=1", "3B=2"),
    ]


def test_a_profile_is_read_back_from_its_text():
    text = partitions.profile_text(partitions.read_text(UNEVEN))
    assert partitions.read_text(text) == partitions.read_text(UNEVEN)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no column 'layer'"),
        ("a,b\n1,2", "no column 'layer'"),
        (HEAD + "a,x,1,0,0", "forward of layer a is 'x'"),
        (HEAD + "a,0,0,0,0\nb,0,0,0,0", "no layer … time"),
        (HEAD + "a,0,1,0,0\nb,0,1,0,0", "no forward … time"),
        (HEAD + "a,1,1,0,0", "1 layers … 2"),
        (HEAD + "a,1,1,0,0\n" * 201, "201 layers"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_a_sentence(text, words):
    with pytest.raises(ValueError, match=quote(words)) as refused:
        cut(text)
    assert "\n" not in str(refused.value)


def test_costs_of_too_many_stages_are_refused():
    layers = "".join(f"{n},1,1,0,0\n" for n in range(180))
    with pytest.raises(ValueError, match=quote("180 stages … fewer ranks")):
        cut(HEAD + layers, ranks=180, chunks=1)
