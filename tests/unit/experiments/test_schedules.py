"""Studies of schedules. Figures are those of the closed forms in the schedules' own docstrings, worked out by hand."""

import re

import numpy as np
import pytest

from algorithms.parts.pipeline.ops import KINDS
from experiments.study import schedules
from experiments.study.schedules import EXAMPLE, NAMES, OWN, Plan
from tests.quotes import quote

MANY = {"ranks": 4, "chunks": 8}


def done(schedule, **values):
    return schedules.study(Plan.of(schedule=schedule, **{**MANY, **values}))


@pytest.mark.parametrize("name", NAMES)
def test_every_schedule_is_studied_and_the_work_and_the_idle_time_make_up_the_makespan(name):
    s = done(name, latency=0.25)
    per_rank = s.ranks["busy"] + s.ranks["idle"]
    np.testing.assert_allclose(per_rank, s.summary["makespan"])
    slots = np.bincount(s.idle["rank"], s.idle["end"] - s.idle["start"], len(per_rank))
    np.testing.assert_allclose(slots, s.ranks["idle"], atol=1e-9)


@pytest.mark.parametrize("name", sorted({*NAMES} - {OWN}))
def test_schedules_do_the_same_work_however_thin_their_stages_are(name):
    again = {"gpipe_early": 1, "gpipe_late": 1}.get(name, 0)  # a forward more
    np.testing.assert_allclose(done(name).ranks["busy"], 8 * (3 + again))


@pytest.mark.parametrize(
    ("name", "values", "makespan", "idle"),
    [
        ("gpipe", {}, 33, 9),
        ("1f1b", {}, 33, 9),
        ("1f1b", {"inputs": 0.5, "weights": 0.5}, 22, 6),
        ("gpipe_late", {}, 44, 12),
        ("gpipe_early", {}, 41, 9),
        ("interleaved", {}, 28.5, 4.5),
        ("interleaved", {"chunks": 16, "options": {"pieces": 4}}, 50.25, 2.25),
        ("chimera", {"chunks": 4}, 16, 4),
        ("zb_h1", {}, 27, 3),
        ("zb_h1", {"forward": 10, "inputs": 11, "weights": 6}, 261, 45),
        ("zb_v", {"forward": 2, "inputs": 2, "weights": 2}, 51, 3),
        ("dualpipe", {"costs": "F+B=3"}, 26, 2),
    ],
)
def test_makespans_are_those_of_the_literature(name, values, makespan, idle):
    s = done(name, **values)
    assert s.summary["makespan"] == pytest.approx(makespan)
    assert s.summary["idle"] == pytest.approx(idle)


def test_the_three_bubbles_are_told_apart():
    s = done("zb_h2").summary
    assert s["bubble_of_total"] == pytest.approx(3 / 27)
    assert s["bubble_of_ideal"] == pytest.approx(3 / 24)
    assert s["bubble_of_span"] == 0


@pytest.mark.parametrize(
    ("name", "in_flight", "held", "copies", "delay"),
    [
        ("gpipe", 8, 8, 1, 0),
        ("gpipe_late", 8, 1, 1, 0),
        ("1f1b", 4, 4, 1, 0),
        ("interleaved", 5.5, 5.5, 1, 0),
        ("chimera", 4, 4, 2, 0),
        ("dualpipe", 5, 5, 2, 0),
        ("zb_h2", 7, 7, 1, 0),
        ("pipedream", 4, 4, 4, 3),
        ("pipedream_2bw", 4, 4, 2, 1),
        ("systolic", 7, 7, 1, 6),
        ("pipemare", 8, 8, 1, 7),
    ],
)
def test_memory_and_staleness_are_those_of_the_literature(name, in_flight, held, copies, delay):
    s = done(name).summary
    assert (s["in_flight"], s["held"], s["copies"], s["delay"]) == (in_flight, held, copies, delay)


def test_a_pair_that_is_named_costs_a_rank_s_share_of_it_where_stages_are_thin():
    whole, thin = (done(name, costs="F+B=2.5") for name in ("dualpipe", "dualpipe_v"))
    took = [(s.ops["end"] - s.ops["start"])[s.ops["joined"]].max() for s in (whole, thin)]
    assert took == [2.5, 1.25]


def test_the_critical_path_is_as_long_as_the_makespan():
    s = done("1f1b", latency=0.5)
    rows = s.ops["critical"].nonzero()[0]
    length = (s.ops["end"] - s.ops["start"])[rows].sum() + 0.5 * s.summary["path_links"]
    assert length == pytest.approx(s.summary["makespan"])


def test_idle_slots_say_what_they_wait_for():
    s = done("1f1b", latency=0.5)
    words = [s.why(row) for row in range(len(s.idle["rank"]))]
    assert "0B0 waits for 1B0 of rank 1" in words
    assert "1F0 waits for 0F0 to come over the link from rank 0" in words
    assert "nothing left to do" in words


@pytest.mark.parametrize("name", NAMES)
def test_a_study_says_how_many_micro_batches_went_through(name):
    assert done(name).chunks == (2 if name == OWN else 8)


