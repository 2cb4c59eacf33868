"""The picture of a sweep: every loss at its place, and nothing drawn over settings that are no numbers."""

import re
from xml.etree import ElementTree

import pytest

from experiments.exports.sweep_plot import sweep_svg
from experiments.runs.record import RunOutcome
from experiments.specification.experiment import Experiment


def outcome(loss, status="finished", **settings):
    return RunOutcome(Experiment.of({"algorithm": "easgd", **settings}), status, {"held_out_loss": loss}, None, {})


def texts(svg):
    return [one.text for one in ElementTree.fromstring(svg).iter() if one.tag.endswith("text")]


def test_two_settings_with_numbers_make_a_map_with_the_mean_over_seeds_in_each_cell():
    runs = [
        outcome(loss + 0.2 * seed, workers=w, period=p, seed=seed)
        for (w, p, loss) in ((2, 1, 1.0), (2, 8, 2.0), (4, 1, 3.0), (4, 8, 4.0))
        for seed in (0, 1)
    ]
    said = texts(sweep_svg(runs, ["workers", "period", "seed"]))
    assert [text for text in said if "." in text] == ["1.10", "3.10", "2.10", "4.10"]  # a row for each period
    assert said[-2:] == ["workers", "period"]


def test_one_setting_makes_a_line_for_each_value_of_the_others_with_a_band_over_seeds():
    runs = [
        outcome(0.1 * w + 0.01 * seed, algorithm=name, workers=w, seed=seed)
        for name in ("easgd", "local_sgd")
        for w in (1, 2, 4)
        for seed in (0, 1)
    ]
    svg = sweep_svg(runs, ["algorithm", "workers", "seed"])
    assert {"algorithm easgd", "algorithm local_sgd", "workers"} <= {*texts(svg)}
    assert svg.count('fill="none"') == 2 and svg.count('opacity="0.16"') == 2


def test_a_band_stays_inside_the_picture():
    runs = [outcome(loss, workers=w, seed=seed) for w in (1, 2) for seed, loss in ((0, 0.5), (1, 2.5))]
    (path,) = re.findall(r'<path d="M([^"]*)Z"', sweep_svg(runs, ["workers", "seed"]))
    heights = [float(pair.split()[1]) for pair in path.split("L")]
    assert min(heights) >= 62 and max(heights) <= 256  # the margins of a plot


def test_points_of_a_range_are_marks_without_lines_and_a_diverged_run_is_none():
    runs = [outcome(0.5, workers=2, period=p) for p in (1, 5, 9)] + [outcome(0.1, "diverged", workers=2, period=7)]
    svg = sweep_svg(runs, ["period"], lines=False)
    assert svg.count("<circle") == 3 and 'fill="none"' not in svg


def test_settings_without_numbers_are_refused():
    with pytest.raises(ValueError, match="no setting that was varied has numbers"):
        sweep_svg([outcome(1.0, algorithm=name) for name in ("easgd", "local_sgd")], ["algorithm"])
