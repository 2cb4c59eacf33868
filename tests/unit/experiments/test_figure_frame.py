import math

import numpy as np

from experiments.viewer import palette
from experiments.viewer.canvases import figure
from experiments.viewer.column_codec import unpack
from experiments.viewer.look import Look

ROWS = [
    {"law": law, "workers": n, "delay": d, "loss": n * scale + d, "theory": n}
    for d in (0, 5)
    for law, scale in (("a", 1.0), ("b", 2.0))
    for n in (1, 2, 8)
]
SPREAD = [{"loss": (row["loss"] - 0.5, row["loss"] + 1.0)} for row in ROWS]
STILL = Look("workers", ("loss",), "law", theory=("theory",), log="x", title="loss, nats")


def drawn(rows, look, spread=()):
    return unpack(figure.frame(rows, look, spread, "in words"))


def test_a_line_for_each_colour_lies_in_the_band_of_its_seeds_with_one_grey_line_of_theory():
    header, columns = drawn(ROWS[:6], STILL, SPREAD[:6])
    one, other, theory = header["lines"]
    assert [one["key"], other["key"], theory["key"]] == ["a", "b", "theory"]
    assert [one["colour"], theory["colour"]] == [palette.RUNS[0].colour, palette.MUTED]
    assert columns[other["y"]].tolist() == [2, 4, 16]
    assert columns[other["low"]].tolist() == [1.5, 3.5, 15.5] and columns[other["high"]].tolist() == [3, 5, 17]
    assert "low" not in theory and not theory["symbol"]
    assert header["x"]["ticks"] == [1, 2, 8] and header["y"]["name"] == "loss, nats"


def test_no_two_of_nine_lines_look_alike():
    rows = [{"law": str(n), "workers": x, "loss": n} for n in range(9) for x in (1, 2)]
    for theory in ((), ("loss",)):
        header, _ = drawn(rows, Look("workers", ("loss",), "law", theory=theory))
        looks = {(one["colour"], str(one["dash"]), one["symbol"], one["solid"]) for one in header["lines"][:9]}
        assert len(looks) == 9


def test_axes_reach_over_all_stops_of_a_slider_and_each_stop_has_its_lines():
    look = Look("workers", ("loss",), "law", slider="delay")
    header, columns = drawn(ROWS, look, SPREAD)
    assert header["stops"] == {"name": "delay", "values": ["0", "5"]}
    assert [(line["stop"], line["name"]) for line in header["lines"]] == [(0, "a"), (0, "b"), (1, "a"), (1, "b")]
    assert header["y"]["least"] == 0 and header["y"]["most"] > 22
    assert columns[header["lines"][2]["y"]].tolist() == [6, 7, 13]
    colours = [line["colour"] for line in header["lines"]]
    assert colours[:2] == colours[2:]


def test_bars_stand_at_their_words_and_what_is_not_finite_leaves_a_gap():
    rows = [{"net": "smooth", "loss": 1.0}, {"net": "ReLU", "loss": math.inf}]
    header, columns = drawn(rows, Look("net", ("loss",), kind="bar"))
    assert header["x"]["labels"] == ["smooth", "ReLU"] and header["lines"][0]["bar"] == [0, 1]
    assert columns["x0"].tolist() == [0, 1] and np.isnan(columns["y0"][1])


def test_a_logarithmic_axis_leaves_out_what_is_not_above_zero():
    header, _ = drawn([{"x": 1, "y": 0.0}, {"x": 2, "y": 0.1}, {"x": 3, "y": 10.0}], Look("x", ("y",), log="y"))
    assert 0 < header["y"]["least"] < 0.1 and header["y"]["most"] > 10


def test_no_two_of_nine_lines_look_alike_though_there_are_five_colours():
    rows = [{"rule": f"rule {n}", "x": x, "y": n * x} for n in range(9) for x in (1, 2)]
    header, _ = drawn(rows, Look("x", ("y",), "rule"))
    looks = [(line["colour"], tuple(line["dash"]), line["symbol"], line["solid"]) for line in header["lines"]]
    assert len(set(looks)) == 9
    bars, _ = drawn([row for row in rows if row["x"] == 1], Look("x", ("y",), "rule", kind="bar"))
    assert len({(line["colour"], line["hatch"]) for line in bars["lines"]}) == 9


def test_a_theory_that_is_the_same_for_all_lines_is_drawn_once():
    rows = [row | {"theory": row["workers"]} for row in ROWS[:6]]
    header, _ = drawn(rows, STILL)
    assert [line["name"] for line in header["lines"]] == ["a", "b", "theory"]
    rows = [row | {"theory": row["loss"]} for row in ROWS[:6]]
    header, _ = drawn(rows, STILL)
    assert [line["key"] for line in header["lines"]] == ["a", "b", "theory", ""]


def test_bars_stand_side_by_side_also_where_their_names_are_numbers_far_apart():
    header, columns = drawn([{"bound": n, "time": 1.0} for n in (0, 1, 16)], Look("bound", ("time",), kind="bar"))
    assert header["x"]["labels"] == ["0", "1", "16"] and columns["x0"].tolist() == [0, 1, 2]
