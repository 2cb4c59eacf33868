import re
from dataclasses import replace

import numpy as np
import pytest

from app import charts
from app.charts import Shown
from experiments.specification.experiment import Experiment
from experiments.viewer import palette
from experiments.viewer.bars import html
from experiments.viewer.canvases import curve
from experiments.viewer.column_codec import unpack
from experiments.viewer.curves import AXES, POINTS, Line, mean
from experiments.viewer.pictures import Series, even
from tracing import Trace


@pytest.fixture
def two(made):
    """Two runs, one with a server."""
    return [
        Shown("easgd", made(Experiment(algorithm="easgd", workers=3)), 0),
        Shown("sync", made(Experiment(workers=2, seed=5), stale=False), 1),
    ]


def test_a_curve_has_at_most_so_many_small_numbers(two):
    pictures = [*(charts.loss(two, axis) for axis in AXES), charts.accuracy(two, "seconds")]
    for series in [one for picture in pictures for one in picture.series]:
        for values in (series.x, series.y):
            assert 0 < len(values) <= POINTS and values.dtype == np.float32


def test_a_run_that_is_cut_short_is_smoothed_as_the_run_that_it_is_drawn_over(made):
    whole = made(Experiment(seed=5))
    early = whole.losses["step"] < 15
    cut = replace(whole, losses={name: column[early] for name, column in whole.losses.items()})
    picture = charts.loss([Shown("whole", whole, 0), Shown("cut", cut, 1)], "seconds")
    long, short = (one for one in picture.series if one.name.endswith("training"))
    np.testing.assert_array_equal(short.y[:50], long.y[:50])  # and where it ends it has no neighbours


def test_a_plotly_figure_is_sent_small_numbers(two):
    for figure in (charts.staleness(two), charts.traffic(two[:1]), charts.topology(two[:1])):
        for trace in figure.data:
            for values in (trace.x, trace.y):
                assert np.asarray(values).dtype.kind in "fUO" and np.asarray(values).dtype != np.float64


def test_a_quantity_has_a_picture_with_all_runs_that_measured_it(made):
    shown = [
        Shown("one", made(Experiment(), quantities=("noise", "signal")), 0),
        Shown("two", made(Experiment(seed=5), quantities=("signal", "a", "b")), 1),
    ]
    names = {name: [one.name for one in charts.measurements(shown, name).series] for name in ("noise", "signal", "b")}
    assert names == {"noise": ["one, noise"], "signal": ["one, signal", "two, signal"], "b": ["two, b"]}


def test_a_run_has_its_colour_in_every_chart(two):
    for picture in (charts.loss(two, "step"), charts.accuracy(two, "step")):
        assert {one.colour for one in picture.series} == {palette.RUNS[0].colour, palette.RUNS[1].colour}


def test_a_run_alone_says_in_the_legend_which_line_is_which(two):
    assert [one.key for one in charts.loss(two[:1], "step").series] == ["", "training", "held-out"]
    assert not any(one.key for one in charts.loss(two, "step").series)  # a legend of runs stands above


def test_the_run_before_is_grey_behind_the_others_and_in_the_legend(two):
    now, before = two[0], replace(two[1], name="the run before", ghost=True)
    lines = charts.loss([now, before], "step").series
    assert [one.key for one in lines] == ["the run before", "", "", "training", "held-out"]
    assert {one.colour for one in lines if one.ghost} == {palette.GHOST.colour}
    assert palette.GHOST.colour not in {look.colour for look in palette.RUNS}


def test_a_run_under_way_grows_over_the_run_before(two):
    behind = charts.loss([replace(two[1], name="the run before", ghost=True)], "step", reach=60)
    own = Series(np.array([1.0]), np.array([9.0]), "#000000")
    picture = charts.growing([own], behind)
    assert picture.series[-1] is own and picture.growing
    assert picture.x.most == 60 and picture.y.most > 9
    assert [one.key for one in picture.series if one.key] == ["the run before"]


def test_the_bars_of_the_run_before_lie_below_those_of_as_many_ranks(made):
    now, then, fewer = (Shown("", made(Experiment(workers=n, seed=n)), 0, ghost=n != 2) for n in (2, 2, 3))
    assert charts.shares([now, replace(then, ghost=True)]).behind is not None
    assert charts.shares([now, fewer]).behind is None
    page = html(charts.shares([now, replace(then, ghost=True, name="the run before")]), "in words")
    assert page.count('<span class="behind">') == 2 and "the run before</span>" in page


