import numpy as np
import pytest

from app import charts, palette
from app.charts import Shown
from app.curves import AXES, POINTS
from cluster.trace import Trace
from experiments.experiment import Experiment


@pytest.fixture
def two(made):
    """Two runs, one with a server."""
    return [
        Shown("easgd", made(Experiment(algorithm="easgd", workers=3)), 0),
        Shown("sync", made(Experiment(workers=2, seed=5), stale=False), 1),
    ]


def figures(shown):
    return [
        *(charts.loss(shown, axis) for axis in AXES),
        charts.loss(shown, "step", log=True),
        charts.accuracy(shown, "seconds"),
        charts.staleness(shown),
        charts.traffic(shown[:1]),
        charts.topology(shown[:1]),
        charts.memory(shown[:1]),
        charts.shares(shown[:1]),
    ]


def test_a_curve_has_at_most_so_many_small_numbers(two):
    for figure in figures(two):
        for trace in figure.data:
            for values in (trace.x, trace.y):
                assert len(values) <= POINTS
                assert np.asarray(values).dtype.kind in "fUO" and np.asarray(values).dtype != np.float64


def test_every_quantity_has_a_picture_of_its_own_with_all_runs_that_measured_it(made):
    shown = [
        Shown("one", made(Experiment(), quantities=("noise", "signal")), 0),
        Shown("two", made(Experiment(seed=5), quantities=("signal", "a", "b")), 1),
    ]
    figure = charts.measured(shown)
    assert [note.text for note in figure.layout.annotations] == ["noise", "signal", "a", "b"]
    assert [(trace.name, trace.xaxis) for trace in figure.data] == [
        ("one", "x"), ("one", "x2"), ("two", "x2"), ("two", "x3"), ("two", "x4")
    ]  # fmt: skip


def test_a_run_has_its_colour_in_every_chart(two):
    for figure in (charts.loss(two, "step"), charts.accuracy(two, "step")):
        assert {trace.line.color or trace.marker.line.color for trace in figure.data} == {
            palette.RUNS[0].colour,
            palette.RUNS[1].colour,
        }


def test_a_kind_has_its_colour_in_the_bars(two):
    bars = {bar.name: bar.marker.color for bar in charts.shares(two[:1]).data}
    assert bars == {kind: palette.DOING[kind].colour for kind in bars}
    assert "compute" in bars


def test_the_bars_of_a_rank_are_the_whole_of_its_time(two):
    total = sum(np.asarray(bar.x, float) for bar in charts.shares(two[:1]).data)
    np.testing.assert_allclose(total[1:], 100, rtol=1e-5)  # the server of this run did nothing at all


def test_the_matrix_holds_the_bytes_of_every_link(two):
    (heat,) = charts.traffic(two[:1]).data
    np.testing.assert_allclose(np.nan_to_num(np.asarray(heat.z)), two[0].run.trace.traffic())


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
    bars = charts.memory(two[:1]).data
    assert [bar.name for bar in bars] == ["parameters", "gradients", "activations"]
    assert sum(np.asarray(bar.x) for bar in bars)[0] == pytest.approx(4 * 13 * (1 + 2 + 4))  # kB
    assert {bar.name: bar.marker.color for bar in bars} == {bar.name: palette.HOLDING[bar.name][0] for bar in bars}


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
    ranks, mean, most = charts.ranked(run)["versions of the weights"]
    assert (list(ranks), list(mean), list(most)) == ([0, 1], [2, 1], [3, 1])
    run.memory["bytes"] = np.array([100, 50, 100, 100, 50])
    assert "versions of the weights" not in charts.ranked(run)


def test_the_shares_of_staleness_add_up(two):
    (bars,) = charts.staleness(two).data  # the synchronous run has none
    assert sum(bars.y) == pytest.approx(100, rel=1e-5)


def test_times_are_drawn_in_a_unit_that_people_read(two):
    assert charts.loss(two, "seconds").layout.xaxis.title.text == "time, ms"


def test_hundreds_of_ranks_are_drawn_in_groups(made):
    shown = [Shown("many", made(Experiment(workers=130)), 0)]
    assert len(charts.traffic(shown).data[0].y) == charts.RANKS
    assert len(charts.shares(shown).data[0].y) == charts.RANKS
    assert len(charts.topology(shown).data[-1].x) == charts.RANKS
    assert len(charts.memory(shown).data[0].y) == charts.RANKS


def test_a_last_leap_does_not_flatten_the_curve(two):
    two[0].run.losses["loss"][-1] = 1e9
    assert charts.loss(two, "step").layout.yaxis.range[1] < 100


def test_ranks_are_called_by_their_role(made):
    assert charts.lane_names(made(Experiment(algorithm="easgd", workers=2))) == ["server 0", "worker 1", "worker 2"]
    assert charts.lane_names(made(Experiment(algorithm="gpipe", workers=2))) == ["stage 0", "stage 1"]
    assert charts.lane_names(made(Experiment(algorithm="ddg", workers=2))) == ["module 0", "module 1"]
