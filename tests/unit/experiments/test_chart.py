"""Chart: rows become the figure that was declared, or the one that suggests itself."""

import math

import pytest

from experiments.exports.chart import chart, page, write_rows
from experiments.viewer import palette
from experiments.viewer.look import Look, guess

ROWS = [
    {"law": law, "workers": n, "step": n * k, "theory": n + k, "note": "-"}
    for law, k in (("flat", 1), ("steep", 2.5))
    for n in (2, 8, 32)
]


@pytest.mark.parametrize(
    ("rows", "look"),
    [
        (ROWS, Look("workers", ("step",), "law")),
        ([{"start": "none", "loss": 2.0}, {"start": "gradual", "loss": 1.0}], Look("start", ("loss",), kind="bar")),
        ([{"b": 1, "s": 9, "t": 1.0}, {"b": 2, "s": 9, "t": 2.0}], Look("b", ("s",))),
        ([{"k": "a", "on": True, "v": 1}, {"k": "a", "on": False, "v": 2}], Look("k", ("v",), "on", "bar")),
        ([{"only": 3}], Look("only", ("only",))),
        (
            [{"n": 2, "ring": 1, "tree": 2, "bytes": 90}, {"n": 4, "ring": 5, "tree": 3, "bytes": 90}],
            Look("n", ("ring", "tree")),
        ),
    ],
)
def test_what_was_varied_goes_across_and_what_came_of_it_goes_up(rows, look):
    assert guess(rows) == look
    assert chart(rows).data


def test_there_is_a_line_for_each_group_and_a_grey_one_for_its_theory():
    figure = chart(ROWS, Look("workers", ("step",), "law", theory=("theory",), log="xy"))
    assert [trace.name for trace in figure.data] == ["flat", "steep", "theory", "theory"]
    measured, theory = figure.data[0], figure.data[2]
    assert (list(measured.x), list(measured.y), list(theory.y)) == ([2, 8, 32], [2, 8, 32], [3, 9, 33])
    assert (measured.mode, theory.mode, theory.line.dash) == ("lines+markers", "lines", "dot")
    assert [trace.showlegend for trace in figure.data[2:]] == [True, False]
    assert figure.layout.xaxis.type == figure.layout.yaxis.type == "log"
    assert list(figure.layout.xaxis.tickvals) == [2, 8, 32]


def test_where_seeds_differ_a_line_has_a_band_and_a_bar_a_whisker():
    spread = [{"step": (row["step"] - 1, row["step"] + 2)} if row["law"] == "steep" else {} for row in ROWS]
    lines = chart(ROWS, Look("workers", ("step",), "law"), spread)
    assert [trace.name for trace in lines.data] == ["flat", "steep", "steep, range"] and lines.layout.showlegend
    band = lines.data[2]
    assert list(band.x) == [2, 8, 32, 32, 8, 2] and list(band.y) == [7, 22, 82, 79, 19, 4]
    assert (band.fill, band.mode, band.showlegend) == ("toself", "none", False)
    bars = chart(ROWS, Look("law", ("step",), "workers", kind="bar"), spread).data
    assert (list(bars[0].error_y.array), list(bars[0].error_y.arrayminus)) == ([0, 2], [0, 1])


def test_a_logarithmic_scale_says_its_numbers_in_full_and_powers_of_ten_where_they_are_far_apart():
    near, far = ([{"b": 1, "loss": 0.3}, {"b": 2, "loss": high}] for high in (2.0, 2000.0))
    axis = chart(near, Look("b", ("loss",), log="y")).layout.yaxis
    assert dict(zip(axis.ticktext, axis.tickvals, strict=True)).items() >= {"0.2": 0.2, "0.5": 0.5, "1": 1}.items()
    axis = chart(far, Look("b", ("loss",), log="y")).layout.yaxis
    assert (axis.tickvals, axis.dtick, axis.exponentformat) == (None, 1, "power")
    wide = [{"b": 1, "loss": 1e-3}, {"b": 2, "loss": 1e22}]
    assert chart(wide, Look("b", ("loss",), log="y")).layout.yaxis.dtick == 4


def test_a_theory_that_is_the_same_for_all_is_drawn_once():
    rows = [row | {"theory": row["workers"]} for row in ROWS]
    names = [trace.name for trace in chart(rows, Look("workers", ("step",), "law", theory=("theory",))).data]
    assert names == ["flat", "steep", "theory"]


def test_bars_stand_side_by_side_also_where_their_names_are_numbers_far_apart():
    figure = chart([{"bound": bound, "time": 1.0} for bound in (0, 1, 16)], Look("bound", ("time",), kind="bar"))
    assert (figure.layout.xaxis.type, list(figure.data[0].x)) == ("category", ["0", "1", "16"])


def test_a_logarithmic_axis_has_words_where_points_are_unless_they_would_run_into_each_other():
    def words(*places):
        return chart([{"n": n, "t": 1.0} for n in places], Look("n", ("t",), log="x")).layout.xaxis.ticktext

    assert words(64, 4096, 262_144) == ("64", "4096", "262k")
    assert words(1, 30, 10_000, 2_000_000) == ("1", "30", "10k", "2M")
    assert words(100, 101, 150)[:2] == ("100", "200")
    assert words(0.195544, 3.1, 28.9)[:3] == ("0.1", "0.2", "0.5")


def test_ten_lines_or_bars_are_all_drawn_in_ways_of_their_own():
    rows = [{"n": n, "way": f"way {n}", "t": 1.0} for n in range(10)]
    lines = chart(rows, Look("n", ("t",), "way")).data
    assert len({(t.line.dash, t.marker.symbol, t.line.color) for t in lines}) == 10
    bars = chart(rows, Look("n", ("t",), "way", kind="bar")).data
    assert len({(t.marker.pattern.shape, t.marker.color) for t in bars}) == 10


def test_groups_differ_in_more_than_colour():
    lines = chart(ROWS, Look("workers", ("step",), "law")).data
    assert len({(t.line.dash, t.marker.symbol) for t in lines}) == 2
    bars = chart(ROWS, Look("law", ("step",), "workers", kind="bar")).data
    assert [t.name for t in bars] == ["workers 2", "workers 8", "workers 32"]
    assert len({t.marker.pattern.shape for t in bars}) == 3


def test_colours_are_those_of_the_palette():
    lines = chart(ROWS, Look("workers", ("step",), "law", theory=("theory",))).data
    assert [t.line.color for t in lines if t.mode == "lines+markers"] == [line.colour for line in palette.RUNS[:2]]
    assert {t.line.color for t in lines if t.mode == "lines"} == {palette.MUTED}


def test_what_was_never_reached_leaves_a_gap():
    rows = [{"b": 1, "t": math.inf}, {"b": 2, "t": 3.0}]
    assert list(chart(rows, Look("b", ("t",))).data[0].y) == [None, 3.0]


def test_a_look_survives_json():
    look = Look("workers", ("step", "theory"), "law", "bar", title="t")
    assert Look.of(look.plain()) == look


def test_a_page_holds_its_figures_and_escapes_its_words():
    text = page("<A>", [("B & C", "d", chart(ROWS)), ("E", "f", chart(ROWS))])
    assert "&lt;A&gt;" in text and "B &amp; C" in text and text.count("Plotly.newPlot") >= 2


def test_rows_are_written_with_a_header(tmp_path):
    path = write_rows(ROWS[:2], tmp_path / "deep" / "rows.csv")
    assert path.read_text().splitlines() == ["law,workers,step,theory,note", "flat,2,2,3,-", "flat,8,8,9,-"]