@pytest.fixture
def seeds(made):
    """One experiment with three seeds, whose losses are 1, 2 and 6 times those of the first, as is their time."""
    runs = [made(Experiment(seed=seed)) for seed in range(3)]
    for run, factor in zip(runs[1:], (2.0, 6.0), strict=True):
        run.losses = {**runs[0].losses, "loss": factor * runs[0].losses["loss"]}
        run.evaluations = {**runs[0].evaluations, "loss": factor * runs[0].evaluations["loss"]}
    return Shown("three", runs[0], 0, others=tuple(runs[1:]))


def test_runs_that_differ_in_their_seed_are_drawn_as_their_mean_in_a_band_of_one_standard_deviation(seeds):
    one, three = (charts.loss([s], "step").series for s in (Shown("one", seeds.run, 0), seeds))
    assert [line.name for line in three] == ["training", "held-out"]  # no mini-batches of one seed behind them
    for alone, line in zip(one[1:], three, strict=True):
        np.testing.assert_allclose(line.y, 3 * alone.y, rtol=1e-5)
        np.testing.assert_allclose(line.error, np.std([1, 2, 6], ddof=1) * alone.y, rtol=1e-5)
        assert alone.error is None
    assert three[0].band


def test_a_mean_reaches_as_far_as_all_of_its_lines_do():
    def line(x, y):
        return Line(np.array(x, "f4"), np.array(y, "f4"))

    got = mean([line([0, 1, 2, 3], [0, 1, 2, 3]), line([0.5, 2.5], [1.5, 3.5])])
    assert got.x.tolist() == [1, 2] and got.y.tolist() == [1.5, 2.5]
    np.testing.assert_allclose(got.error, np.sqrt(0.5), rtol=1e-6)
    alone = line([0, 1], [5, 6])
    assert mean([alone]) is alone and mean([alone, line([], [])]) is alone


def test_an_accuracy_tells_its_standard_error_at_the_pointer_and_has_a_band_over_seeds_alone(seeds):
    (one,) = charts.accuracy([Shown("one", seeds.run, 0)], "step").series
    share = one.y / 100
    np.testing.assert_allclose(one.error, 100 * np.sqrt(share * (1 - share) / 360), rtol=1e-4)
    (three,) = charts.accuracy([seeds], "step").series
    assert not one.band and three.band and not three.error.any()  # all three have the same accuracies
    header, columns = unpack(curve.frame(charts.accuracy([seeds], "step"), "in words"))
    assert header["lines"][0]["band"] and len(columns[header["lines"][0]["error"]]) == len(three.x)


def test_a_kind_has_its_colour_in_the_bars(two):
    bars = {part.name: part.colour for part in charts.shares(two[:1]).parts}
    assert bars == {kind: palette.DOING[kind].colour for kind in bars}
    assert "compute" in bars


def test_the_bars_of_a_rank_are_the_whole_of_its_time(two):
    total = sum(part.values for part in charts.shares(two[:1]).parts)
    np.testing.assert_allclose(total[1:], 100, rtol=1e-5)  # the server of this run did nothing at all


def test_a_bar_is_as_wide_as_its_share_and_tells_it_in_words(two):
    bars = charts.shares(two[:1])
    page = html(bars, "in words")
    compute = next(part for part in bars.parts if part.name == "compute")
    assert f'<i style="width: {compute.values[1]:.3f}%; background: {compute.colour}" title="worker 1 · compute' in page
    assert sum(float(width) for width in re.findall(r"width: ([\d.]+)%", page)) == pytest.approx(300, abs=0.1)
    assert 'aria-label="in words"' in page and re.findall(r"%\">([\d.]+)</span>", page) == [
        "0",
        "25",
        "50",
        "75",
        "100",
    ]


def test_the_matrix_holds_the_bytes_of_every_link(two):
    (heat,) = charts.traffic(two[:1]).data
    np.testing.assert_allclose(np.nan_to_num(np.asarray(heat.z)), two[0].run.trace.traffic())


def test_the_matrix_has_a_scale_and_numbers_in_its_cells_while_they_have_room(made):
    for workers, numbered in ((16, True), (17, False)):
        (heat,) = charts.traffic([Shown("a", made(Experiment(workers=workers, batch=8)), 0)]).data
        unit = {"kB": 1e3, "MB": 1e6}[heat.colorbar.title.text]
        assert float(heat.colorbar.ticktext[-1]) * unit == pytest.approx(heat.zmax, rel=1e-2)
        assert (heat.text is not None) is numbered
    assert heat.colorbar.tickvals[-1] == heat.zmax


