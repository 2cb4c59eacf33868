"""Charts of characters: what a reader sees of a schedule, with colours and without."""

import re

import numpy as np
import pytest

from experiments.exports.gantt import LOOKS, chart, pieces
from experiments.study.schedules import OWN, Plan, study
from theory.schedules import SCHEDULES


def drawn(schedule, width=80, **values):
    """(the study, its chart)."""
    done = study(Plan.of(schedule=schedule, **values))
    return done, chart(done, width)


def lanes(text):
    """What is drawn for each rank, parts put together."""
    found = {}
    for rank, lane in re.findall(r"^rank (\d+) +?(\S.*| .*)$", text.plain, re.MULTILINE):
        found[rank] = found.get(rank, "") + lane.removeprefix(" ")
    return [*found.values()]


def test_a_cell_is_a_unit_of_time_as_in_the_drawings_of_the_book():
    _, text = drawn("chimera", chunks=4)
    assert text.plain.splitlines()[:5] == [
        "time    0     2     4     6     8     10    12    14    16",
        "rank 0  F0 F1 .. f2 b2    f3 b3    .. B0    .. .. B1    ",
        "rank 1  .. F0 f2 F1 f3 .. b2    B0    b3    B1    .. .. ",
        "rank 2  .. F2 f0 F3 f1 .. b0    B2    b1    B3    .. .. ",
        "rank 3  F2 F3 .. f0 b0    f1 b1    .. B2    .. .. B3    ",
    ]
    assert text.plain.endswith("a cell spans a time of 1; small letters: the second stage of a rank")


def test_cells_close_up_where_there_is_no_room_between_them():
    _, text = drawn("zb_h1", ranks=2, chunks=3, width=60)
    assert lanes(text) == ["F0 F1 .. I0 W0 F2 I1 W1 I2 W2 ", ".. F0 I0 F1 I1 W0 F2 I2 W1 W2 "]
    _, text = drawn("zb_h1", ranks=2, chunks=3, width=28)
    assert lanes(text) == ["F0F1..I0W0F2I1W1I2W2", "..F0I0F1I1W0F2I2W1W2"]


def test_a_chart_that_is_too_wide_goes_on_below_with_a_ruler_of_its_own():
    _, text = drawn("zb_h1", ranks=2, chunks=3, width=20)
    assert text.plain.splitlines()[:7] == [
        "time    0   2   4",
        "rank 0  F0F1..I0W0F2",
        "rank 1  ..F0I0F1I1W0",
        "",
        "time    6   8   10",
        "rank 0  I1W1I2W2",
        "rank 1  F2I2W1W2",
    ]


def test_costs_that_have_no_common_unit_are_drawn_to_scale():
    done, text = drawn("zb_h1", forward=1.03, inputs=1.1, weights=0.87)
    rows = lanes(text)
    assert {len(row) for row in rows} == {72}
    for piece in pieces(done):
        first, last = (round(time / done.summary["makespan"] * 72) for time in (piece.start, piece.end))
        assert rows[piece.rank][first:last].rstrip() == piece.name


def test_the_unit_is_the_largest_that_all_costs_and_the_latency_are_multiples_of():
    assert "a cell spans a time of 1" in drawn("1f1b", chunks=2)[1].plain
    assert "a cell spans a time of 1" in drawn("1f1b", chunks=2, forward=2, inputs=1.5, weights=1.5)[1].plain
    assert "a cell spans a time of 0.5" in drawn("1f1b", chunks=2, latency=0.5)[1].plain
    assert "a cell spans a time of 2e-06" in drawn("gpipe", chunks=2, forward=2e-6, inputs=2e-6, weights=4e-6)[1].plain


def test_what_is_too_long_to_be_read_is_squeezed_to_the_letters_of_what_takes_most_time():
    done, text = drawn("1f1b", ranks=4, chunks=64)
    rows = lanes(text)
    assert [len(row) for row in rows] == [72] * 4 and {*"".join(rows)} == {*"FB."}
    assert "a column spans a time of 2.792 and has the letter of the op" in text.plain
    idle = sum(row.count(".") for row in rows) / (4 * 72)
    assert idle == pytest.approx(done.summary["bubble_of_total"], abs=0.02)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal_and_as_many_dots_as_idle_time(name, width):
    done, text = drawn(name, width)
    body = text.plain.split("\n\nF forward")[0].splitlines()
    assert max(map(len, body)) <= width
    if "letter of the op" in text.plain:
        return
    unit = float(re.search(r"a (?:cell|column) spans a time of ([\d.]+)", text.plain)[1])
    for lane, idle in zip(lanes(text), done.ranks["idle"], strict=True):
        cell = len(lane) / round(done.summary["makespan"] / unit)
        slots = len("".join(re.findall(r"(?:\.+ ?)+", lane))) / cell
        assert slots * unit == pytest.approx(idle, abs=1e-2)


def test_ops_that_are_joined_stand_together():
    assert "R3+B3 R2+B2" in drawn("gpipe_late", chunks=4)[1].plain
    assert "F3+b5" in drawn("dualpipe")[1].plain


def test_where_ranks_hold_more_than_two_stages_names_say_which():
    _, text = drawn("interleaved", ranks=2, chunks=2, width=120, options={"pieces": 3})
    assert (
        lanes(text)[0].startswith("0F0 0F1 2F0 2F1 4F0 4F1 ") and "names are stage, kind and micro-batch" in text.plain
    )


def test_updates_that_cost_something_are_drawn_and_others_are_not():
    assert "U0" not in drawn("pipedream", ranks=2, chunks=2)[1].plain
    assert "U0" in drawn("pipedream", ranks=2, chunks=2, costs="U=1")[1].plain


def test_colours_are_by_kind_and_a_pair_has_both():
    _, text = drawn("gpipe_late", ranks=2, chunks=1)
    colours = {text.plain[span.start : span.end].strip(): span.style for span in text.spans}
    assert colours["F"] == colours["F0"] == LOOKS["F"][1]
    assert colours["R0+"] == LOOKS["R"][1] and colours["B0"] == LOOKS["B"][1]
    assert len({style for _, style in LOOKS.values()}) == len(LOOKS)


def test_a_schedule_of_one_s_own_may_leave_ranks_with_little():
    _, text = drawn(OWN, own="0F0 0F1 0B0 0B1\n1F0 1F1 1B0 1B1")
    assert np.unique([len(lane) for lane in lanes(text)]).size == 1