def test_one_op_can_take_longer_than_all_others():
    slow = done("1f1b", costs="2F=3, 0B5=10")
    took = {slow.op(row): slow.ops["end"][row] - slow.ops["start"][row] for row in range(slow.summary["ops"])}
    assert (took["2F0"], took["2F7"], took["1F0"], took["0B5"], took["0B4"]) == (3, 3, 1, 10, 2)


@pytest.mark.parametrize("name", ["1f1b", "zb_v", "dualpipe", "chimera", "gpipe_late"])
def test_a_schedule_that_is_written_out_and_typed_in_again_is_the_same(name):
    s = done(name)
    again = schedules.study(Plan.of(schedule=OWN, own=s.text()))
    for column in s.ops:
        np.testing.assert_array_equal(s.ops[column], again.ops[column])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no ops"),
        ("0F0 0B0\n1F0", "1B0 is missing"),
        ("0F0 0B0 hello", "'hello'"),
        ("0F0 0F0 0B0", "0F0 is done twice"),
        ("0B0 0F0", "0B0 comes before 0F0 on rank 0"),
        ("0F0 0B0 0F1 0B1\n1F1 1B1 1F0 1B0", "rank 0 … 0B0 … 1B0 … rank 1 … 1F1 … 0F1"),
        ("0F0 0U0 0B0", "0U0 … stage 0 … gradient"),
        ("99999999F0 0B0", "stage 99999999 … 2 ops"),
        ("0F99999999 0B99999999", "number them from 0"),
        ("9" * 5000 + "F0", "is not an op"),
        ("0F0 0B0+", "no op after its +"),
        ("+++", "has no ops"),
        ("🍰", "is not an op"),
        ("0F0 " * 60_001, "60,001 ops … at most 60,000"),
    ],
)
def test_an_own_schedule_that_cannot_be_is_refused_with_op_and_rule(text, words):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        schedules.study(Plan.of(schedule=OWN, own=text))
    assert re.search(quote(words), str(refused.value))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"schedule": "gpip"}, "'gpip'"),
        ({"ranks": 0}, "ranks … '0' … 1 to 256"),
        ({"schedule": "interleaved", "chunks": 9}, "9 micro-batches … 4 ranks"),
        ({"schedule": "chimera", "ranks": 3}, "3 ranks cannot be paired"),
        ({"ranks": 256, "chunks": 4096}, "at most 60,000"),
        ({"schedule": "interleaved", "options": {"pieces": 10**9}}, "pieces … '1000000000' … 1 to 64"),
        ({"options": {"policy": "PC"}}, "policy … 'PC' … PA or PB"),
        ({"costs": "2F"}, "'2F' is not a cost"),
        ({"costs": "F=-1"}, "'F=-1' is not a cost"),
        ({"costs": "F=nan"}, "'F=nan' is not a cost"),
        ({"costs": "F=0 B=0"}, "no op … time"),
    ],
)
def test_a_plan_that_cannot_be_is_refused_in_a_sentence(values, words):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as refused:
        schedules.study(Plan.of(**{**MANY, **values}))
    assert re.search(quote(words), str(refused.value))


def test_a_schedule_that_is_made_for_costs_is_told_those_of_the_plan():
    paper = {"ranks": 8, "chunks": 24, "forward": 18.522, "inputs": 18.086, "weights": 9.337, "latency": 0.601}
    found = {name: done(name, **paper).summary["bubble_of_span"] for name in ("zb_1p", "zb_2p")}
    assert found == {"zb_1p": pytest.approx(0.1585, abs=5e-5), "zb_2p": pytest.approx(0.0433, abs=5e-5)}
    assert schedules.options("zb_2p") == {}


def test_the_options_of_a_schedule_are_those_that_its_name_has_not_decided():
    (pieces,) = schedules.options("interleaved").values()
    assert (pieces.name, pieces.kind, pieces.default) == ("pieces", int, 2)
    assert schedules.options("1f1b")["policy"].kind == ("PA", "PB")
    assert "policy" not in schedules.options("dapple_pb")
    assert schedules.options(OWN) == {}


def test_a_plan_is_named_by_what_its_schedule_uses():
    assert Plan.of(schedule="gpipe", own="0F0 0B0", options={"pieces": 3}) == Plan.of(schedule="gpipe")
    assert Plan.of(schedule=OWN, ranks=7).key() == Plan.of(schedule=OWN, own=EXAMPLE).key()
    assert Plan.of(schedule="gpipe").key() != Plan.of(schedule="gpipe", ranks=5).key()


def test_a_study_comes_back_from_its_files(tmp_path):
    s = done("zb_h1", latency=0.5)
    schedules.save(s, tmp_path)
    again = schedules.load(tmp_path)
    assert (again.plan, again.summary) == (s.plan, s.summary)
    for table in ("ops", "idle", "ranks"):
        for name, column in getattr(s, table).items():
            np.testing.assert_array_equal(getattr(again, table)[name], column)
    assert again.why(3) == s.why(3) and KINDS[again.ops["kind"][0]] == "F"