def test_every_pair_that_talks_has_a_link_as_wide_as_its_bytes(two, monkeypatch):
    table = two[0].run.trace.traffic()
    table[1, 0] *= 3
    monkeypatch.setattr(Trace, "traffic", lambda _: table)
    *lines, middles, ranks = charts.topology(two[:1]).data
    both = np.triu(table + table.T)
    assert len(middles.x) == np.count_nonzero(both) == sum(np.isnan(line.x).sum() for line in lines)
    assert [line.line.width for line in lines] == [charts.WIDEST // 3 + 1, charts.WIDEST]
    np.testing.assert_allclose(middles.x[0], (ranks.x[0] + ranks.x[1]) / 2)
    assert middles.customdata[0].startswith("server 0 to worker 1: 0 B<br>worker 1 to server 0: 6.24 MB")


def test_a_server_stands_in_the_middle_of_its_workers(two):
    *_, ranks = charts.topology(two[:1]).data
    np.testing.assert_allclose(np.hypot(ranks.x, ranks.y), [0, 1, 1, 1], atol=1e-6)
    assert ranks.marker.symbol[0] == "square" and set(ranks.marker.symbol[1:]) == {"circle"}


def test_of_very_many_links_the_busiest_are_drawn(made, monkeypatch):
    run = made(Experiment(workers=40))
    table = np.add.outer(np.arange(40.0), np.arange(40.0))
    monkeypatch.setattr(Trace, "traffic", lambda _: table)
    *_, middles, _ = charts.topology([Shown("many", run, 0)]).data
    assert len(middles.x) == charts.LINKS


def test_the_bars_of_memory_are_what_a_rank_held_at_its_fullest(two):
    bars = charts.memory(two[:1])
    assert [part.name for part in bars.parts] == ["parameters", "gradients", "activations"]
    assert sum(part.values for part in bars.parts)[0] == pytest.approx(4 * 13 * (1 + 2 + 4))  # kB
    assert {part.name: part.colour for part in bars.parts} == {
        part.name: palette.HOLDING[part.name][0] for part in bars.parts
    }


def test_what_a_rank_has_is_a_line_across_the_bars_of_memory(made):
    bars = charts.memory([Shown("tight", made(Experiment(rank_memory=2e6)), 0)])
    assert bars.line[0] == bars.most == 2.0 and "memory of a worker" in html(bars, "")


def test_how_late_each_stage_is_stands_rank_by_rank(made):
    run = made(Experiment(algorithm="pipedream", workers=3), quantities=("version gap",))
    run.applied["rank"] = np.arange(len(run.applied["rank"])) % 3
    run.applied["staleness"] = 2 - run.applied["rank"]
    (bars,) = charts.by_rank([Shown("pipe", run, 0)]).data  # rank 0 alone measured a gap
    assert list(bars.y) == ["stage 0", "stage 1", "stage 2"] and list(bars.x) == [2, 1, 0]


def test_stages_that_keep_old_weights_say_how_many_versions_they_hold(made):
    run = made(Experiment(algorithm="pipedream", workers=2), stale=False)
    rows = [(0, 100), (1, 50), (0, 200), (0, 300), (1, 50)]
    run.memory = {
        "rank": np.array([rank for rank, _ in rows]), "bytes": np.array([size for _, size in rows]),
        "kind": np.zeros(5, np.int8),
    }  # fmt: skip
    ranks, mean, most = charts.rank_series(run)["versions of the weights"]
    assert (list(ranks), list(mean), list(most)) == ([0, 1], [2, 1], [3, 1])
    run.memory["bytes"] = np.array([100, 50, 100, 100, 50])
    assert "versions of the weights" not in charts.rank_series(run)


def test_the_shares_of_staleness_add_up(two):
    (bars,) = charts.staleness(two).data  # the synchronous run has none
    assert sum(bars.y) == pytest.approx(100, rel=1e-5)


def test_times_are_drawn_in_a_unit_that_people_read(two):
    x = charts.loss(two, "seconds").x
    assert (x.name, x.unit) == ("time", "ms") and 1 < x.most < 1000


def test_hundreds_of_ranks_are_drawn_in_groups(made):
    shown = [Shown("many", made(Experiment(workers=130)), 0)]
    assert len(charts.traffic(shown).data[0].y) == charts.RANKS
    bars = charts.shares(shown)
    assert len(bars.ranks) == len(bars.parts[0].values) == 16 and "mean of" in bars.title
    assert "at least" in bars.parts[0].words[0] and "at the median" in bars.parts[0].words[0]
    assert len(charts.topology(shown).data[-1].x) == charts.RANKS
    assert len(charts.memory(shown).ranks) == len(charts.memory(shown).parts[0].values) == 16


def test_a_last_leap_does_not_flatten_the_curve(two):
    two[0].run.losses["loss"][-1] = 1e9
    assert charts.loss(two, "step").y.most < 100


def test_ranks_are_called_by_their_role(made):
    assert charts.lane_names(made(Experiment(algorithm="easgd", workers=2))) == ["server 0", "worker 1", "worker 2"]
    assert charts.lane_names(made(Experiment(algorithm="gpipe", workers=2))) == ["stage 0", "stage 1"]
    assert charts.lane_names(made(Experiment(algorithm="ddg", workers=2))) == ["module 0", "module 1"]


def test_a_logarithmic_axis_holds_every_loss_that_has_a_logarithm(two):
    two[0].run.losses["loss"][-1] = 0.0
    y = charts.loss(two, "step", log=True).y
    assert y.log and 0 < y.least < 1 < y.most


def test_a_run_that_recorded_nothing_has_empty_axes(made):
    run = made(Experiment())
    run.losses = {name: column[:0] for name, column in run.losses.items()}
    run.evaluations = {name: column[:0] for name, column in run.evaluations.items()}
    for picture in (charts.loss([Shown("none", run, 0)], "bytes"), charts.accuracy([Shown("none", run, 0)], "step")):
        assert picture.x.most > picture.x.least and picture.y.most > picture.y.least


def test_a_divergence_leaves_the_axis_above_four_times_its_start_and_is_crossed_where_it_ended(made):
    gone = made(Experiment(), status="diverged")
    gone.losses["loss"][-40:] = np.geomspace(1, 1e30, 40)
    gone.losses["loss"][-1] = np.nan
    picture = charts.loss([Shown("gone", gone, 0)], "step")
    start = picture.series[1].y[0]
    assert picture.y.most == pytest.approx(4 * start * 1.08)
    assert [one.ended for one in picture.series] == ["", "diverged", ""]


def test_a_run_that_diverged_does_not_set_the_axis_of_those_that_did_not(made):
    calm, gone = made(Experiment()), made(Experiment(seed=1), status="diverged")
    gone.losses["loss"][-40:] = np.geomspace(1, 1e30, 40)
    gone.evaluations["loss"][-5:] = 1e30
    before = Shown("the run before", gone, 0, ghost=True)
    for log in (False, True):
        alone = charts.loss([Shown("calm", calm, 0)], "step", log)
        assert charts.loss([Shown("calm", calm, 0), before], "step", log).y == alone.y
        behind = charts.loss([before], "step", log)
        assert charts.growing(alone.series, behind, log).y == alone.y
    assert charts.reach([Shown("calm", calm, 0), before], "step")[1] == charts.reach([Shown("", calm, 0)], "step")[1]


def test_marks_are_even_where_reports_come_in_groups():
    grouped = np.cumsum([0, *[4, 4, 4, 8] * 10])
    assert even(grouped) == 4 and set(np.diff(grouped[::-1][:: even(grouped)])) == {-20}
    assert even(np.arange(0.0, 200.0, 5.0)) == 1
    assert even(np.zeros(0)) == 1 and even(np.sort(np.random.default_rng(0).random(40))) == 1


def test_a_matrix_of_traffic_says_who_sends_and_who_receives(two):
    axes = charts.traffic(two[:1]).layout
    assert (axes.xaxis.title.text, axes.yaxis.title.text) == ("to rank", "from rank")


def test_the_label_of_a_link_stands_beside_it_however_the_link_runs(made):
    *_, middles, _ = charts.topology([Shown("ring", made(Experiment(workers=4)), 0)]).data
    sides = dict(zip(zip(np.sign(middles.x), np.sign(middles.y), strict=True), middles.textposition, strict=True))
    assert sides[1, 1] == "top right" and sides[-1, 1] == "bottom right"


def test_the_label_of_a_link_says_which_ways_its_bytes_go(two, monkeypatch):
    table = np.zeros((two[0].run.trace.ranks,) * 2)
    table[0, 1] = table[1, 0] = table[0, 2] = table[0, 3] = 2e6
    table[3, 0] = 1e6
    monkeypatch.setattr(Trace, "traffic", lambda _: table)
    *_, middles, _ = charts.topology(two[:1]).data
    said = [label.replace("<br>", " ").strip() for label in middles.text]
    assert said == ["2 MB each way", "3 MB both ways", "2 MB"]  # the busiest first


def test_the_time_per_step_of_a_sweep_has_one_unit(made):
    shown = [Shown(str(n), made(Experiment(workers=n)), 0) for n in (1, 2)]
    figure = charts.step_time(shown, (1, 2), None)
    (line,) = figure.data
    assert figure.layout.yaxis.title.text == "ms per step" and " ms a step" in line.hovertemplate
    assert all(1 <= value < 1000 for value in line.y)
